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
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "decode"))
from baseline import SHAPES  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retort", default="build/release/cli/retort")
    parser.add_argument("--shape", choices=list(SHAPES), default="smollm2-135m")
    parser.add_argument("--tokenizer", type=Path, required=True, help="a directory with tokenizer.json of that vocabulary")
    parser.add_argument("--text", type=Path, required=True, help="what prompts are cut from")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--texts", type=int, nargs="+", default=[4, 32, 64], help="for each batch size")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
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


def make_prompts(arguments, count):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(arguments.tokenizer / "tokenizer.json"))
    ids = tokenizer.encode(arguments.text.read_text(encoding="utf-8", errors="replace")[:2_000_000], add_special_tokens=False).ids
    rng = random.Random(1)
    prompts = []
    for _ in range(count):
        length = rng.randint(32, 512)
        begin = rng.randrange(len(ids) - length)
        prompts.append(tokenizer.decode(ids[begin:begin + length]))
    return prompts


def retort_rate(arguments, directory, prompts, batch, work):
    asked, out = work / "prompts.jsonl", work / "out.jsonl"
    asked.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    out.unlink(missing_ok=True)
    found = subprocess.run([arguments.retort, "generate", str(directory), "--prompts", str(asked), "--out", str(out),
                            "--max-new-tokens", str(arguments.new_tokens), "--batch", str(batch), "--dtype", arguments.dtype,
                            "--json", "-q"], check=True, capture_output=True, text=True)
    result = json.loads(found.stdout)
    assert result["new_tokens"] == len(prompts) * arguments.new_tokens, result
    return result["new_tokens"] / result["seconds"]


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
            prompts = make_prompts(arguments, count)
            sides = {"retort": lambda: retort_rate(arguments, directory, prompts, batch, work),
                     "transformers": lambda: other.rate(prompts, batch)}
            rates = {side: [] for side in sides}
            for number in range(arguments.rounds):
                for side in sorted(sides, reverse=number % 2 == 1):
                    rates[side].append(round(sides[side](), 1))
            medians = {side: statistics.median(values) for side, values in rates.items()}
            print(json.dumps({"dtype": arguments.dtype, "batch": batch, "texts": count, "new_tokens": arguments.new_tokens,
                              "tokens_per_second": rates, "ratio": round(medians["retort"] / medians["transformers"], 2)}),
                  flush=True)


if __name__ == "__main__":
    main()
