#!/usr/bin/env python3
"""A small random model of every family, with a tokenizer as the family has it.

    make_models.py OUTPUT [--tokenizer DIR] [NAME ...]       OUTPUT/<name>/model/ for each

Weights come from a fixed seed, wide enough that answers differ by more than rounding.  Tokenizers are of both kinds that GGUF
knows: byte-level ones have the words of models/europa-5m and cut text as their family does, the others are made here by
SentencePiece from this project's LICENSE.  --tokenizer gives all of them another one.
A name is that of a family, or as Llama+yarn that of a family with one of its settings; both are in families.py.
"""

import argparse
import io
import json
import shutil
import sys
from pathlib import Path

import sentencepiece
import torch
import transformers

from families import FAMILIES, SETTINGS, SHAPE

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests"))
from oracles._patterns import LLAMA3, QWEN2, TEKKEN  # noqa: E402

SEED = 20

GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = {**GPT2, "use_regex": False}


def cut_by(expression):
    return [{"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}, BYTES]


# Name: how text is cut, whether tokens are taken whole, a begin token before each text, and a normalizer.
BYTE_LEVEL = {
    "llama3": (cut_by(LLAMA3), True, True, None),
    "qwen2": (cut_by(QWEN2), False, False, {"type": "NFC"}),
    "tekken": (cut_by(TEKKEN), True, True, None),
    "digits": ([{"type": "Digits", "individual_digits": True}, GPT2], False, False, None),
    "gpt2": ([GPT2], False, False, {"type": "NFC"}),
}
# Name: whether a space stands before a text.
SENTENCEPIECE = {"pieces": True, "gemma": False}


def write_byte_level(folder, name):
    steps, whole, begins, normalizer = BYTE_LEVEL[name]
    tokenizer = json.loads((SOURCE / "models" / "europa-5m" / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["normalizer"] = normalizer
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0]
    tokenizer["model"]["ignore_merges"] = whole
    if begins:
        begin = "<|endoftext|>"
        special, text = {"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
        tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": [special, text],
                                       "pair": [special, text, {"Sequence": {"id": "B", "type_id": 1}}],
                                       "special_tokens": {begin: {"id": begin, "ids": [0], "tokens": [begin]}}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    said = {"tokenizer_class": "TokenizersBackend", "backend": "tokenizers", "bos_token": "<|endoftext|>",
            "eos_token": "<|endoftext|>", "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(said, indent=1), encoding="utf-8")
    return dict(vocab_size=4096, bos_token_id=0, eos_token_id=0)


def write_sentencepiece(folder, name):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter((SOURCE / "LICENSE").read_text(encoding="utf-8").splitlines()), model_writer=model, model_type="bpe",
        vocab_size=1024, character_coverage=1.0, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=SENTENCEPIECE[name], split_digits=True, allow_whitespace_only_pieces=True,
        num_threads=1, minloglevel=2)
    (folder / "tokenizer.model").write_bytes(model.getvalue())
    said = {"tokenizer_class": "LlamaTokenizer" if SENTENCEPIECE[name] else "GemmaTokenizer", "bos_token": "<s>", "eos_token": "</s>",
            "unk_token": "<unk>", "add_bos_token": True, "add_eos_token": False, "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(said, indent=1), encoding="utf-8")
    return dict(vocab_size=1024, bos_token_id=1, eos_token_id=2)


def make_random(model):
    """Biases and norms begin as constants: here they matter as they do in a trained model."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)


def copy_tokenizer(folder, given):
    """All files of tokenizers in `given`; where none says its begin and end tokens, they are <s> and </s>, or its first one."""
    for file in given.glob("*token*"):
        shutil.copyfile(file, folder / file.name)
    tokenizer = json.loads((given / "tokenizer.json").read_text(encoding="utf-8"))
    ids = {**tokenizer["model"]["vocab"], **{token["content"]: token["id"] for token in tokenizer["added_tokens"]}}
    said = folder / "tokenizer_config.json"
    if not said.exists():
        begin, end = ("<s>", "</s>") if "<s>" in ids else [min(ids, key=ids.get)] * 2
        said.write_text(json.dumps({"tokenizer_class": "TokenizersBackend", "backend": "tokenizers", "bos_token": begin, "eos_token": end}))
    named = json.loads(said.read_text(encoding="utf-8"))
    return dict(vocab_size=1 + max(ids.values()), bos_token_id=ids[named["bos_token"]], eos_token_id=ids[named["eos_token"]])


def words_of(folder, tokenizer, given):
    """Writes the tokenizer; what config.json says of it."""
    if given:
        return copy_tokenizer(folder, given)
    return (write_byte_level if tokenizer in BYTE_LEVEL else write_sentencepiece)(folder, tokenizer)


def make(name, folder, given=None):
    folder.mkdir(parents=True)
    family, _, setting = name.partition("+")
    tokenizer, own = FAMILIES[family]
    more = SETTINGS[family][setting] if setting else {}
    words = words_of(folder, tokenizer, given)
    config = getattr(transformers, family + ("TextConfig" if family == "Gemma3" else "Config"))(**{**SHAPE, **words, **own, **more})
    torch.manual_seed(SEED)
    model = getattr(transformers, family + "ForCausalLM")(config)
    make_random(model)
    model.float().save_pretrained(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all families: " + ", ".join(FAMILIES))
    parser.add_argument("--tokenizer", type=Path, metavar="DIR")
    options = parser.parse_intermixed_args()
    for name in options.names or FAMILIES:
        make(name, options.output / name / "model", options.tokenizer)


if __name__ == "__main__":
    main()
