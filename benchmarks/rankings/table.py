#!/usr/bin/env python3
"""Reads what rankings printed and prints Markdown tables: f on held-out documents of every ranking, in brackets perplexity; bold is
the least f of a column."""

import json
import statistics
import sys


def main():
    for path in sys.argv[1:]:
        data = json.load(open(path, encoding="utf-8"))
        whole = data["whole"]["perplexity"]
        print(f"{data['model'].rstrip('/').rsplit('/', 1)[-1]}, {data['tokens']} calibration tokens, {data['held_out_tokens']} held-out "
              f"tokens, perplexity of the whole model {whole:.3f}\n")
        columns = sorted({(row["keep"], row["over_layers"], how) for row in data["rows"] for how in ("plain", "compensated")},
                         key=lambda c: (-c[0], c[1], c[2] != "plain"))
        cells = {}
        for row in data["rows"]:
            name = row["ranking"] + ("" if row["winsorise"] == 1 else ", cut")
            for how in ("plain", "compensated"):
                cells.setdefault(name, {}).setdefault((row["keep"], row["over_layers"], how), []).append(row[how])
        value = {name: {c: statistics.median(cell["objective"] for cell in row[c]) for c in columns} for name, row in cells.items()}
        best = {c: min(value, key=lambda name: value[name][c]) for c in columns}
        heads = [f"{keep:.0%} {'over layers' if over else 'alike'}{'' if how == 'plain' else ' + fit'}" for keep, over, how in columns]
        print("| ranking | " + " | ".join(heads) + " |")
        print("|---|" + "---:|" * len(columns))
        for name, row in cells.items():
            texts = []
            for c in columns:
                perplexity = statistics.median(cell["perplexity"] for cell in row[c])
                text = f"{value[name][c]:.3f} ({perplexity:.3g})"
                texts.append(f"**{text}**" if best[c] == name else text)
            print(f"| {name} | " + " | ".join(texts) + " |")
        print()


if __name__ == "__main__":
    main()
