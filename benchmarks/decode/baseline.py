#!/usr/bin/env python3
"""Greedy generation by transformers with its cache, for the model and the numbers of tokens of decode.cpp; prints one JSON object.

Needs torch and transformers.  Weights are random unless MODEL is a directory: the time does not depend on them.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

SHAPES = {
    "smollm2-135m": dict(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
                         num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a model directory, or one of " + ", ".join(SHAPES))
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5, help="the fastest counts")
    return parser.parse_args()


def load(name, dtype):
    if Path(name).is_dir():
        return AutoModelForCausalLM.from_pretrained(name, dtype=dtype)
    config = LlamaConfig(tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, **SHAPES[name])
    return LlamaForCausalLM(config).to(dtype)


def main():
    arguments = parse_arguments()
    model = load(arguments.model, {"fp32": torch.float32, "bf16": torch.bfloat16}[arguments.dtype]).eval()
    torch.manual_seed(1)
    prompt = torch.randint(model.config.vocab_size, (1, arguments.prompt_tokens))

    def seconds(tokens):
        start = time.perf_counter()
        with torch.inference_mode():
            model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, use_cache=True,
                           min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=0)
        return time.perf_counter() - start

    seconds(2)
    rounds = [(seconds(1), seconds(arguments.new_tokens + 1)) for _ in range(arguments.rounds)]
    first, all_tokens = (min(column) for column in zip(*rounds))
    print(json.dumps({"dtype": arguments.dtype, "threads": torch.get_num_threads(),
                      "prompt_tokens_per_second": arguments.prompt_tokens / first,
                      "tokens_per_second": arguments.new_tokens / (all_tokens - first)}))


if __name__ == "__main__":
    main()
