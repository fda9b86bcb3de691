#!/usr/bin/env python3
"""Compiles one file with and without libtorch's precompiled header, and prints the processor time of each and the header's size.

usage: benchmarks/precompiled_header/measure.py [BUILD_FOLDER] [FILE]     default: build/release retort/calibrate/ranking.cpp

The build folder is one of RETORT_UNITY=OFF, where each file is compiled alone.
"""

import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 3


def seconds(command, directory):
    """Processor time of the fastest of the rounds."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    times = []
    for _ in range(ROUNDS):
        before = spent()
        subprocess.run(command, cwd=directory, check=True)
        times.append(spent() - before)
    return min(times)


def main():
    if len(sys.argv) > 3 or "--help" in sys.argv:
        sys.exit(__doc__)
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    name = sys.argv[2] if len(sys.argv) > 2 else "retort/calibrate/ranking.cpp"
    commands = json.loads((build / "compile_commands.json").read_text())
    entry = next((entry for entry in commands if entry["file"].endswith("/" + name)), None)
    command = shlex.split(entry["command"]) if entry else []
    if "-include" not in command:
        sys.exit(f"measure.py: expected a build folder in which {name} uses the precompiled header, found {build}; set RETORT_PRECOMPILE=ON and RETORT_UNITY=OFF.")
    at = command.index("-include")
    header = Path(command[at + 1] + ".gch")
    with tempfile.TemporaryDirectory() as folder:
        command[command.index("-o") + 1] = os.path.join(folder, "one.o")
        alone = [word for i, word in enumerate(command) if i not in (at, at + 1)]
        print(f"{name}: {seconds(alone, entry['directory']):.1f} s without, {seconds(command, entry['directory']):.1f} s with the precompiled header "
              f"of {header.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
