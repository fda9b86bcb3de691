#!/usr/bin/env python3
"""Runs distill_step and the baselines in turn, several rounds, and prints a Markdown table of medians.

Rounds are interleaved so that a busy neighbour on the machine slows all of them alike.  Standard library only; the Python
of --python has torch and transformers, and deepspeed for its variants.
"""

import argparse
import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402

VARIANTS = {
    "Retort, fp32": ("retort", ["--dtype", "fp32"]),
    "Retort, fp32, activations kept": ("retort", ["--dtype", "fp32", "--keep"]),
    "PyTorch eager, fp32": ("baseline", ["--dtype", "fp32"]),
    "PyTorch eager, fp32, checkpointing": ("baseline", ["--dtype", "fp32", "--checkpointing"]),
    "torch.compile, fp32": ("baseline", ["--dtype", "fp32", "--compile"]),
    "Retort, bf16": ("retort", ["--dtype", "bf16"]),
    "Retort, bf16, activations kept": ("retort", ["--dtype", "bf16", "--keep"]),
    "Retort, bf16, pieces of 256 rows": ("retort", ["--dtype", "bf16", "--head-rows", "256"]),
    "PyTorch eager, bf16 autocast": ("baseline", ["--dtype", "bf16"]),
    "torch.compile, bf16 autocast": ("baseline", ["--dtype", "bf16", "--compile"]),
    "Retort, fp32, activations kept, 2 ranks": ("retort", ["--dtype", "fp32", "--keep", "--ranks", "2"]),
    "Retort, fp32, 2 ranks": ("retort", ["--dtype", "fp32", "--ranks", "2"]),
    "FSDP2, fp32, 2 ranks": ("fsdp2", ["--dtype", "fp32", "--ranks", "2"]),
    "DeepSpeed ZeRO-3, fp32, 2 ranks": ("zero3", ["--dtype", "fp32", "--ranks", "2"]),
    "Retort, bf16, activations kept, 2 ranks": ("retort", ["--dtype", "bf16", "--keep", "--ranks", "2"]),
    "Retort, bf16, 2 ranks": ("retort", ["--dtype", "bf16", "--ranks", "2"]),
    "FSDP2, bf16, 2 ranks": ("fsdp2", ["--dtype", "bf16", "--ranks", "2"]),
    "DeepSpeed ZeRO-3, bf16, 2 ranks": ("zero3", ["--dtype", "bf16", "--ranks", "2"]),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the built distill_step")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch and transformers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="variants whose name contains this; may be given again")
    parser.add_argument("--without", action="append", default=[], help="but not those whose name contains this")
    parser.add_argument("--reference", default="torch.compile, fp32", help="the variant that ratios are of")
    parser.add_argument("options", nargs="*", help="given to all, after --: for example -- --steps 3 --length 256")
    return parser.parse_args()


def run_one(arguments, kind, options):
    command = [arguments.program] if kind == "retort" else [arguments.python, str(HERE / f"{kind}.py")]
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", TOKENIZERS_PARALLELISM="false")
    done = subprocess.run(command + options + arguments.options, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return None
    return json.loads(done.stdout[done.stdout.rfind("\n{") + 1:])


def memory_of(result):
    """Of tensors on an accelerator; of all ranks together, what they share counted once; of one process its peak."""
    if result.get("device", "cpu") != "cpu":
        return result["peak_tensor_bytes"]
    return result["proportional_peak_bytes"] if result.get("ranks", 1) > 1 else result["process_peak_bytes"]


def table(results, reference):
    def median(name, key):
        return statistics.median(r[key] for r in results[name])

    base = median(reference, "tokens_per_second") if results.get(reference) else None
    lines = ["| | tokens/s (median) | range | ratio | peak memory | GEMM beside it | loss |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for name, rounds in results.items():
        if not rounds:
            lines.append(f"| {name} | failed | | | | | |")
            continue
        rates = [r["tokens_per_second"] for r in rounds]
        ratio = f"{median(name, 'tokens_per_second') / base:.2f}" if base else ""
        lines.append(f"| {name} | {statistics.median(rates):.0f} | {min(rates):.0f}-{max(rates):.0f} | {ratio} "
                     f"| {statistics.median(memory_of(r) for r in rounds) / 1e9:.2f} GB "
                     f"| {median(name, 'matrix_product_flops') / 1e9:.0f} GFLOP/s | {rounds[-1]['loss']:.2f} |")
    return "\n".join(lines)


def described(result):
    """In a line, for who looks at single rounds."""
    share = f", {100 * result['share_of_peak']:.0f} % of the matrix rate" if "share_of_peak" in result else ""
    best = f" ({result['best_tokens_per_second']:.0f} in the best step)" if "best_tokens_per_second" in result else ""
    return f"{result['tokens_per_second']:.0f} tokens/s{best}{share}, {memory_of(result) / 1e9:.2f} GB"


def main():
    arguments = parse_arguments()
    variants = {name: v for name, v in VARIANTS.items() if any(part in name for part in arguments.only or [""])
                and not any(part in name for part in arguments.without)}
    results = {name: [] for name in variants}
    for number in range(arguments.rounds):
        for name, (kind, options) in variants.items():
            result = run_one(arguments, kind, options)
            print(f"round {number + 1}: {name}: {result and described(result)}", file=sys.stderr)
            if result:
                results[name].append(result)
    print(f"{datetime.date.today()}, {machine.described()}, "
          f"{arguments.rounds} rounds, `OMP_WAIT_POLICY=passive`\n")
    print(f"    benchmarks/distill_step/run.py --rounds {arguments.rounds} " +
          (shlex.join(["--", *arguments.options]) if arguments.options else "") + "\n")
    print(table(results, arguments.reference))
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
