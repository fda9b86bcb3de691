#!/usr/bin/env python3
"""Reads a run of recipes/europa.yaml and prints, in Markdown, what each loss reached and how soon it reached what KL alone
reached at its end.

usage: benchmarks/europa/table.py RUN_DIRECTORY
"""
import json
import sys
from pathlib import Path

LOSSES = {"ce": "CE", "kl": "KL", "ce_kl": "CE + KL", "ce_kl_sq": "CE + KL + SquareHead"}


def curves(run):
    """Per stage the held-out points: (tokens, seconds of training, mean NLL over the languages)."""
    found = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:  # a last line cut off
            continue
        if row.get("held_out"):
            nll = sum(row["held_out"].values()) / len(row["held_out"])
            found.setdefault(row["stage"], []).append((row["tokens"], row.get("seconds", 0.0), nll))
    return found


def first_below(curve, nll):
    for tokens, seconds, value in curve:
        if value <= nll:
            return tokens, seconds
    return None


def scores(run):
    return {model["name"]: model for model in json.loads((run / "stages" / "scores.json").read_text())["models"]}


def main():
    run = Path(sys.argv[1])
    held_out, models = curves(run), scores(run)
    start = json.loads((run / "provenance.json").read_text())["starts"][0]
    print(f"{start['processor'] if 'processor' in start else ''}, started {start.get('started', '')}, retort {start.get('retort', '')} (git {start.get('git', '')})\n")
    print("| model | parameters | non-zero | perplexity | bits per byte | KL | top-1 agreement | recovery |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, model in models.items():
        mean = model["mean"]
        print(f"| {name} | {model['parameters']:,} | {model['nonzero_parameters']:,} | {mean['perplexity']:.2f} | "
              f"{mean['bits_per_byte']:.3f} | {mean['kl']:.4f} | {mean['top1_agreement']:.3f} | {mean['recovery']:.3f} |")
    print("\nTokens and seconds until the held-out NLL is as low as KL alone ends (points every few steps):\n")
    print("| loss | seed | final held-out NLL | tokens | seconds | seconds of the whole stage |")
    print("|---|---:|---:|---:|---:|---:|")
    for seed in ("1", "2"):
        goal = held_out[f"kl_{seed}"][-1][2]
        for key, label in LOSSES.items():
            curve = held_out[f"{key}_{seed}"]
            reached = first_below(curve, goal)
            tokens, seconds = (f"{reached[0]:,}", f"{reached[1]:.0f}") if reached else ("not reached", "-")
            print(f"| {label} | {seed} | {curve[-1][2]:.4f} | {tokens} | {seconds} | {curve[-1][1]:.0f} |")


if __name__ == "__main__":
    main()
