#!/usr/bin/env python3
"""Model directories for a comparison with lm-eval, by transformers.

    make_models.py random --tokenizer DIR --kind llama|gemma3 OUTPUT     a random model whose tokenizer adds a begin token
    make_models.py gguf --tokenizer tokenizer.json FILE.gguf OUTPUT      the fp32 values of a GGUF file's weights

Weights of a random model are drawn from a fixed seed, wide enough that answers differ by more than rounding.
"""

import argparse
import json
from pathlib import Path

import torch
import transformers

SEED = 20
BEGIN, END = "<s>", "</s>"


def with_begin_token(tokenizer):
    """The file's text, with a post-processor that puts the begin token before each text."""
    begin = next(token["id"] for token in tokenizer["added_tokens"] if token["content"] == BEGIN)
    special, text = {"SpecialToken": {"id": BEGIN, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": [special, text],
                                   "pair": [special, text, {"Sequence": {"id": "B", "type_id": 1}}],
                                   "special_tokens": {BEGIN: {"id": BEGIN, "ids": [begin], "tokens": [BEGIN]}}}
    return tokenizer


def rows(tokenizer):
    return 1 + max(*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"]))


def random_model(kind, vocabulary):
    shape = dict(vocab_size=vocabulary, hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=16, max_position_embeddings=512, initializer_range=0.2, bos_token_id=1,
                 eos_token_id=2, pad_token_id=None, tie_word_embeddings=kind == "gemma3")
    if kind == "gemma3":
        shape.update(sliding_window=64, query_pre_attn_scalar=16,
                     layer_types=["sliding_attention", "full_attention", "sliding_attention"])
        return transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**shape))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))


def write_tokenizer(output, tokenizer, begin, end, chat_template=None):
    (output / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    said = {"tokenizer_class": "TokenizersBackend", "backend": "tokenizers", "bos_token": begin, "eos_token": end,
            "clean_up_tokenization_spaces": False}
    if chat_template:
        said["chat_template"] = chat_template
    (output / "tokenizer_config.json").write_text(json.dumps(said, indent=1), encoding="utf-8")


def make_random(options):
    tokenizer = json.loads((options.tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    torch.manual_seed(SEED)
    random_model(options.kind, rows(tokenizer)).float().save_pretrained(options.output)
    write_tokenizer(options.output, with_begin_token(tokenizer), BEGIN, END)


def make_from_gguf(options):
    import gguf
    fields = gguf.GGUFReader(options.model).fields
    word = fields["tokenizer.ggml.tokens"].contents()
    begin, end = (word[fields[f"tokenizer.ggml.{name}_token_id"].contents()] for name in ("bos", "eos"))
    template = fields["tokenizer.chat_template"].contents() if "tokenizer.chat_template" in fields else None
    read = transformers.AutoModelForCausalLM.from_pretrained(options.model.parent, gguf_file=options.model.name, dtype=torch.float32)
    config = type(read.config).from_dict({key: value for key, value in read.config.to_dict().items() if key != "quantization_config"})
    model = type(read)(config)  # what was read from GGUF refuses to be saved
    model.load_state_dict(read.state_dict())
    model.save_pretrained(options.output)
    write_tokenizer(options.output, json.loads(options.tokenizer.read_text(encoding="utf-8")), begin, end, template)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("random")
    command.add_argument("--kind", choices=["llama", "gemma3"], required=True)
    command.set_defaults(make=make_random)
    other = commands.add_parser("gguf")
    other.add_argument("model", type=Path)
    other.set_defaults(make=make_from_gguf)
    for each in (command, other):
        each.add_argument("--tokenizer", type=Path, required=True)
        each.add_argument("output", type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    options.make(options)


main()
