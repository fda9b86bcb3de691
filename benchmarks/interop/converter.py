#!/usr/bin/env python3
"""What `retort export` writes as GGUF beside what llama.cpp's converter makes of the same model directory.

    converter.py PROGRAM --converter .../convert_hf_to_gguf.py MODEL [MODEL ...]

The converter lies in llama.cpp's sources, beside its folders conversion/ and gguf-py/.  Both write float32.  Of each key and tensor
a line says: equal, how often; other, with both values; only ours; only theirs.  Runs in the environment of tools/pins/test.txt.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy

SHOWN = 90


def shown(value):
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def keys_of(reader):
    return {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}


def tensors_of(reader):
    return {tensor.name: tensor for tensor in reader.tensors}


def difference_of_lists(ours, theirs):
    """Where two long lists part."""
    if len(ours) != len(theirs):
        return f"{len(ours)} and {len(theirs)} values"
    others = [i for i, (our, their) in enumerate(zip(ours, theirs)) if our != their]
    first = others[0]
    return f"{len(others)} of {len(ours)} values, the first at {first}: {shown(ours[first])} and {shown(theirs[first])}"


def difference_of_values(ours, theirs):
    if isinstance(ours, list) and isinstance(theirs, list):
        return difference_of_lists(ours, theirs)
    return f"{shown(ours)} and {shown(theirs)}"


def difference_of_tensors(ours, theirs):
    """Empty where both hold the same bits."""
    if ours.shape.tolist() != theirs.shape.tolist() or ours.tensor_type != theirs.tensor_type:
        return f"{ours.tensor_type.name} {ours.shape.tolist()} and {theirs.tensor_type.name} {theirs.shape.tolist()}"
    if numpy.array_equal(ours.data, theirs.data):
        return ""
    return f"values differ by {numpy.abs(ours.data.astype(numpy.float64) - theirs.data).max():.2g}"


def differences(ours, theirs, difference):
    """Lines, the most telling first."""
    same = [name for name in ours if name in theirs and not difference(ours[name], theirs[name])]
    yield f"  equal: {len(same)}"
    for name in sorted(set(ours) & set(theirs) - set(same)):
        yield f"  other: {name}: {difference(ours[name], theirs[name])}"
    for title, mine, other in (("only ours", ours, theirs), ("only theirs", theirs, ours)):
        for name in sorted(set(mine) - set(other)):
            yield f"  {title}: {name}" + (f" = {shown(mine[name])}" if not hasattr(mine[name], "data") else "")


def run(command, what):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        raise RuntimeError(f"{what}: {lines[-1]}")


def compared(options, model, folder):
    ours, theirs = folder / "ours", folder / "theirs.gguf"
    run([str(options.program), "export", str(model), "--for", "llama.cpp", "--type", "f32", "--out", str(ours)], "retort")
    run([sys.executable, str(options.converter), str(model), "--outtype", "f32", "--outfile", str(theirs)], "converter")
    readers = [gguf.GGUFReader(next(ours.glob("*.gguf"))), gguf.GGUFReader(theirs)]
    yield " keys"
    yield from differences(*map(keys_of, readers), lambda a, b: "" if a == b else difference_of_values(a, b))
    yield " tensors"
    yield from differences(*map(tensors_of, readers), difference_of_tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="retort")
    parser.add_argument("--converter", type=Path, required=True, metavar="convert_hf_to_gguf.py")
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    options = parser.parse_args()
    for model in options.models:
        print(model.name)
        with tempfile.TemporaryDirectory() as folder:
            try:
                for line in compared(options, model, Path(folder)):
                    print(line)
            except RuntimeError as error:
                print(f"  {error}")


if __name__ == "__main__":
    main()
