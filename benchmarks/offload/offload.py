#!/usr/bin/env python3
"""Profile, prune and sparsify stages with their weights on the accelerator, and in the memory of the machine: peaks and results.

    benchmarks/offload/offload.py --build build/release --text FILE [--model models/europa-5m] [--device cuda]

The accelerator is the device of the tests unless --device names one.  A stage runs as it is, and again with the least memory that it
is not refused in, where its weights have no room.  Prints a Markdown table; ends with 1 where files of the results differ, or where the
second run did not leave its weights in the memory of the machine.  Standard library only.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OPTIONS = "from: {model}, data: [text], calibration_tokens: 4k, sequence_length: 128"
STAGES = {
    "profile": "{{name: stage, kind: profile, " + OPTIONS + "}}",
    "prune, per layer, additive": "{{name: stage, kind: prune, target: {{parameters: 85%}}, units: per_layer, "
                                  "search: {{method: additive, budget_tokens: 400k}}, " + OPTIONS + "}}",
    "sparsify, all layers": "{{name: stage, kind: sparsify, " + OPTIONS + "}}",
}
RECIPE = "version: 1\ndata:\n  text: {{path: {text}, held_out: {{fraction: 5%}}}}\nstages:\n  - {stage}\n"
OFFLOADED = "the weights stay in the memory of the machine"


def environment(options):
    if options.device:
        return dict(os.environ)
    tests = options.build / "tests/device"
    return dict(os.environ, LD_PRELOAD=str(tests / "libretort_torch_test_device.so"), RETORT_NCCL=str(tests / "nccl/libnccl.so.2"),
                OMP_WAIT_POLICY="passive")


def started(options, recipe, folder, *settings):
    return subprocess.run([options.build / "cli/retort", "run", recipe, "--run-dir", folder, "--dtype", "fp32", "--device",
                           options.device or "privateuseone", *settings], capture_output=True, text=True, env=environment(options))


def run(options, recipe, folder, *settings):
    """The result of the stage and what the run said."""
    done = started(options, recipe, folder, *settings)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads((folder / "stages/stage.json").read_text()), done.stderr


def least_bytes(options, recipe, folder):
    """By the plan that a run without memory is refused with, which is rounded to a tenth."""
    said = started(options, recipe, folder, "--dry-run", "--set", "memory_bytes=1M").stderr
    found = re.search(r"the plan needs ([0-9.]+) (k|M|G|T)B", said)
    if not found:
        sys.exit(f"{recipe}: expected to be refused with its plan, found: {said}")
    return int((float(found[1]) + 0.1) * {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[found[2]])


def files_of(folder):
    """What the stage made, by name; results hold times."""
    found = [path for part in ("models", "stages/stage") for path in (folder / part).rglob("*") if path.suffix in (".safetensors", ".bin")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--text", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--model", type=lambda text: Path(text).resolve(), default=Path("models/europa-5m").resolve())
    parser.add_argument("--device", default="", help="an accelerator of torch; default: the device of the tests")
    options = parser.parse_args()
    print("| stage | peak, weights on the device | weights in the memory of the machine | files of the results |\n|---|---:|---:|---|")
    wrong = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stage, text in STAGES.items():
            recipe = folder / "recipe.yaml"
            recipe.write_text(RECIPE.format(text=options.text, stage=text.format(model=options.model)))
            runs = folder / stage.split(",")[0]
            held, _ = run(options, recipe, runs / "held")
            least = least_bytes(options, recipe, runs / "offloaded")
            offloaded, said = run(options, recipe, runs / "offloaded", "--set", f"memory_bytes={least}")
            files = files_of(runs / "held")
            same = bool(files) and files == files_of(runs / "offloaded")
            wrong |= not same or OFFLOADED not in said
            peaks = [f"{result['peak_tensor_bytes'] / 1e6:.1f} MB" for result in (held, offloaded)]
            print(f"| {stage} | {peaks[0]} | {peaks[1]} | {len(files)}, {'equal' if same else 'OTHER'} |", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
