#!/usr/bin/env python3
"""Reads what exhaustive printed and prints Markdown tables: for each number of removed units, how far from the optimum each
method ends, as the median over its seeds, and in brackets how many of all choices are better than that."""

import json
import statistics
import sys

METHODS = ["one_shot", "additive", "greedy", "random", "evolution", "tabu"]


def cell(runs, optimum):
    gaps = sorted(run["objective"] - optimum for run in runs)
    better = statistics.median(run["better_choices"] for run in runs)
    text = "0" if gaps[len(gaps) // 2] < 1e-9 else f"{gaps[len(gaps) // 2]:.4f} ({better:.0f})"
    misses = sum(gap > 1e-9 for gap in gaps)
    return text + (f", {misses} of {len(runs)} miss" if 0 < misses < len(runs) else "")


def main():
    for path in sys.argv[1:]:
        data = json.load(open(path, encoding="utf-8"))
        print(f"{data['model'].rsplit('/', 1)[-1]}, {data['units']}, {data['tokens']} tokens\n")
        print("| removed | choices | evaluations | optimum f | median f | " + " | ".join(METHODS) + " |")
        print("|---:|---:|---:|---:|---:|" + "---:|" * len(METHODS))
        for result in data["results"]:
            spent = max(run["evaluations"] for runs in result["methods"].values() for run in runs)
            print(f"| {result['removed']} | {result['choices']} | {spent} | {result['optimum']:.4f} | {result['median']:.4f} | "
                  + " | ".join(cell(result["methods"][method], result["optimum"]) for method in METHODS) + " |")
        print()


if __name__ == "__main__":
    main()
