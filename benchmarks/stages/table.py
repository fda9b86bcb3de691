#!/usr/bin/env python3
"""Reads a run and prints, in Markdown, the time and the peak memory of each of its stages; of several runs the times beside
each other, and those of the first divided by theirs.

usage: benchmarks/stages/table.py RUN_DIRECTORY [RUN_DIRECTORY ...]
"""

import json
import sys
from pathlib import Path


def megabytes(value):
    return "" if value is None else f"{value / 1e6:.0f}"


def results_of(run):
    paths = sorted((Path(run) / "stages").glob("*.json"), key=lambda path: path.stat().st_mtime)
    return {path.stem: json.loads(path.read_text()) for path in paths}


def print_one(run):
    print("| stage | kind | seconds | planned, MB | peak of tensors, MB | peak of the process, MB |\n|---|---|---:|---:|---:|---:|")
    for name, result in results_of(run).items():
        planned, tensors, process = (megabytes(result.get(key)) for key in ("memory_planned_bytes", "peak_tensor_bytes", "process_peak_bytes"))
        print(f"| {name} | {result['kind']} | {result['seconds']:.0f} | {planned} | {tensors} | {process} |")


def print_several(runs):
    first, *others = (results_of(run) for run in runs)
    print("| stage | kind | " + " | ".join(f"{Path(run).name}, s" for run in runs) + " | ratio |" + "\n|---|---|" + "---:|" * (len(runs) + 1))
    for name, result in first.items():
        times = [result["seconds"], *(other[name]["seconds"] for other in others)]
        ratios = ", ".join(f"{times[0] / time:.2f}" for time in times[1:])
        print(f"| {name} | {result['kind']} | " + " | ".join(f"{time:.1f}" for time in times) + f" | {ratios} |")


def main():
    runs = sys.argv[1:]
    if not runs:
        sys.exit(__doc__)
    if len(runs) == 1:
        print_one(runs[0])
    else:
        print_several(runs)


if __name__ == "__main__":
    main()
