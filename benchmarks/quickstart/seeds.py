#!/usr/bin/env python3
"""What the student of the quickstart gains over cross-entropy alone, as mean and interval over the seeds of seeds.yaml.

    benchmarks/quickstart/seeds.py runs/seeds

Prints a Markdown table: loss (nat a token), KL to the teacher, and top-1 agreement, on both texts.  Intervals are of 95 %,
by Student's t over pairs of one seed.  Standard library only.
"""

import json
import statistics
import sys
from pathlib import Path

T_OF_FOUR = 2.776  # 97.5 % of Student's t with four degrees of freedom
SEEDS = range(1, 6)
MEASURES = {"NLL": "nll", "KL": "kl", "top-1": "top1_agreement"}


def main():
    scores = json.loads((Path(sys.argv[1]) / "stages" / "scores.json").read_text())
    models = {model["name"]: model for model in scores["models"]}
    print("| text | measure | student, mean | ce_only, mean | difference | 95 % interval |\n|---|---|---:|---:|---:|---:|")
    for place, source in enumerate(models["student_1"]["sources"]):
        for name, key in MEASURES.items():
            def values(kind):
                return [models[f"{kind}_{seed}"]["sources"][place][key] for seed in SEEDS]
            student, alone = values("student"), values("ce_only")
            pairs = [a - b for a, b in zip(student, alone)]
            mean, half = statistics.mean(pairs), T_OF_FOUR * statistics.stdev(pairs) / len(pairs) ** 0.5
            print(f"| {source['name']} | {name} | {statistics.mean(student):.4f} | {statistics.mean(alone):.4f} "
                  f"| {mean:+.4f} | {mean - half:+.4f} to {mean + half:+.4f} |")


if __name__ == "__main__":
    main()
