#!/usr/bin/env python3
"""Many texts by `retort generate --prompts` and by transformers, in turn: tokens a second at several batch sizes.

Makes a model of a known shape with random weights that are bfloat16 numbers, as published models are, and prompts of 32 to 512
tokens cut from TEXT.  Both sides make the same number of new tokens, greedily, in the same type, with the same threads.  Loading
counts for neither; reading the prompts counts for both.  Each round runs both, the order changes from round to round.  Prints a
JSON object for each batch size: tokens/s of all rounds, and the ratio of the medians.

Needs torch, transformers and safetensors.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "decode"))
import sides  # noqa: E402
from baseline import SHAPES  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="smollm2-135m")
    sides.add_arguments(parser)
    return parser.parse_args()


def make_model(arguments, directory):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(tie_word_embeddings=True, bos_token_id=1, eos_token_id=None, **SHAPES[arguments.shape])
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    for file in arguments.tokenizer.glob("tokenizer*.json"):
        shutil.copy(file, directory)


def retort_rate(arguments, directory, prompts, batch, work):
    tokens, seconds, _ = sides.by_retort(arguments, directory, prompts, batch, work)
    assert tokens == len(prompts) * arguments.new_tokens, tokens
    return tokens / seconds


class Transformers:
    def __init__(self, arguments, directory):
        import torch
        from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

        torch.set_num_threads(arguments.threads)
        self.torch = torch
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[arguments.dtype]
        self.model = AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).eval()
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"), pad_token="<|endoftext|>",
                                                 padding_side="left")
        self.new_tokens = arguments.new_tokens

    def rate(self, prompts, batch):
        start = time.perf_counter()
        with self.torch.inference_mode():
            for first in range(0, len(prompts), batch):
                inputs = self.tokenizer(prompts[first:first + batch], return_tensors="pt", padding=True)
                self.model.generate(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], do_sample=False,
                                    min_new_tokens=self.new_tokens, max_new_tokens=self.new_tokens, pad_token_id=0)
        return len(prompts) * self.new_tokens / (time.perf_counter() - start)


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        directory = work / "model"
        make_model(arguments, directory)
        other = Transformers(arguments, directory)
        for batch, count in zip(arguments.batch, arguments.texts):
            prompts = sides.make_prompts(arguments, count)
            print(json.dumps(sides.in_turn(arguments, batch, count, {
                "retort": lambda: retort_rate(arguments, directory, prompts, batch, work),
                "transformers": lambda: other.rate(prompts, batch)})), flush=True)


if __name__ == "__main__":
    main()
