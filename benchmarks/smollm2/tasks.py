#!/usr/bin/env python3
"""LAMBADA's last words and PIQA, by log-likelihoods, of models that `retort` reads.

    tasks.py --program build/release/cli/retort --lambada lambada_openai.jsonl --piqa piqa.jsonl MODEL [MODEL ...]

The rules are those of lm-evaluation-harness without examples: context and continuation are encoded together and divided at
the length of the encoded context; the score is the sum of log-likelihoods of the continuation; `acc` takes the choice with
the highest sum, `acc_norm` divides it by the choice's characters.  Each item begins with the begin-of-text token.  The last
column of a table is the standard error.  Lines of LAMBADA have "context" and "continuation", those of PIQA "query",
"choices" and "gold".  --items takes the first so many of each.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path


def lines_of(path, count):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file][: count or None]


def lambada_requests(items):
    return [(item["context"], " " + item["continuation"]) for item in items]


def piqa_requests(items):
    return [(item["query"] + "Answer:", " " + choice) for item in items for choice in item["choices"]]


def call(options, *arguments):
    done = subprocess.run([options.program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"tasks: retort {' '.join(map(str, arguments))}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def written(texts, path):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return str(path)


def token_counts(options, model, texts, path):
    output = call(options, "tokenize", model, written(texts, path), "--json", "--no-special")
    return [len(json.loads(line)["ids"]) for line in output.splitlines()]


def log_likelihoods(options, model, requests, folder):
    """Of each continuation, behind its context."""
    contexts = token_counts(options, model, [context for context, _ in requests], folder / "contexts.jsonl")
    whole = written([context + continuation for context, continuation in requests], folder / "whole.jsonl")
    scores = folder / "scores.jsonl"
    call(options, "eval", model, "--text", whole, "--rolling", "--context", "2048", "--per-token", str(scores), "--dtype", "fp32", "--quiet")
    sums = []
    with scores.open() as file:
        for line, context in zip(file, contexts, strict=True):
            sums.append(-sum(json.loads(line)["nll"][1 + context :]))
    return sums


def lambada(sums):
    mean = -sum(sums) / len(sums)
    deviation = math.sqrt(sum((-value - mean) ** 2 for value in sums) / (len(sums) - 1) / len(sums))
    return {"last_word_nll": mean, "standard_error": deviation, "items": len(sums)}


def piqa(sums, items):
    right = {"acc": 0, "acc_norm": 0}
    for i, item in enumerate(items):
        pair, lengths = sums[2 * i : 2 * i + 2], [len(choice) for choice in item["choices"]]
        right["acc"] += (pair[1] > pair[0]) == item["gold"]
        right["acc_norm"] += (pair[1] / lengths[1] > pair[0] / lengths[0]) == item["gold"]
    shares = {name: count / len(items) for name, count in right.items()}
    return shares | {"standard_error": math.sqrt(shares["acc"] * (1 - shares["acc"]) / len(items)), "items": len(items)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--program", default="retort")
    parser.add_argument("--lambada", type=Path, required=True)
    parser.add_argument("--piqa", type=Path, required=True)
    parser.add_argument("--items", type=int, default=0, help="of each; 0: all")
    options = parser.parse_args()
    last_words, questions = lines_of(options.lambada, options.items), lines_of(options.piqa, options.items)
    print("| model | LAMBADA, NLL of the last word | | PIQA, acc | acc_norm | |\n|---|---:|---:|---:|---:|---:|")
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            first = lambada(log_likelihoods(options, model, lambada_requests(last_words), Path(folder)))
            second = piqa(log_likelihoods(options, model, piqa_requests(questions), Path(folder)), questions)
        print(f"| {Path(model).name} | {first['last_word_nll']:.3f} | {first['standard_error']:.3f} "
              f"| {100 * second['acc']:.1f} % | {100 * second['acc_norm']:.1f} % | {100 * second['standard_error']:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
