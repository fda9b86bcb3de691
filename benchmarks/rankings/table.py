#!/usr/bin/env python3
"""Reads what rankings printed and prints Markdown tables: f on held-out documents of every ranking, in brackets perplexity; bold is
the least f of a column."""

import json
import sys


PARTS = {"channels": "MLP channels", "kv_groups": "KV groups with their query heads", "hidden": "hidden features"}


def print_table(part, rows):
    columns = sorted({(row["keep"], row["over_layers"], how) for row in rows for how in ("plain", "compensated")},
                     key=lambda c: (-c[0], c[1], c[2] != "plain"))
    cells = {}
    for row in rows:
        name = row["ranking"] + ("" if row["winsorise"] == 1 else ", cut")
        for how in ("plain", "compensated"):
            cells.setdefault(name, {})[row["keep"], row["over_layers"], how] = row[how]
    best = {c: min(cells, key=lambda name: cells[name][c]["objective"]) for c in columns}
    heads = [f"{keep:.0%} {'over layers' if over else 'alike'}{'' if how == 'plain' else ' + fit'}" for keep, over, how in columns]
    print(f"{PARTS[part]}:\n\n| ranking | " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * len(columns))
    for name, row in cells.items():
        texts = [f"{row[c]['objective']:.3f} ({row[c]['perplexity']:.3g})" for c in columns]
        print(f"| {name} | " + " | ".join(f"**{text}**" if best[c] == name else text for c, text in zip(columns, texts)) + " |")
    print()


def main():
    for path in sys.argv[1:]:
        data = json.load(open(path, encoding="utf-8"))
        whole = data["whole"]["perplexity"]
        print(f"{data['model'].rstrip('/').rsplit('/', 1)[-1]}, {data['tokens']} calibration tokens, {data['held_out_tokens']} held-out "
              f"tokens, perplexity of the whole model {whole:.3f}\n")
        for part in dict.fromkeys(row["part"] for row in data["rows"]):
            print_table(part, [row for row in data["rows"] if row["part"] == part])


if __name__ == "__main__":
    main()
