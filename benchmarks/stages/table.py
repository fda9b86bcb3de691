#!/usr/bin/env python3
"""Reads a run and prints, in Markdown, the time and the peak memory of each of its stages.

usage: benchmarks/stages/table.py RUN_DIRECTORY
"""

import json
import sys
from pathlib import Path


def megabytes(value):
    return "" if value is None else f"{value / 1e6:.0f}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = Path(sys.argv[1])
    print("| stage | kind | seconds | planned, MB | peak of tensors, MB | peak of the process, MB |\n|---|---|---:|---:|---:|---:|")
    results = [(path.stem, json.loads(path.read_text())) for path in sorted((run / "stages").glob("*.json"), key=lambda path: path.stat().st_mtime)]
    for name, result in results:
        planned, tensors, process = (megabytes(result.get(key)) for key in ("memory_planned_bytes", "peak_tensor_bytes", "process_peak_bytes"))
        print(f"| {name} | {result['kind']} | {result['seconds']:.0f} | {planned} | {tensors} | {process} |")


if __name__ == "__main__":
    main()
