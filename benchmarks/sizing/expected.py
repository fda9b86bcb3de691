#!/usr/bin/env python3
"""Times of a forward pass that the rates of `retort bench gemm` let expect, beside measured ones, on the machine of the rates.

    benchmarks/sizing/expected.py --program build/release/cli/retort --model MODEL --text FILE [--dtype fp32] [--seconds 60]

A prune stage writes the times of its model and of what it leaves.  It runs with the file of rates, where it measures, and with one
whose processor has another name, where it goes by the rates.  Models are pruned by whole blocks and by channels of all MLPs alike, so
that one differs in blocks and the other in a width.  Prints a Markdown table.  Standard library only.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SPACES = {"whole blocks": "heads: false, channels: false, search: {method: influence, tolerance: 10%}",
          "MLP channels": "blocks: false, heads: false, width_multiple: 128"}
RECIPE = """version: 1
data:
  text: {{path: {text}, held_out: {{fraction: 5%}}}}
stages:
  - {{name: pruned, kind: prune, from: {model}, data: [text], target: {{parameters: 80%}}, units: uniform, {space}, sizing: {sizing},
     compensate: false, calibration_tokens: 2k, sequence_length: 512}}
"""


def command(options, *words):
    done = subprocess.run([options.program, *map(str, words), "--dtype", options.dtype], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)


def rates(options, folder):
    """Files of this machine and of one with another name."""
    own = folder / "own.json"
    command(options, "bench", "gemm", options.model, "--tokens", 512, "--seconds", options.seconds, "--out", own)
    sizing = json.loads(own.read_text())
    sizing["machine"]["processor"] = "another"
    other = folder / "other.json"
    other.write_text(json.dumps(sizing))
    return own, other


def seconds_of(options, folder, space, sizing):
    """Of the model and of what is left."""
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE.format(text=options.text, model=options.model, space=SPACES[space], sizing=sizing))
    run = folder / f"{space}-{sizing.stem}"
    command(options, "run", recipe, "--run-dir", run)
    result = json.loads((run / "stages/pruned.json").read_text())
    return result["cost_before"]["seconds"], result["cost"]["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--program", "--model", "--text"):
        parser.add_argument(name, type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    print("| pruned to 80 % by | time of the model | of the pruned one | its share |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        files = rates(options, Path(name))
        for space in SPACES:
            for how, sizing in zip(("measured", "expected"), files):
                before, after = seconds_of(options, Path(name), space, sizing)
                print(f"| {space}, {how} | {before:.3f} s | {after:.3f} s | {after / before:.1%} |", flush=True)


if __name__ == "__main__":
    main()
