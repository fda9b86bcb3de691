#!/usr/bin/env python3
"""Draws the documents of the benchmark from documentation as JSONL, one file per language (plain, or .zst with the program zstd).

usage: benchmarks/calibration/prepare.py DIRECTORY [OUT]

DIRECTORY holds en, de, fr, es, it, nl and pl with the ending .jsonl or .jsonl.zst, a document per line. OUT (calibration-text)
receives, in an order drawn once for all:
  seen.<language>.jsonl      what models are fine-tuned, pruned and distilled on: 64 documents, about 64,000 tokens
  unseen.<language>.jsonl    documents 49, 99, 149, ... of the file, which europa-5m was not trained on either (at most 40)
  foreign.<language>.jsonl   40 documents of languages that europa-5m never saw
"""
import random
import subprocess
import sys
from pathlib import Path

SEEN, OTHER = 64, 40


def lines_of(directory, language):
    plain = directory / f"{language}.jsonl"
    packed = directory / f"{language}.jsonl.zst"
    if plain.exists():
        return plain.read_text().rstrip("\n").split("\n")
    if not packed.exists():
        sys.exit(f"{directory}: expected {plain.name} or {packed.name}, found neither.")
    unpacked = subprocess.run(["zstd", "-dcq", str(packed)], check=True, capture_output=True).stdout.decode()
    return unpacked.rstrip("\n").split("\n")  # not splitlines: a document may hold U+2028


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    directory, out = Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) == 3 else "calibration-text")
    out.mkdir(parents=True, exist_ok=True)

    def write(name, lines, count):
        drawn = random.Random(name).sample(lines, min(count, len(lines)))
        (out / f"{name}.jsonl").write_text("".join(line + "\n" for line in drawn))
        print(f"{name}.jsonl: {len(drawn)} documents of {len(lines)}")

    for language in ("en", "de", "fr", "es", "it"):
        lines = lines_of(directory, language)
        write(f"seen.{language}", [line for n, line in enumerate(lines) if n % 50 != 49], SEEN)
        write(f"unseen.{language}", lines[49::50], OTHER)
    for language in ("nl", "pl"):
        write(f"foreign.{language}", lines_of(directory, language), OTHER)


if __name__ == "__main__":
    main()
