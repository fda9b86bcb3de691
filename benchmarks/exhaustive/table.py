#!/usr/bin/env python3
"""Reads what exhaustive printed and prints a Markdown table: for each number of removed units and method the median and worst
distance from the optimum, and how many of all choices are better than the one that was found."""

import json
import statistics
import sys

METHODS = ["one_shot", "additive", "greedy", "random", "evolution", "tabu"]


def main():
    for path in sys.argv[1:]:
        data = json.load(open(path, encoding="utf-8"))
        print(f"{data['model']}, {data['units']}, {data['tokens']} tokens\n")
        print("| removed | choices | optimum f | median f | " + " | ".join(METHODS) + " |")
        print("|---:|---:|---:|---:|" + "---:|" * len(METHODS))
        for result in data["results"]:
            cells = []
            for method in METHODS:
                runs = result["methods"][method]
                gaps = [run["objective"] - result["optimum"] for run in runs]
                better = [run["better_choices"] for run in runs]
                cells.append(f"{statistics.median(gaps):+.4f} ({statistics.median(better):.0f})"
                             + (f", worst {max(gaps):+.4f}" if len(runs) > 1 and max(gaps) > statistics.median(gaps) else "")
                             + f", {statistics.median(run['evaluations'] for run in runs):.0f} evals")
            print(f"| {result['removed']} | {result['choices']} | {result['optimum']:.4f} | {result['median']:.4f} | "
                  + " | ".join(cells) + " |")
        print()


if __name__ == "__main__":
    main()
