"""Files of the reference implementations: a safetensors file of every dtype and of unusual shapes, blocks of GGUF files."""

import json
from pathlib import Path

import gguf
import numpy
import torch
from safetensors.torch import save_file

from ._gguf_rows import rows

NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
GGUF_TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")


def tensors():
    generator = torch.Generator().manual_seed(7)
    made = {}
    for dtype, name in NAMES.items():
        values = torch.randint(0, 100, (3, 5), generator=generator)
        made[f"z.{name}.matrix"] = values.to(dtype)
    made["scalar"] = torch.tensor(2.5, dtype=torch.bfloat16)
    made["empty"] = torch.zeros((4, 0, 2), dtype=torch.float32)
    made["a.ünïcode name \"with quotes\""] = torch.arange(7, dtype=torch.float32)
    made["special values"] = torch.tensor([float("nan"), float("inf"), -0.0, 1e-45], dtype=torch.float32)
    return made


def write_gguf_blocks(folder: Path) -> None:
    folder.mkdir()
    values = numpy.concatenate(list(rows(20261, 40).values()))
    (folder / "values").write_bytes(values.tobytes())
    for name in GGUF_TYPES:
        (folder / name).write_bytes(gguf.quants.quantize(values, gguf.GGMLQuantizationType[name]).tobytes())


def write(out_dir: Path, shared: Path | None) -> None:
    write_gguf_blocks(out_dir / "io" / "gguf_blocks")
    made = tensors()
    save_file(made, out_dir / "io" / "tensors.safetensors", metadata={"format": "pt"})
    described = {name: {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "hex": bytes(tensor.contiguous().flatten().view(torch.uint8).tolist()).hex()}
                 for name, tensor in made.items()}
    (out_dir / "io" / "tensors.json").write_text(json.dumps(described))
