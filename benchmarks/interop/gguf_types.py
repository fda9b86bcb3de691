#!/usr/bin/env python3
"""Perplexity of each type of GGUF file, beside the same file with the blocks of llama.cpp's own quantiser.

    gguf_types.py PROGRAM [--model models/europa-5m] [--text FILE.gz]

The model is exported in every type.  Each tensor is quantised again from the F32 export by ggml_quantize_chunk(), which
llama-quantize calls, out of xllamacpp (llama_cpp.txt); the file with these blocks in it is scored, too.  Where all bytes are equal
there is one file and one perplexity.  The text is the last part of a file of Debian's package debian-reference-en.
Needs gguf 0.19.0 and NumPy beside xllamacpp.
"""

import argparse
import ctypes
import gzip
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0"]
HELD_OUT_BYTES = 60_000


def quantiser():
    """ggml_quantize_chunk(type, values, blocks, first, rows, values of a row, importance)."""
    import xllamacpp

    library = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("*.so"))))
    library.llama_backend_init()  # tables of halves
    chunk = library.ggml_quantize_chunk
    chunk.restype = ctypes.c_size_t
    chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return chunk


def blocks_of(chunk, kind, values, size):
    blocks = numpy.zeros(size, dtype=numpy.uint8)
    rows, cols = values.size // values.shape[-1], values.shape[-1]
    written = chunk(int(kind), values.ctypes.data, blocks.ctypes.data, 0, rows, cols, None)
    assert written == size, (kind, written, size)
    return blocks


def with_their_blocks(chunk, ours, whole, path):
    """Writes `ours` with the blocks of llama.cpp; returns how many of its bytes are other ones."""
    shutil.copyfile(ours, path)
    values = {tensor.name: numpy.ascontiguousarray(tensor.data, dtype=numpy.float32) for tensor in gguf.GGUFReader(whole).tensors}
    other = 0
    with open(path, "r+b") as file:
        for tensor in gguf.GGUFReader(ours).tensors:
            before = numpy.ascontiguousarray(tensor.data).view(numpy.uint8).reshape(-1)
            blocks = blocks_of(chunk, tensor.tensor_type, values[tensor.name], before.size)
            other += int((blocks != before).sum())
            file.seek(tensor.data_offset)
            file.write(blocks.tobytes())
    return other


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"gguf_types: {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def exported(program, model, kind, folder):
    out = folder / kind
    made = json.loads(run(program, "export", model, "--for", "llama.cpp", "--type", kind, "--out", out, "--json", "-q"))
    return out / made["model"], made["checks"]["logits"]["mean_kl"]


def perplexity(program, model, text):
    scores = json.loads(run(program, "eval", model, "--text", text, "--dtype", "fp32", "--json", "-q"))
    return math.exp(scores["models"][0]["mean"]["nll"])


def row_of(program, kind, arguments, folder, chunk, whole, text):
    ours, kl = exported(program, arguments.model, kind, folder)
    theirs = folder / f"{kind}-theirs.gguf"
    other = with_their_blocks(chunk, ours, whole or ours, theirs)
    own = perplexity(program, ours, text)
    beside = "the same file" if other == 0 else f"{perplexity(program, theirs, text):.4f}, {other} bytes differ"
    return ours, f"| {kind} | {ours.stat().st_size} | {own:.4f} | {beside} | {kl:.2g} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="retort")
    parser.add_argument("--model", type=Path, default=HERE.parent.parent / "models" / "europa-5m")
    parser.add_argument("--text", type=Path, default=Path("/usr/share/debian-reference/debian-reference.en.txt.gz"))
    arguments = parser.parse_args()
    program, chunk = str(arguments.program.resolve()), quantiser()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        text = folder / "text.txt"
        text.write_bytes(gzip.open(arguments.text).read()[-HELD_OUT_BYTES:].decode(errors="ignore").encode())
        print(f"{machine.described()}\n\n| type | bytes | perplexity | with the blocks of llama.cpp | KL of the certificate |")
        print("|---|---:|---:|---:|---:|")
        whole = None
        for kind in TYPES:
            file, row = row_of(program, kind, arguments, folder, chunk, whole, text)
            whole = whole or file
            print(row, flush=True)


if __name__ == "__main__":
    main()
