#!/usr/bin/env python3
"""What a process takes beside what was planned for it: info, eval, and the stages profile, prune, sparsify and evaluate,
each in a process of its own, in Markdown.  The plan of a process is that of its tensors and what it had before them.

usage: benchmarks/memory_plans/plans.py PROGRAM TEXT MODEL [MODEL ...]
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}

RECIPE = """version: 1
data:
  text: {{path: "{text}", separator: "\\n\\n\\n"}}
stages:
  - {{name: profile, kind: profile, from: "{model}", data: [text], calibration_tokens: 16k}}
  - {{name: prune, kind: prune, from: "{model}", data: [text], target: {{parameters: 80%}}, units: per_layer,
     search: {{method: additive, budget_tokens: 60k}}, calibration_tokens: 16k}}
  - {{name: sparsify, kind: sparsify, from: "{model}", data: [text], calibration_tokens: 16k}}
  - {{name: evaluate, kind: evaluate, models: ["{model}"], data: [text], tokens: 8k}}
"""


def peak_of(command):
    """Standard error, and the most bytes that the process ever had."""
    with tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        err.seek(0)
        said = err.read()
        if status != 0:
            sys.exit(f"{' '.join(map(str, command))}: ended with {os.waitstatus_to_exitcode(status)}\n{said[-2000:]}")
        return said, usage.ru_maxrss * 1024


def bytes_in(said, pattern):
    found = re.search(pattern + r"\s+([0-9.]+) ([kMG]?B)", said)
    return float(found.group(1)) * UNITS[found.group(2)] if found else None


def print_row(model, what, tensors, peak, planned, process):
    def megabytes(value):
        return "" if value is None else f"{value / 1e6:.0f}"

    ratio = f"{process / planned:.2f}" if planned else ""
    cells = [model, what, megabytes(tensors), megabytes(peak), megabytes(planned), megabytes(process), ratio]
    print("| " + " | ".join(cells) + " |", flush=True)


def measure(program, text, model):
    name = Path(model).name.removesuffix(".gguf")
    print_row(name, "info", None, None, None, peak_of([program, "info", model])[1])
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.txt"
        decompressed = subprocess.run(["zcat", "-f", text], stdout=subprocess.PIPE, check=True).stdout
        part.write_bytes(decompressed[:20000].rsplit(b"\n", 1)[0])
        said, process = peak_of([program, "eval", model, "--text", part, "--verbose"])
        tensors, base = bytes_in(said, "  total"), bytes_in(said, "the process itself has")
        print_row(name, "eval", tensors, None, tensors + base if tensors and base else None, process)
        recipe = Path(folder) / "recipe.yaml"
        recipe.write_text(RECIPE.format(text=Path(text).resolve(), model=Path(model).resolve()))
        for stage in ("profile", "prune", "sparsify", "evaluate"):
            run = Path(folder) / "run"
            _, process = peak_of([program, "run", recipe, "--run-dir", run, "--stage", stage])
            result = json.loads((run / "stages" / f"{stage}.json").read_text())
            print_row(name, stage, result.get("memory_planned_bytes"), result["peak_tensor_bytes"],
                      result.get("process_planned_bytes"), process)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, text, *models = sys.argv[1:]
    print("| model | what | tensors planned, MB | peak of tensors | process planned | peak of the process | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for model in models:
        measure(program, text, model)


if __name__ == "__main__":
    main()
