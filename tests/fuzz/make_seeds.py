#!/usr/bin/env python3
"""Writes the inputs that the harnesses begin with, one folder each, and words.dict.  All are made here or are files of
this checkout, so a run needs nothing else.  usage: make_seeds.py DIRECTORY
"""

import ast
import base64
import gzip
import json
import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/europa-5m"
HELLO = b"\0Hello <s> world \xe2\x96\x81"
TEKKEN = (ROOT / "retort/io/tokenizer_json.cpp").read_text().split("kTekkenPattern =\n    R\"(")[1].split(")\";")[0]


def dumps(value):
    return json.dumps(value, ensure_ascii=False).encode()


def safetensors():
    def file(header, data):
        header = dumps(header)
        return struct.pack("<Q", len(header)) + header + data

    yield file({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]},
                "c": {"dtype": "I64", "shape": [0, 7], "data_offsets": [26, 26]}}, b"x" * 26)
    for dtype, size in [("F64", 8), ("F32", 4), ("F16", 2), ("I32", 4), ("U8", 1), ("BOOL", 1), ("F8_E4M3", 1)]:
        yield file({"a": {"dtype": dtype, "shape": [1, 1], "data_offsets": [0, size]}}, b"x" * size)


def weight_index():
    for name in ["a.safetensors", "../outside.safetensors", "link.safetensors", "/dev/zero", "folder.safetensors"]:
        yield dumps({"metadata": {"total_size": 4}, "weight_map": {"x": name}})
    yield dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors", "z": "b.safetensors"}})


def with_blocks_that_differ(config):
    """In Retort's own form: without attention, without MLP, with fewer heads, narrower."""
    layers, groups = config["num_hidden_layers"], config["num_key_value_heads"]
    heads, width = config["num_attention_heads"] // groups, config["intermediate_size"]
    left = [(0, groups, 1, groups)[layer % 4] for layer in range(layers)]
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return {**config, "architectures": ["RetortForCausalLM"], "model_type": "retort", "base_model_type": config["model_type"],
            "num_attention_heads": [count * heads for count in left], "num_key_value_heads": left,
            "head_dim": [head_dim if count else 0 for count in left],
            "intermediate_size": [(width, 0, width, width // 2)[layer % 4] for layer in range(layers)]}


def config():
    yield (MODEL / "config.json").read_bytes()
    for file in sorted((ROOT / "recipes/families").glob("*.json")):
        yield file.read_bytes()
        yield dumps(with_blocks_that_differ(json.loads(file.read_text())))


def small_tokenizer():
    """europa-5m's with its first tokens, so that a change means something."""
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text())
    model = tokenizer["model"]
    ids = sorted(model["vocab"].items(), key=lambda entry: entry[1])[:300]
    vocab = model["vocab"] = {token: i for i, (token, _) in enumerate(ids)}
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    model["merges"] = [[a, b] for a, b in pairs if a in vocab and b in vocab and a + b in vocab][:100]
    tokenizer["added_tokens"] = [dict(token, id=vocab[token["content"]]) for token in tokenizer["added_tokens"]
                                 if token["content"] in vocab]
    tokenizer["post_processor"] = None
    return tokenizer


def tokenizer():
    small = small_tokenizer()
    yield dumps(small) + HELLO
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    sound = {"added_tokens": [{"id": 0, "content": "<s>", "special": True}],
             "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, mark, {"type": "NFC"}]},
             "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                 {"type": "Split", "pattern": {"Regex": "\\s?[A-Za-z\u00c0-\u00d6]+"}, "behavior": "Isolated", "invert": False},
                 {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithNext", "invert": False},
                 {"type": "Digits", "individual_digits": True}]},
             "post_processor": {"type": "TemplateProcessing",
                                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                                "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
             "decoder": {"type": "Sequence", "decoders": [mark, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
             "model": {"type": "BPE", "unk_token": "<s>", "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                       "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3, "<0x0A>": 4, "\u2581": 5}, "merges": [["a", "b"]]}}
    yield dumps(sound) + HELLO
    yield dumps(dict(sound, normalizer=step, decoder=step)) + HELLO
    for pre in [{"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
                {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}]:
        yield dumps(dict(sound, pre_tokenizer=pre, decoder={"type": pre["type"], "replacement": "\u2581"})) + HELLO


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def sentencepiece():
    def model(kind, normalization, byte_pieces):
        pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("<user>", 0.0, 4)]
        pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256 if byte_pieces else 0)]
        pieces += [(text, -float(i), 1) for i, text in enumerate(["\u2581t", "he", "\u2581the", "\u2581", "t", "h", "e", "an"])]
        body = b"".join(field(1, field(1, t.encode()) + field(2, s) + field(3, k)) for t, s, k in pieces)
        trainer = field(3, kind) + field(40, 0) + field(41, 1) + field(42, 2)
        return body + field(2, trainer) + field(3, field(1, normalization) + field(3, 1) + field(4, 0) + field(5, 1))

    for kind, normalization, byte_pieces in [(2, b"identity", True), (2, b"identity", False), (1, b"identity", True)]:
        yield model(kind, normalization, byte_pieces) + b"\0"
    beside = dumps({"add_bos_token": True, "bos_token": "<s>", "added_tokens_decoder": {"1": {"content": "<s>", "special": True}}})
    beside += b" " * (-len(beside) % 8)
    yield model(2, b"identity", False) + beside + bytes([len(beside) // 8])


def tekken():
    tokens = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b"he"]
    vocab = [{"rank": i, "token_bytes": base64.b64encode(token).decode(), "token_str": None} for i, token in enumerate(tokens)]
    special = [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(["<unk>", "<s>", "</s>"])]
    for first, last in [(0, 259), (97, 102)]:
        some = [dict(token, rank=i) for i, token in enumerate(vocab[first:last])]
        yield dumps({"config": {"pattern": TEKKEN, "default_vocab_size": len(some) + 4, "default_num_special_tokens": 4},
                     "vocab": some, "special_tokens": special})


def gguf_text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_value(value):
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    kind = {str: 8, int: 5, float: 6}[type(value[0])]
    entries = b"".join(gguf_text(e) if kind == 8 else struct.pack("<i" if kind == 5 else "<f", e) for e in value)
    return struct.pack("<IIQ", 9, kind, len(value)) + entries


def gguf_file(metadata, tensors):
    """Tensors are (name, extents with the fastest first, type, bytes)."""
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)), b""
    for key, value in metadata.items():
        head += gguf_text(key) + gguf_value(value)
    for name, extents, kind, content in tensors:
        head += gguf_text(name) + struct.pack("<I", len(extents)) + b"".join(struct.pack("<Q", e) for e in extents)
        head += struct.pack("<IQ", kind, len(data))
        data += content + b"\0" * (-len(content) % 32)
    return head + b"\0" * (-len(head) % 32) + data


def gguf():
    blocks = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
              11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 30: (1, 2)}  # values, bytes

    def tensor(name, extents, kind):
        count = 1
        for extent in extents:
            count *= extent
        values, size = blocks[kind]
        return name, extents, kind, bytes((i * 7 + 3) % 251 for i in range(count // values * size))

    for kind, (values, _) in blocks.items():
        yield gguf_file({"general.architecture": "llama"}, [tensor("token_embd.weight", [values, 2], kind)])
    tokens = {"llama": ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581t", "he", "\u2581", "t", "h", "e"],
              "gpt2": ["<|end|>", *map(chr, [*range(33, 127), *range(161, 173), *range(174, 256)]), "\u0120", "he", "the"]}
    for architecture, vocabulary in [("llama", "llama"), ("qwen3", "gpt2")]:
        listed = tokens[vocabulary]
        metadata = {"general.architecture": architecture, "tokenizer.ggml.model": vocabulary, "tokenizer.ggml.tokens": listed,
                    "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.add_bos_token": True}
        sizes = {"block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 32,
                 "attention.head_count": 2, "attention.head_count_kv": 1, "rope.freq_base": 10000.0,
                 "attention.layer_norm_rms_epsilon": 1e-5, "vocab_size": len(listed)}
        metadata |= {f"{architecture}.{key}": value for key, value in sizes.items()}
        if vocabulary == "llama":
            metadata |= {"tokenizer.ggml.scores": [-float(i) for i in range(len(listed))],
                         "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * 6}
        else:
            metadata |= {"tokenizer.ggml.pre": "smollm", "tokenizer.ggml.merges": ["h e", "t he"]}
        shapes = {"token_embd": [32, len(listed)], "output_norm": [32]}
        shapes |= {f"blk.0.{name}": shape for name, shape in {
            "attn_norm": [32], "attn_q": [32, 32], "attn_k": [32, 16], "attn_v": [32, 16], "attn_output": [32, 32],
            "ffn_norm": [32], "ffn_gate": [32, 32], "ffn_up": [32, 32], "ffn_down": [32, 32]}.items()}
        if architecture == "qwen3":
            shapes |= {"blk.0.attn_q_norm": [16], "blk.0.attn_k_norm": [16]}
        yield gguf_file(metadata, [tensor(f"{name}.weight", shape, 0 if len(shape) == 1 else 2) for name, shape in shapes.items()])


def parquet():
    for number, content in enumerate(json.loads((ROOT / "tests/fuzz/parquet_seeds.json").read_text())):
        for choice in range(3):  # rows, texts, some of the texts
            yield bytes([choice + 3 * (number % 4)]) + base64.b64decode(content)


def recipe():
    for file in sorted(ROOT.glob("recipes/**/*.yaml")):
        yield file.read_bytes()
    yield (ROOT / "recipes/quickstart.yaml").read_bytes() + b"\n%%\nstages.student.optim.lr=5e-5\nseed=3\n"


def text():
    lines = b'{"text": "one", "x": [1, {"y": []}]}\n{"text": "tw\\u00e9"}\n\n{"x": 1}\n'
    zstd = bytes.fromhex("28b52ffd200f7900007b2274657874223a226f6e65227d0a")  # {"text":"one"} as it stands
    yield b"\x10one\n\ntwo aa three\n"
    yield b"\x09" + lines
    yield b"\x02" + gzip.compress(lines, mtime=0)
    yield b"\x04" + lines
    yield b"\x07" + zstd
    yield b"\x03" + zstd * 2 + bytes.fromhex("502a4d1804000000") + b"skip"


def run_directory():
    stage = {"name": "a", "kind": "evaluate", "models": ["x"], "data": ["books"]}
    result = {"kind": "evaluate", "stage": "a", "models": [{"name": "<QZX", "domains": {"books": {"loss": 1.5, "perplexity": 4.4}}}],
              "prompts": [{"prompt": "\"QZY onload=", "answers": ["b"]}]}
    metrics = [{"stage": "a", "step": step, "loss": 2.0 / step, "tokens": 64 * step} for step in (1, 2, 3)]
    yield b"\0".join([dumps({"version": 1, "data": {"books": {"path": "b.txt"}}, "stages": [stage]}), dumps({"starts": [{"version": "0.1"}]}),
                      b"\n".join(map(dumps, metrics)) + b"\n", dumps(result)])


def flights():
    yield b""
    yield bytes([1, 16, 0, 0, 7, 2, 200, 2, 0, 255])


def lineage():
    kept = {"blocks": [0, 1], "kv_groups": [[0], [0]], "channels": [[0, 1, 2, 3], [0, 1, 2, 3]], "hidden": [0, 1, 2, 3],
            "teacher_blocks": 2, "teacher_hidden": 4, "pattern": "", "sparse_layers": []}
    yield dumps({"lineage": kept})
    yield dumps({"lineage": dict(kept, pattern="2:4", sparse_layers=["model.layers.0.mlp.up_proj.weight"])})


def cursor():
    source = {"name": "a", "epoch": 1, "window": 2, "taken": 3, "start": [0, 1, 2, 0], "documents": 4, "bytes": 5, "tokens": 6,
              "skipped_lines": 0}
    yield dumps({"taken": 1, "sequences": 2, "offset_tokens": 3, "sources": [source]})


def task():
    """A task of each kind with two documents."""
    head = "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl}}\ntest_split: test\nfewshot_split: test\nnum_fewshot: 1\n"
    rows = dumps({"q": "one", "c": ["a", "b"], "g": 0}) + b"\n" + dumps({"q": "two", "c": ["c", "d"], "g": 1}) + b"\n"
    texts = "doc_to_text: \"Q: {{q | regex_replace('(o)', '<\\\\1>')}}\"\ndoc_to_target: g\n"
    kinds = ("output_type: multiple_choice\ndoc_to_choice: c\nmetric_list: [{metric: acc_mutual_info}, {metric: brier_score}]\n",
             "output_type: multiple_choice\ndoc_to_choice: \"{{ [c[0] ~ q, 'x'] }}\"\nfewshot_config: {sampler: first_n}\n",
             "output_type: generate_until\nfilter_list: [{name: f, filter: [{function: regex, regex_pattern: '(a)|([b-d]+)'}, {function: take_first}]}]\n")
    for kind in kinds:
        yield (head + texts + kind).encode() + b"\n%%\n" + rows
    yield (head + "doc_to_text: ''\ndoc_to_target: q\noutput_type: loglikelihood_rolling\n").encode() + b"\n%%\n" + rows


def chat_template():
    """Those of the oracle, whose module needs packages that are not here."""
    tree = ast.parse((ROOT / "tests/oracles/chat.py").read_text())
    found = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    for template in ast.literal_eval(found["TEMPLATES"]).values():
        yield template.encode()
    for line in ast.literal_eval(found["EXPRESSIONS"]).split("\n"):
        yield b"{{ " + line.encode() + b" }}"
    yield b"{% for m in messages %}{{ m.content }}{% endfor %}\n%%\n" + dumps([{"role": "user", "content": "x"}])


TARGETS = [chat_template, safetensors, weight_index, config, tokenizer, sentencepiece, tekken, gguf, parquet, recipe, task, text, run_directory, flights, lineage, cursor]


def words():
    """Names that the readers look for, as a dictionary of libFuzzer."""
    found = {"9223372036854775807", "1e308", "-1", "null", "true"}
    for file in ROOT.glob("retort/**/*.cpp"):
        if "ops" not in file.parts and file.name != "unicode_tables.cpp":
            found |= set(re.findall(r'"([A-Za-z0-9_.<>|/:]{2,40})"', file.read_text()))
    return "".join(f'"{word}"\n' for word in sorted(found) if not word.endswith(".h"))


def main():
    out = Path(sys.argv[1])
    for target in TARGETS:
        folder = out / target.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(target()):
            (folder / f"seed{number}").write_bytes(seed)
    (out / "words.dict").write_text(words())


if __name__ == "__main__":
    main()
