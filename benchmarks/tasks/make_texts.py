#!/usr/bin/env python3
"""Texts that a comparison makes for itself: pages of WikiText-2's test text, and sums with a solution written out.

    make_texts.py --wikitext wiki.test.raw OUTPUT

OUTPUT gets pages.jsonl ("page"), arithmetic_train.jsonl and arithmetic_test.jsonl ("question", "answer").
"""

import argparse
import json
import random
import re
from pathlib import Path

NAMES = ["Ann", "Ben", "Cora", "Dan", "Eve", "Finn", "Gina", "Hugo"]
THINGS = ["apples", "books", "coins", "pens", "shells", "stamps"]


def pages(text):
    """A page begins at a heading of the first level."""
    return [page for page in re.split(r"(?=^ = [^=\n]+ = \n)", text, flags=re.MULTILINE) if page.strip()]


def question(draw):
    name, thing = draw.choice(NAMES), draw.choice(THINGS)
    first, second, times = draw.randint(2, 900), draw.randint(2, 900), draw.randint(2, 9)
    total = (first + second) * times
    return {"question": f"{name} has {first:,} {thing} and finds {second}. A friend has {times} times as many. How many has the friend?",
            "answer": f"{name} has {first} + {second} = {first + second}. The friend has {first + second} * {times} = {total}.\n#### {total:,}"}


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wikitext", type=Path, required=True)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    write(options.output / "pages.jsonl", [{"page": page} for page in pages(options.wikitext.read_text(encoding="utf-8"))])
    draw = random.Random(7)
    for name, count in (("train", 8), ("test", 50)):
        write(options.output / f"arithmetic_{name}.jsonl", [question(draw) for _ in range(count)])


main()
