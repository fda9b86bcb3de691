#!/usr/bin/env python3
"""Packs what an experiment measured into one file, and back: tables can be made from it, and `run.py` goes on behind its runs.

usage: benchmarks/experiment/archive.py pack OUT FILE.xz
       benchmarks/experiment/archive.py unpack FILE.xz OUT
"""

import argparse
import json
import lzma
from pathlib import Path, PurePosixPath

from documents import Refused, replace

PARTS = ("experiment.json", "*/reference.json", "*/*/keep-*/*/seed-*/result.json")


def is_part(name):
    path = PurePosixPath(name)
    return ".." not in path.parts and any(len(path.parts) == part.count("/") + 1 and path.match(part) for part in PARTS)


def pack(out, file):
    paths = sorted(path for part in PARTS for path in out.glob(part))
    if not paths:
        raise Refused(f"{out}: expected the directory of an experiment, found no results; check the command.")
    lines = (json.dumps([path.relative_to(out).as_posix(), json.loads(path.read_text())], separators=(",", ":")) + "\n" for path in paths)
    replace(file, lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))


def unpack(file, out):
    """What is there already stays, but an experiment with other settings is refused."""
    with lzma.open(file, "rt") as lines:
        parts = dict(map(json.loads, lines))
    for name in parts:
        if not is_part(name):
            raise Refused(f"{file}: expected parts of an experiment, found {name}; it was not packed by this program.")
    settled = out / "experiment.json"
    if settled.exists() and json.loads(settled.read_text()) != parts["experiment.json"]:
        raise Refused(f"{settled}: is of an experiment with other settings than {file}; choose another directory.")
    for name, value in parts.items():
        if not (out / name).exists():
            replace(out / name, (json.dumps(value) + "\n").encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("pack", "unpack"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    try:
        if not options.source.exists():
            raise Refused(f"there is no {options.source}; check the command.")
        (pack if options.action == "pack" else unpack)(options.source, options.target)
    except Refused as refused:
        raise SystemExit(f"archive: {refused}") from None


if __name__ == "__main__":
    main()
