#!/usr/bin/env python3
"""Computes reference.json anew with transformers: losses of held-out documents by language, of twenty documents, and greedy
continuations.  Documents and prompts are those that reference.json has already.

usage: models/europa-5m/reference.py MANUALS [STORIES]
  MANUALS  LANGUAGE.jsonl.zst with a document per line, for en, de, fr, es, it, nl and pl
  STORIES  text whose documents end with <|endoftext|>
"""
import json
import math
import subprocess
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "pl"]
CONTEXT, DOCUMENTS, NEW_TOKENS = 512, 60, 48
BEGIN = [0]  # <|endoftext|>, which the tokenizer does not add by itself


def held_out(texts):
    return texts[49::50][:DOCUMENTS]


def of_language(path):
    lines = subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    return held_out([json.loads(line)["text"] for line in lines])


def losses(model, ids):
    """Loss of each token but the first, and whether the likeliest token was right."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1]
    wanted = torch.tensor(ids[1:])
    return torch.nn.functional.cross_entropy(logits, wanted, reduction="none"), logits.argmax(1) == wanted


def measure(model, tokenizer, texts):
    nll, right, tokens, size = 0.0, 0, 0, 0
    for text in texts:
        ids = (BEGIN + tokenizer.encode(text).ids)[:CONTEXT]
        if len(ids) < 2:
            continue
        each, hits = losses(model, ids)
        nll, right, tokens = nll + each.sum().item(), right + hits.sum().item(), tokens + len(ids) - 1
        size += len(tokenizer.decode(ids[1:]).encode())
    return {"tokens": tokens, "nll_per_token": round(nll / tokens, 4), "bits_per_byte": round(nll / math.log(2) / size, 4),
            "top1": round(right / tokens, 4)}


def continued(model, tokenizer, case):
    prompt = BEGIN + tokenizer.encode(case["prompt"]).ids
    made = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
                          max_new_tokens=NEW_TOKENS, pad_token_id=1)[0].tolist()
    return {"prompt": case["prompt"], "ids": made, "text": tokenizer.decode(made)}


def document(model, case):
    each, _ = losses(model, case["ids"])
    return {"language": case["language"], "ids": case["ids"], "mean_nll": round(each.mean().item(), 6),
            "nll_first8": [round(value, 5) for value in each[:8].tolist()]}


def main(manuals, stories=None):
    tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))
    model = AutoModelForCausalLM.from_pretrained(HERE, dtype=torch.float32).eval()
    old = json.loads((HERE / "reference.json").read_text())
    texts = {language: of_language(manuals / f"{language}.jsonl.zst") for language in LANGUAGES}
    if stories is not None:
        texts["stories"] = held_out([text.strip() for text in stories.read_text().split("<|endoftext|>")])
    new = {"note": old["note"], "held_out": {name: measure(model, tokenizer, some) for name, some in texts.items()},
           "docs": [document(model, case) for case in old["docs"]], "greedy": [continued(model, tokenizer, case) for case in old["greedy"]]}
    (HERE / "reference.json").write_text(json.dumps(new, ensure_ascii=False))
    for name, row in new["held_out"].items():
        print(f"| {name} | {row['tokens']} | {row['nll_per_token']} | {row['bits_per_byte']} | {row['top1']} |")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
