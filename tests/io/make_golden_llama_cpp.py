"""Writes golden_gguf_k_blocks.json and golden_gguf_types.json: what llama.cpp's quantiser makes, without importance matrix.

    make_golden_llama_cpp.py BIN "DESCRIPTION"

BIN is the bin/ of a build of llama.cpp with -DBUILD_SHARED_LIBS=ON -DCMAKE_C_FLAGS=-ffp-contract=off: libggml-base.so
quantises rows, llama-quantize --dry-run says the type of each tensor.  DESCRIPTION says which it was.  Both are needed
for this script alone; tests read the files that it wrote.
"""

import ctypes
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from oracles._gguf_rows import rows

K_TYPES = ("Q4_K", "Q5_K", "Q6_K")
MIXTURES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K")
# architecture, blocks, heads, KV heads, whether the head is tied, length of rows: hidden size, heads, MLP
MODELS = (
    ("llama", 1, 2, 1, False, (256, 256, 512)),
    ("llama", 7, 2, 2, True, (256, 512, 768)),
    ("llama", 30, 9, 3, True, (576, 576, 1536)),
    ("llama", 32, 4, 1, False, (512, 512, 256)),
    ("llama", 6, 4, 2, False, (40, 64, 96)),
    ("llama", 6, 4, 2, True, (40, 40, 72)),
    ("llama", 80, 8, 1, False, (256, 256, 256)),
    ("llama", 80, 8, 8, False, (256, 256, 256)),
    ("qwen2", 80, 4, 4, False, (256, 256, 256)),
    ("qwen2", 24, 14, 2, True, (896, 896, 4864)),
    ("qwen3", 28, 4, 2, True, (256, 512, 768)),
    ("phi3", 32, 4, 4, False, (256, 256, 512)),
    ("gemma2", 26, 4, 2, True, (256, 512, 288)),
    ("gemma3", 18, 4, 1, True, (640, 1024, 2048)),
)


class Quantiser:
    def __init__(self, library: Path):
        self.chunk = ctypes.CDLL(library).ggml_quantize_chunk
        self.chunk.restype = ctypes.c_size_t
        self.chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p]

    def blocks(self, row: np.ndarray, name: str) -> bytes:
        kind = gguf.GGMLQuantizationType[name]
        values, size = gguf.GGML_QUANT_SIZES[kind]
        out = np.zeros(row.size // values * size, np.uint8)
        assert self.chunk(int(kind), row.ctypes.data, out.ctypes.data, 0, 1, row.size, None) == out.size
        return out.tobytes()


def k_blocks(quantiser: Quantiser) -> list[dict[str, str]]:
    # With this seed the last scales that are tried win in some groups, too.
    return [{"row": kind, "values": row.tobytes().hex(), **{name: quantiser.blocks(row, name).hex() for name in K_TYPES}}
            for kind, (row, *_) in rows(20690, 1).items()]


def tensors(architecture: str, blocks: int, tied: bool, rows_of: tuple[int, int, int]) -> dict[str, tuple[int, ...]]:
    """Their shapes with few rows: the quantiser asks for the length of a row alone."""
    hidden, heads, inner = rows_of
    shapes = {"token_embd.weight": (2, hidden), "output_norm.weight": (hidden,)}
    if not tied:
        shapes["output.weight"] = (2, hidden)
    of_block = {"attn_norm.weight": (hidden,), "ffn_norm.weight": (hidden,), "attn_output.weight": (2, heads),
                "ffn_up.weight": (2, hidden), "ffn_down.weight": (2, inner)}
    if architecture == "phi3":
        of_block["attn_qkv.weight"] = (2, hidden)
    else:
        of_block.update({f"{name}.weight": (2, hidden) for name in ("attn_q", "attn_k", "attn_v", "ffn_gate")})
    if architecture == "qwen2":
        of_block["attn_v.bias"] = (2,)
    for block in range(blocks):
        shapes.update({f"blk.{block}.{name}": shape for name, shape in of_block.items()})
    return shapes


def write_model(path: Path, architecture: str, blocks: int, heads: int, kv_heads: int, hidden: int, shapes) -> None:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(hidden)
    writer.add_block_count(blocks)
    writer.add_feed_forward_length(64)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(2)
    writer.add_tokenizer_model("no_vocab")
    if architecture.startswith("gemma"):
        writer.add_sliding_window(16)
    for name, shape in shapes.items():
        writer.add_tensor(name, np.ones(shape, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def types_of(program: Path, model: Path, mixture: str) -> dict[str, str]:
    said = subprocess.run([program, "--dry-run", model, mixture, "1"], capture_output=True, text=True, check=True)
    lines = re.findall(r"^\[ *\d+/ *\d+\] +(\S+) +- .*? type = +(\w+), .*?(?:\((\w+)\))?$", said.stdout + said.stderr, re.M)
    return {name: (new or old).upper() for name, old, new in lines}


def in_short(types: dict[str, str]) -> dict[str, str]:
    """By the name in a block: one type where all blocks have the same, otherwise all; the most frequent one is the "rest"."""
    def short(name):
        return re.sub(r"^blk\.\d+\.", "blk.*.", name)
    found: dict[str, list[str]] = {}
    for name, kind in types.items():  # blocks are in their order
        found.setdefault(short(name), []).append(kind)
    joined = {name: kinds[0] if len(set(kinds)) == 1 else " ".join(kinds) for name, kinds in found.items()}
    rest = max(sorted(set(joined.values())), key=list(joined.values()).count)
    return {"rest": rest, **{name: kind for name, kind in joined.items() if kind != rest}}


def file_types() -> dict[str, int]:
    known = gguf.LlamaFileType
    return {name: int(known.ALL_F32 if name == "F32" else known[f"MOSTLY_{name}"]) for name in MIXTURES}


def chosen_types(program: Path) -> list[dict[str, object]]:
    golden = []
    for architecture, blocks, heads, kv_heads, tied, rows_of in MODELS:
        shapes = tensors(architecture, blocks, tied, rows_of)
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model.gguf"
            write_model(model, architecture, blocks, heads, kv_heads, rows_of[0], shapes)
            types = {}
            for mixture in MIXTURES:
                found = types_of(program, model, mixture)
                assert found.keys() == shapes.keys(), (mixture, found.keys() ^ shapes.keys())
                types[mixture] = in_short({name: found[name] for name in shapes})
        short = {re.sub(r"^blk\.\d+\.", "blk.*.", name): shape for name, shape in shapes.items()}
        golden.append({"architecture": architecture, "blocks": blocks, "heads": heads, "kv_heads": kv_heads, "tied": tied,
                       "shapes": short, "types": types})
    return golden


def write_json(name: str, golden: dict[str, object]) -> None:
    """A list has a line for each of what it lists."""
    def text(value):
        return json.dumps(value) if not isinstance(value, list) else "[\n" + ",\n".join("  " + json.dumps(v) for v in value) + "\n ]"
    lines = ",\n".join(f" {json.dumps(key)}: {text(value)}" for key, value in golden.items())
    (Path(__file__).parent / name).write_text("{\n" + lines + "\n}\n")


def main() -> None:
    folder, made_by = Path(sys.argv[1]), sys.argv[2]
    write_json("golden_gguf_k_blocks.json", {"made_by": made_by, "rows": k_blocks(Quantiser(folder / "libggml-base.so"))})
    write_json("golden_gguf_types.json", {"made_by": made_by, "file_types": file_types(),
                                          "models": chosen_types(folder / "llama-quantize")})


if __name__ == "__main__":
    main()
