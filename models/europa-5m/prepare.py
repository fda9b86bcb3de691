#!/usr/bin/env python3
"""Divides the manuals that europa-5m is trained on: documents of the Debian Reference are left out, because recipes/quickstart.yaml
measures on that book; documents 49, 99, 149, ... of each language are held out.

usage: models/europa-5m/prepare.py MANUALS DEBIAN_REFERENCE OUT
  MANUALS           LANGUAGE.jsonl.zst with a document per line, for en, de, fr, es and it
  DEBIAN_REFERENCE  /usr/share/debian-reference
writes OUT/LANGUAGE.jsonl and OUT/LANGUAGE.held_out.jsonl
"""
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

LANGUAGES = ["en", "de", "fr", "es", "it"]
WORDS = 8  # a run of words that two texts share only if one is taken from the other


def runs_of_words(text):
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}


def main(manuals, reference, out):
    out.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        book = runs_of_words(gzip.decompress((reference / f"debian-reference.{language}.txt.gz").read_bytes()).decode())
        lines = subprocess.run(["zstd", "-dc", manuals / f"{language}.jsonl.zst"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
        left_out = 0
        with open(out / f"{language}.jsonl", "w") as training, open(out / f"{language}.held_out.jsonl", "w") as held_out:
            for number, line in enumerate(lines):
                runs = runs_of_words(json.loads(line)["text"])
                if runs and len(runs & book) > 0.1 * len(runs):
                    left_out += 1
                elif number % 50 == 49:
                    held_out.write(line + "\n")
                else:
                    training.write(line + "\n")
        print(f"{language}: {len(lines)} documents, {left_out} of the Debian Reference left out")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
