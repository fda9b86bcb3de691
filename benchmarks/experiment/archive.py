#!/usr/bin/env python3
"""Packs what an experiment measured into one file, and back: tables can be made from it, and `run.py` goes on behind its runs.

usage: benchmarks/experiment/archive.py pack OUT FILE.xz
       benchmarks/experiment/archive.py unpack FILE.xz OUT
"""

import argparse
import json
import lzma
from pathlib import Path

PARTS = ("experiment.json", "*/reference.json", "*/*/keep-*/*/seed-*/result.json")


def pack(out, file):
    with lzma.open(file, "wt", preset=9 | lzma.PRESET_EXTREME) as lines:
        for path in sorted(path for part in PARTS for path in out.glob(part)):
            lines.write(json.dumps([str(path.relative_to(out)), json.loads(path.read_text())], separators=(",", ":")) + "\n")


def unpack(file, out):
    """What is there already stays."""
    with lzma.open(file, "rt") as lines:
        for name, value in map(json.loads, lines):
            if not any(Path(name).match(part) for part in PARTS):
                raise SystemExit(f"archive: {file}: expected parts of an experiment, found {name}; it was not packed by this program.")
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(json.dumps(value) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("pack", "unpack"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    if not options.source.exists():
        raise SystemExit(f"archive: there is no {options.source}; check the command.")
    (pack if options.action == "pack" else unpack)(options.source, options.target)


if __name__ == "__main__":
    main()
