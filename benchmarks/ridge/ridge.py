#!/usr/bin/env python3
"""What a fit of down_proj to fewer channels is worth, by the tokens that it is fitted to and by its ridge.

    benchmarks/ridge/ridge.py MODEL --text FIT.txt --other OTHER.txt [--blocks 3 14 26] [--tokens 4096 16384 65536]

A third of the channels of single MLPs goes, those with the least sum |W| ||a||; down_proj is fitted to the others by least squares
with a ridge of a fraction of each input's square.  The figures are the squared error of the MLP's output relative to its square, on
text behind that of the fit in the same file and on another file.  MODEL is a directory that transformers reads, or a GGUF file, for
which transformers wants the packages gguf and accelerate.  Prints a table in Markdown.
"""

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

RIDGES = [0.01, 0.1, 0.3, 1.0]
LENGTH = 512


def load(path):
    where, more = (str(path.parent), {"gguf_file": path.name}) if path.suffix == ".gguf" else (str(path), {})
    model = AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, **more).eval()
    return model, AutoTokenizer.from_pretrained(where, **more)


def sequences(tokenizer, text, tokens):
    ids = tokenizer(text, add_special_tokens=False, truncation=False)["input_ids"][:tokens]
    return torch.tensor(ids[:len(ids) // LENGTH * LENGTH]).view(-1, LENGTH)


def inputs_of(model, ids, blocks):
    """Inputs of down_proj of each block, [tokens, channels]; the blocks behind the last one are not computed."""
    found = {block: [] for block in blocks}
    layers = model.model.layers
    hooks = [layers[block].mlp.down_proj.register_forward_pre_hook(
        lambda _, inputs, block=block: found[block].append(inputs[0].flatten(0, -2).clone())) for block in blocks]
    model.model.layers = layers[:max(blocks) + 1]
    with torch.no_grad():
        for batch in ids.split(8):
            model.model(batch, use_cache=False)
    model.model.layers = layers
    for hook in hooks:
        hook.remove()
    return {block: torch.cat(parts) for block, parts in found.items()}


def error(weight, kept, fitted, inputs):
    outputs = inputs @ weight.T
    return ((inputs[:, kept] @ fitted.T - outputs).square().sum() / outputs.square().sum()).item()


def fits(weight, inputs, share):
    """The channels that stay, and down_proj for them: as it was, then fitted with each ridge."""
    products = inputs.T @ inputs
    score = weight.abs().sum(0) * products.diagonal().sqrt()
    kept = score.topk(round(share * len(score))).indices.sort().values
    gap = weight @ products[:, kept] - weight[:, kept] @ products[kept][:, kept]
    yield kept, weight[:, kept]
    for ridge in RIDGES:
        damped = products[kept][:, kept].double()
        damped.diagonal().mul_(1 + ridge)
        yield kept, weight[:, kept] + torch.cholesky_solve(gap.double().T, torch.linalg.cholesky(damped)).T.float()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--other", type=Path, required=True)
    parser.add_argument("--blocks", type=int, nargs="+", default=[3, 14, 26])
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 16384, 65536])
    parser.add_argument("--judge-tokens", type=int, default=8192)
    parser.add_argument("--share", type=float, default=2 / 3, help="of the channels that stay")
    arguments = parser.parse_args()
    model, tokenizer = load(arguments.model)
    most = max(arguments.tokens)
    ids = sequences(tokenizer, arguments.text.read_text(errors="replace"), most + arguments.judge_tokens)
    if len(ids) * LENGTH < most + arguments.judge_tokens // 2:
        parser.error(f"{arguments.text} has only {len(ids) * LENGTH} tokens, expected {most + arguments.judge_tokens}")
    other = sequences(tokenizer, arguments.other.read_text(errors="replace"), arguments.judge_tokens)
    fit, same, foreign = (inputs_of(model, part, arguments.blocks) for part in (ids[:most // LENGTH], ids[most // LENGTH:], other))
    print("| block | fitted tokens | of an input | text | not fitted |" + "".join(f" {ridge:g} |" for ridge in RIDGES))
    print("|---:|---:|---:|---|" + "---:|" * (1 + len(RIDGES)))
    for block in arguments.blocks:
        weight = model.model.layers[block].mlp.down_proj.weight.data
        for tokens in arguments.tokens:
            made = list(fits(weight, fit[block][:tokens], arguments.share))
            for name, inputs in (("same", same[block]), ("other", foreign[block])):
                cells = "".join(f" {error(weight, kept, fitted, inputs):.4f} |" for kept, fitted in made)
                print(f"| {block} | {tokens} | {tokens / len(made[0][0]):.0f} | {name} |{cells}", flush=True)


if __name__ == "__main__":
    main()
