#!/usr/bin/env python3
"""SparseGPT 2:4 as one would write it with transformers and PyTorch, for time and quality beside Retort's.

Sequential over blocks and over q k v, o, gate up, down; Hessians in float32; columns in blocks of 128; the mask of a group by
w^2 / U_kk^2.  Text is packed as Retort packs it with bos, without regard to documents.  Saves the sparse model and prints
JSON.
"""

import argparse
import glob
import gzip
import json
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

GROUPS = [["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], ["self_attn.o_proj"],
          ["mlp.gate_proj", "mlp.up_proj"], ["mlp.down_proj"]]


def sparsify(weight, hessian, dampening=0.01, block=128):
    weight, hessian = weight.clone(), hessian.clone()
    dead = hessian.diagonal() == 0
    hessian[dead, dead] = 1
    weight[:, dead] = 0
    hessian += dampening * hessian.diagonal().mean() * torch.eye(len(hessian))
    upper = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(hessian)), upper=True)
    for start in range(0, weight.shape[1], block):
        end = min(start + block, weight.shape[1])
        errors = torch.zeros(weight.shape[0], end - start)
        for j in range(start, end):
            if j % 4 == 0:
                score = weight[:, j:j + 4]**2 / upper.diagonal()[j:j + 4]**2
                mask = torch.zeros_like(score, dtype=torch.bool).scatter_(1, score.topk(2, dim=1, largest=False)[1], True)
            kept = weight[:, j].masked_fill(mask[:, j % 4], 0)
            error = (weight[:, j] - kept) / upper[j, j]
            weight[:, j:end] -= error[:, None] * upper[j, j:end][None, :]
            weight[:, j] = kept
            errors[:, j - start] = error
        weight[:, end:] -= errors @ upper[start:end, end:]
    return weight


def calibration(tokenizer, patterns, count, length):
    ids = []
    for path in sorted(path for pattern in patterns for path in glob.glob(pattern)):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            documents = file.read().split("\n\n\n")
        for document in documents[::len(documents) // 40 + 1]:  # some of each file
            ids += [tokenizer.bos_token_id] + tokenizer(document, add_special_tokens=False)["input_ids"]
    step = max(1, len(ids) // length // count)
    sequences = [ids[i * length:(i + 1) * length] for i in range(len(ids) // length)][::step][:count]
    return torch.tensor(sequences)


@torch.no_grad()
def sparsify_model(model, batches):
    inputs, arguments = [], {}

    class Stop(Exception):
        pass

    def capture(module, args, kwargs):
        inputs.append(args[0])
        arguments.update(kwargs)
        raise Stop

    handle = model.model.layers[0].register_forward_pre_hook(capture, with_kwargs=True)
    for batch in batches:
        try:
            model(batch)
        except Stop:
            pass
    handle.remove()
    for layer in model.model.layers:
        modules = dict(layer.named_modules())
        for group in GROUPS:
            hessian, sequences = 0, 0

            def add(module, args):
                nonlocal hessian, sequences
                x = args[0].flatten(0, 1)
                hessian = hessian + x.T @ x
                sequences += args[0].shape[0]

            handle = modules[group[0]].register_forward_pre_hook(add)
            for x in inputs:
                layer(x, **arguments)
            handle.remove()
            for name in group:
                modules[name].weight.data = sparsify(modules[name].weight.data, 2 * hessian / sequences)
        inputs = [layer(x, **arguments) for x in inputs]
        inputs = [x[0] if isinstance(x, tuple) else x for x in inputs]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="models/europa-5m")
    parser.add_argument("--text", nargs="+", default=["/usr/share/debian-reference/debian-reference.*.txt.gz"])
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--out", required=True)
    a = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(a.model)
    model = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32, attn_implementation="sdpa").eval()
    batches = calibration(tokenizer, a.text, a.sequences, a.length).split(4)
    start = time.monotonic()
    sparsify_model(model, batches)
    seconds = time.monotonic() - start
    model.to(torch.bfloat16).save_pretrained(a.out)
    tokenizer.save_pretrained(a.out)
    print(json.dumps({"seconds": seconds, "sequences": sum(len(batch) for batch in batches), "out": a.out}))


if __name__ == "__main__":
    main()
