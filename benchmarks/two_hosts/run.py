#!/usr/bin/env python3
"""A distillation step by two "hosts" of this machine, joined by a slow link: models sharded within a host beside flat ones.

The hosts are those of ../hosts.py, and `tc tbf` limits the rate of their link.  Needs what they need, and a built distill_step.
Prints a Markdown table.  Standard library only.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import hosts  # noqa: E402
import machine  # noqa: E402

FLAT = "over both hosts (flat)"
LAYOUTS = {
    "within a host (two-level)": ["--shard", "2"],
    "within a host, nothing moves while something computes": ["--shard", "2", "--no-overlap"],
    FLAT: ["--shard", "4"],
    "over both hosts, nothing moves while something computes": ["--shard", "4", "--no-overlap"],
    "whole on every rank": ["--shard", "1"],
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the built distill_step")
    parser.add_argument("--rate", default="400mbit", help="of the link, as tc takes it")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ranks-per-host", type=int, default=2)
    parser.add_argument("--apart", action="store_true", help="the ranks of a host share no memory, as those of accelerators")
    parser.add_argument("--layouts", type=int, default=len(LAYOUTS), help="the first so many")
    parser.add_argument("options", nargs="*", help="given to distill_step, after --")
    return parser.parse_args()


def sent_bytes(host):
    """Of the link, by the kernel's count."""
    with_counts = subprocess.run(["ip", "-n", host, "-j", "-s", "link", "show", "link0"], check=True, capture_output=True)
    return json.loads(with_counts.stdout)[0]["stats64"]["tx"]["bytes"]


def run_one(arguments, layout):
    before = sum(map(sent_bytes, hosts.HOSTS))
    library = str(arguments.program.resolve().parents[2] / "retort")
    own = {"LD_LIBRARY_PATH": library} | ({"RETORT_RANKS_PER_NODE": "1"} if arguments.apart else {})
    command = hosts.mpirun(arguments.ranks_per_host, [arguments.program.resolve(), "--keep", *layout, *arguments.options], *own)
    done = subprocess.run(command, env=os.environ | hosts.SETTINGS | own, capture_output=True, text=True, cwd="/tmp")
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        sys.exit(1)
    result = json.loads(done.stdout[done.stdout.index("{"):])
    result["link_bytes"] = sum(map(sent_bytes, hosts.HOSTS)) - before
    return result


def median_waited(rounds, levels):
    return statistics.median(sum(r["exposed_seconds"].get(level, 0) for level in levels) for r in rounds)


def main():
    arguments = parse_arguments()
    names = list(LAYOUTS)[: arguments.layouts]
    results = {name: [] for name in names}
    with hosts.Link(arguments.rate):
        for number in range(arguments.rounds):
            for name in names:
                results[name].append(run_one(arguments, LAYOUTS[name]))
                print(f"round {number + 1}: {name}: {results[name][-1]['tokens_per_second']:.0f} tokens/s", file=sys.stderr)
    print(f"{datetime.date.today()}, {machine.described()}, two hosts of {arguments.ranks_per_host} ranks, link of "
          f"{arguments.rate}, {arguments.rounds} rounds\n")
    base = statistics.median(r["tokens_per_second"] for r in results.get(FLAT, results[names[0]]))
    print("| models lie | tokens/s (median) | range | ratio | over the link, whole run | waited, s per step: weights and gradients | at meetings of all | loss |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, rounds in results.items():
        rates = [r["tokens_per_second"] for r in rounds]
        print(f"| {name} | {statistics.median(rates):.0f} | {min(rates):.0f}-{max(rates):.0f} "
              f"| {statistics.median(rates) / base:.2f} | {statistics.median(r['link_bytes'] for r in rounds) / 1e6:.0f} MB "
              f"| {median_waited(rounds, ('shard', 'replica')):.2f} | {median_waited(rounds, ('world',)):.2f} "
              f"| {rounds[-1]['loss']:.4f} |")


if __name__ == "__main__":
    main()
