#!/usr/bin/env python3
"""Encodes texts with Retort and with Hugging Face's `tokenizers` in turn, several rounds, compares the ids, and prints a
Markdown table.

Of the rounds the fastest counts.  On a machine that others use, look at the processor time, which leaves out the time in
which others ran.  Standard library only; the Python of --python has tokenizers.
"""

import argparse
import datetime
import filecmp
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402



def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", help="text or .jsonl, plain, .gz or .zst")
    parser.add_argument("--program", required=True, help="the built benchmark, benchmarks/tokenizers/tokenizers")
    parser.add_argument("--tokenizer", action="append", required=True, help="directory or tokenizer.json; may be repeated")
    parser.add_argument("--python", default=sys.executable, help="a Python with tokenizers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, action="append", help="1 by default; may be repeated")
    return parser.parse_args()


def run_one(command, threads):
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM=str(threads > 1).lower())
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def measure(arguments, tokenizer, threads, folder):
    ids = {name: str(folder / name) for name in ("retort", "hf")}
    commands = {"retort": [arguments.program, tokenizer, *arguments.texts, "--threads", str(threads), "--ids", ids["retort"]],
                "hf": [arguments.python, str(HERE / "baseline.py"), tokenizer, *arguments.texts, "--ids", ids["hf"]]}
    rounds = {name: [] for name in commands}
    for number in range(arguments.rounds):
        for name, command in commands.items():
            rounds[name].append(run_one(command, threads))
            print(f"{tokenizer}, {threads} threads, round {number + 1}, {name}: {rounds[name][-1]}", file=sys.stderr)
    return rounds, filecmp.cmp(ids["retort"], ids["hf"], shallow=False)


def row(tokenizer, threads, rounds, same):
    best = {name: {key: min(r[key] for r in results) for key in ("seconds", "processor_seconds")}
            for name, results in rounds.items()}
    one = rounds["retort"][0]

    def rate(name, key):
        return f"{one['bytes'] / best[name][key] / 1e6:.1f}"

    ratios = [f"{best['hf'][key] / best['retort'][key]:.1f}" for key in ("seconds", "processor_seconds")]
    name = Path(tokenizer).parent.name if tokenizer.endswith("tokenizer.json") else Path(tokenizer).name
    return (f"| {name} | {threads} | {one['tokens'] / 1e6:.1f} M | {'yes' if same else 'NO'} "
            f"| {rate('retort', 'seconds')} | {rate('hf', 'seconds')} | {ratios[0]} "
            f"| {rate('retort', 'processor_seconds')} | {rate('hf', 'processor_seconds')} | {ratios[1]} |")


def main():
    arguments = parse_arguments()
    rows, all_same, documents = [], True, {}
    with tempfile.TemporaryDirectory() as folder:
        for tokenizer in arguments.tokenizer:
            for threads in arguments.threads or [1]:
                rounds, same = measure(arguments, tokenizer, threads, Path(folder))
                rows.append(row(tokenizer, threads, rounds, same))
                all_same = all_same and same
                documents = rounds["retort"][0]
    print(f"{datetime.date.today()}, {machine.described()}, {arguments.rounds} rounds; "
          f"{documents['documents']} documents, {documents['bytes'] / 1e6:.1f} MB\n")
    print("    benchmarks/tokenizers/run.py " + shlex.join(sys.argv[1:]) + "\n")
    print("| tokenizer | threads | tokens | same ids | Retort, MB/s | HF, MB/s | ratio "
          "| Retort, MB per processor second | HF | ratio |")
    print("|---|---:|---:|---|---:|---:|---:|---:|---:|---:|")
    print("\n".join(rows))
    return 0 if all_same else 1


if __name__ == "__main__":
    sys.exit(main())
