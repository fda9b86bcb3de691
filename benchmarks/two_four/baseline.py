#!/usr/bin/env python3
"""SparseGPT 2:4 as one would write it with transformers and PyTorch, for time and quality beside Retort's.

Sequential over blocks and over q k v, o, gate up, down; Hessians in float32; columns in blocks of 128; the mask of a group by
w^2 / U_kk^2.  It sees the text that Retort's stage fits to (fitted_text), one document at a time.  Saves the sparse model and prints
JSON: seconds, and for each layer the relative error of its output on that text.
"""

import argparse
import json
import sys
import time
from pathlib import Path

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


def relative_error(weight, sparse, hessian):
    square = lambda matrix: torch.sum((matrix @ hessian) * matrix)
    return float((square(sparse - weight) / square(weight)).sqrt())


@torch.no_grad()
def sparsify_model(model, documents):
    inputs, arguments, errors = [], [], {}

    class Stop(Exception):
        pass

    def capture(module, args, kwargs):
        inputs.append(args[0])
        arguments.append(kwargs)
        raise Stop

    handle = model.model.layers[0].register_forward_pre_hook(capture, with_kwargs=True)
    for document in documents:
        try:
            model(document)
        except Stop:
            pass
    handle.remove()
    for number, layer in enumerate(model.model.layers):
        modules = dict(layer.named_modules())
        for group in GROUPS:
            hessian, sequences = 0, 0

            def add(module, args):
                nonlocal hessian, sequences
                x = args[0].flatten(0, 1)
                hessian = hessian + x.T @ x
                sequences += args[0].shape[0]

            handle = modules[group[0]].register_forward_pre_hook(add)
            for x, given in zip(inputs, arguments):
                layer(x, **given)
            handle.remove()
            for name in group:
                weight = modules[name].weight.data
                modules[name].weight.data = sparsify(weight, 2 * hessian / sequences)
                errors[f"model.layers.{number}.{name}.weight"] = relative_error(weight, modules[name].weight.data, hessian)
        inputs = [layer(x, **given) for x, given in zip(inputs, arguments)]
        inputs = [x[0] if isinstance(x, tuple) else x for x in inputs]
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="models/europa-5m", help="a model directory or a GGUF file")
    parser.add_argument("--ids", default="-", help="a JSON list of token ids on each line, from fitted_text; -: standard input")
    parser.add_argument("--out", required=True)
    a = parser.parse_args()
    path = Path(a.model)
    source = {"pretrained_model_name_or_path": str(path)}
    if path.is_file():
        source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32, attn_implementation="sdpa").eval()
    with sys.stdin if a.ids == "-" else open(a.ids) as file:
        documents = [torch.tensor([json.loads(line)]) for line in file]
    start = time.monotonic()
    errors = sparsify_model(model, documents)
    seconds = time.monotonic() - start
    if path.is_file():  # its values are plain numbers by now
        model.hf_quantizer = None
        del model.config.quantization_config
    model.to(torch.bfloat16).save_pretrained(a.out)
    tokenizer.save_pretrained(a.out)
    print(json.dumps({"seconds": seconds, "tokens": sum(document.numel() for document in documents), "out": a.out,
                      "mean_relative_error": sum(errors.values()) / len(errors), "relative_errors": errors}))


if __name__ == "__main__":
    main()
