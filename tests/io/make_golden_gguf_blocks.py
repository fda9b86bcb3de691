"""Writes golden_gguf_blocks.json: random blocks of every type, and their values by gguf 0.19.0 (PyPI), all as hex.

The package is needed for this script alone; tests read the file that it wrote.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
# Where the halves of a block stand: random ones would often be infinite.
HALVES = {"F16": (0,), "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
          "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def blocks_of(name: str, random: np.random.Generator, count: int) -> np.ndarray:
    values, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    if values == 1:
        count *= 24
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    if name in ("F32", "BF16"):
        floats = random.standard_normal(count).astype(np.float32).view(np.uint8).reshape(count, 4)
        blocks = floats[:, 4 - size:].copy()
    for place in HALVES.get(name, ()):
        halves = (random.standard_normal(count) * 10.0 ** random.integers(-7, 3, count)).astype(np.float16)
        halves[0] = np.float16(-6e-8) if place else np.float16(3e-5)  # below the normal halves
        blocks[:, place:place + 2] = halves.view(np.uint8).reshape(count, 2)
    return blocks


def main() -> None:
    random = np.random.default_rng(20260)
    golden = {"made_by": f"gguf {version('gguf')}"}
    for name in TYPES:
        kind = GGMLQuantizationType[name]
        blocks = blocks_of(name, random, 2)
        values = dequantize(blocks.reshape(1, -1), kind).astype("<f4")
        golden[name] = {"blocks": blocks.tobytes().hex(), "values": values.tobytes().hex()}
    (Path(__file__).parent / "golden_gguf_blocks.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
