#!/usr/bin/env python3
"""Reads a run of benchmarks/calibration/calibration.yaml and prints, in Markdown, losses and calibration errors on text that was
seen, unseen and in a foreign language, and what fine-tuning the pruning parent or the teacher changes.

usage: benchmarks/calibration/table.py RUN_DIRECTORY
"""
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import bootstrap  # noqa: E402

TEXTS = {"seen": "training documents", "unseen": "other documents", "foreign": "foreign languages"}
ROWS = {"europa-5m": ["models/europa-5m"], "europa-5m fine-tuned": ["tuned"], "the same, twice as long": ["tuned_longer"],
        "pruned from raw": ["pruned_raw"], "pruned from fine-tuned": ["pruned_tuned"],
        **{f"{parent} parent, {teacher} teacher": [f"{parent}_{teacher}_{seed}" for seed in (1, 2)]
           for parent in ("raw", "tuned") for teacher in ("raw", "tuned")}}


def cell(parent, teacher):
    return [f"{parent}_{teacher}_{seed}" for seed in (1, 2)]


# (models, those they are compared with), averaged
EFFECTS = {"fine-tuned parent (mean over teachers)": (cell("tuned", "raw") + cell("tuned", "tuned"), cell("raw", "raw") + cell("raw", "tuned")),
           "fine-tuned teacher (mean over parents)": (cell("raw", "tuned") + cell("tuned", "tuned"), cell("raw", "raw") + cell("tuned", "raw")),
           "both, against neither": (cell("tuned", "tuned"), cell("raw", "raw")),
           "order of documents 2 against 1": ([f"{p}_{t}_2" for p in ("raw", "tuned") for t in ("raw", "tuned")],
                                              [f"{p}_{t}_1" for p in ("raw", "tuned") for t in ("raw", "tuned")])}


def scores(run, text):
    return {model["name"]: model["mean"] for model in json.loads((run / "stages" / f"{text}.json").read_text())["models"]}


def documents(run, text):
    """{(source, number): {"bytes", model: nats}}"""
    found = {}
    for line in (run / "stages" / f"{text}.documents.jsonl").read_text().splitlines():
        row = json.loads(line)
        found.setdefault((row["source"], row["number"]), {"bytes": row["bytes"]})[row["model"]] = row["nll"]
    return found


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def bits_per_byte_difference(rows, models, others):
    """Mean over sources of the difference, and its 95 % interval over documents: (low, high), or None."""
    groups = {}
    for (source, _), row in rows.items():
        bits = (mean(row[m] for m in models) - mean(row[m] for m in others)) / math.log(2)
        groups.setdefault(source, []).append((bits, row["bytes"]))
    return bootstrap.estimate(groups.values())[0], bootstrap.interval(groups.values())


def written(difference, interval):
    return f"{difference:+.4f} ({interval[0]:+.4f} to {interval[1]:+.4f})" if interval else f"{difference:+.4f} (–)"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = Path(sys.argv[1])
    start = json.loads((run / "provenance.json").read_text())["starts"][0]
    print(f"{start['processor']}, started {start['started']}, retort {start['retort']} (git {start['git']})\n")
    found = {text: scores(run, text) for text in TEXTS}
    for key, title, form in (("bits_per_byte", "Bits per byte", "{:.4f}"), ("ece", "Expected calibration error, %", "{:.2f}"),
                             ("confidence_gap", "Mean confidence minus accuracy, percentage points", "{:+.2f}")):
        scale = 1 if key == "bits_per_byte" else 100
        print(f"{title}; of the two orders of documents the mean (and each):\n")
        print("| model | " + " | ".join(TEXTS.values()) + " |\n|---|" + "---:|" * len(TEXTS))
        for label, models in ROWS.items():
            cells = []
            for text in TEXTS:
                values = [scale * found[text][model][key] for model in models]
                each = " (" + ", ".join(form.format(v) for v in values) + ")" if len(values) > 1 else ""
                cells.append(form.format(mean(values)) + each)
            print(f"| {label} | " + " | ".join(cells) + " |")
        print()
    print("Change of bits per byte, with its 95 % interval over paired documents:\n")
    print("| what | " + " | ".join(TEXTS.values()) + " |\n|---|" + "---:|" * len(TEXTS))
    rows = {text: documents(run, text) for text in TEXTS}
    for label, (models, others) in EFFECTS.items():
        cells = [written(*bits_per_byte_difference(rows[text], models, others)) for text in TEXTS]
        print(f"| {label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
