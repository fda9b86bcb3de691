#!/usr/bin/env python3
"""Rates of a model's products by `retort bench gemm`, beside those of PyTorch on the same shapes, in turn.

    PYTHON benchmarks/products/products.py --program build/release/cli/retort --model MODEL [--dtype fp32] [--tokens 2048] [--rounds 2]

The gradient of weights is added to a sum in float32, as training does; PyTorch rounds a product of bfloat16 before it adds it.  Operands
are irregular numbers, because a processor's clock depends on the bits that it multiplies.  The faster of all rounds counts.  Prints a
Markdown table.  Takes PyTorch.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def measured(options):
    """Rates by product and pass, with the shapes of each."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rates.json"
        done = subprocess.run([options.program, "bench", "gemm", options.model, "--dtype", options.dtype, "--tokens", str(options.tokens),
                               "--seconds", str(options.seconds), "--out", out], capture_output=True, text=True,
                              env=dict(os.environ, OMP_NUM_THREADS=str(options.threads)))
        if done.returncode:
            sys.exit(done.stderr)
        return json.loads(out.read_text())["dtypes"][options.dtype]["products"]


def work(product, dtype):
    tokens, rows, columns = product["tokens"], product["rows"], product["columns"]
    random = lambda *shape: torch.randn(shape).to(dtype)  # noqa: E731
    if product["pass"] == "forward":
        x, weight = random(tokens, columns), random(rows, columns)
        return lambda: x @ weight.t()
    gradient = random(tokens, rows)
    if product["pass"] == "input gradient":
        weight = random(rows, columns)
        return lambda: gradient @ weight
    x, total = random(tokens, columns), torch.zeros(rows, columns)
    if dtype == torch.float32:
        return lambda: torch.addmm(total, gradient.t(), x, out=total)
    return lambda: total.add_(gradient.t() @ x)


def rate(product, seconds, options):
    run = work(product, TYPES[options.dtype])
    run()
    best, end = float("inf"), time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        run()
        best = min(best, time.monotonic() - start)
    return 2.0 * product["tokens"] * product["rows"] * product["columns"] / best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", choices=TYPES, default="fp32")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=6, help="of each program in a round")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ours, theirs = {}, {}
    for _ in range(options.rounds):
        products = measured(options)
        for product in products:
            name = f"{product['product']}: {product['rows']} x {product['columns']}, {product['pass']}, {product['tokens']} tokens"
            ours[name] = max(ours.get(name, 0), product["flops_per_second"])
            theirs[name] = max(theirs.get(name, 0), rate(product, options.seconds / len(products), options))
    print("| product | PyTorch, GFLOP/s | Retort | ratio |\n|---|---:|---:|---:|")
    for name, flops in ours.items():
        print(f"| {name} | {theirs[name] / 1e9:.0f} | {flops / 1e9:.0f} | {flops / theirs[name]:.2f} |")


if __name__ == "__main__":
    main()
