#!/usr/bin/env python3
"""LAMBADA's last words and PIQA, by log-likelihoods, of models that `retort` reads.

    tasks.py --program build/release/cli/retort --lambada lambada_openai.jsonl --piqa piqa.jsonl MODEL [MODEL ...]

The rules are those of lm-evaluation-harness without examples: context and continuation are encoded together and divided at
the length of the encoded context; the score is the sum of log-likelihoods of the continuation; `acc` takes the choice with
the highest sum, `acc_norm` divides it by the choice's characters.  Each item begins with the begin-of-text token where the
tokenizer of the model adds one (SmolLM2's does not), or as --bos says.  The last column of a table is the standard error.
Lines of LAMBADA have "context" and "continuation", those of PIQA "query", "choices" and "gold".  --items takes the first so
many of each.  --keep FILE takes models that were scored before from there, and adds the others: a run that was stopped goes on.
"""

import argparse
import hashlib
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

FILLER = " a"  # one token each, however many stand together
WINDOW_STEP = 32


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


def token_ids(options, model, texts, path, *flags):
    output = call(options, "tokenize", model, written(texts, path), "--json", *flags)
    return [json.loads(line)["ids"] for line in output.splitlines()]


def begins_with_bos(options, model, folder):
    if options.bos != "model":
        return options.bos == "always"
    alone, whole = (token_ids(options, model, ["a"], folder / "probe.jsonl", *flags)[0] for flags in (["--no-special"], []))
    return whole[0] != alone[0]


def records(options, model, texts, folder, *flags):
    """Of `retort eval`, one for each window: ids, and a loss for each but the first."""
    scores = folder / "scores.jsonl"
    call(options, "eval", model, "--text", written(texts, folder / "windows.jsonl"), "--per-token", str(scores), "--dtype", "fp32", "--device", options.device,
         "--quiet", *flags)
    with scores.open() as file:
        return [json.loads(line) for line in file]


def records_without_bos(options, model, texts, ids, folder):
    """A window for each text.  Windows are of one size and follow each other, so a filler stands behind each text; the last
    token of a window is the first of the next."""
    size_of = [math.ceil(len(tokens) / WINDOW_STEP) * WINDOW_STEP for tokens in ids]
    found = [None] * len(texts)
    for size in sorted(set(size_of)):
        group = [i for i, other in enumerate(size_of) if other == size]
        pairs = [(texts[i], FILLER * (size - len(ids[i]))) for i in group]
        windows = [text for pair in pairs for text in pair if text]
        for i, record in zip(group, records(options, model, windows, folder, "--no-bos", "--context", str(size + 1)), strict=True):
            found[i] = record
    return found


def log_likelihoods(options, model, requests, folder):
    """Of each continuation, behind its context."""
    texts = [context + continuation for context, continuation in requests]
    ids, contexts = (token_ids(options, model, some, folder / "texts.jsonl", "--no-special") for some in (texts, [context for context, _ in requests]))
    bos = begins_with_bos(options, model, folder)
    found = records(options, model, texts, folder, "--rolling") if bos else records_without_bos(options, model, texts, ids, folder)
    sums = []
    for record, tokens, context in zip(found, ids, contexts, strict=True):
        if record["ids"][bos : bos + len(tokens)] != tokens:
            sys.exit(f"tasks: {model}: windows and texts have other tokens; say --bos always, or choose another filler")
        sums.append(-sum(record["nll"][bos + len(context) : bos + len(tokens)]))
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


def checksum(model, *given):
    """Of all that scores follow from but the program: the files of the model, and what is `given`."""
    model = Path(model)
    digest = hashlib.sha256(json.dumps(given).encode())
    for path in sorted(model.iterdir()) if model.is_dir() else [model]:
        if path.suffix in {".safetensors", ".json", ".gguf"}:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def scored(options, model, last_words, questions):
    with tempfile.TemporaryDirectory() as folder:
        first = lambada(log_likelihoods(options, model, lambada_requests(last_words), Path(folder)))
        second = piqa(log_likelihoods(options, model, piqa_requests(questions), Path(folder)), questions)
    return {"lambada": first, "piqa": second}


def scored_once(options, model, last_words, questions):
    """From the file of what was kept, or anew, and then kept there."""
    if not options.keep:
        return scored(options, model, last_words, questions)
    key = checksum(model, options.bos, options.device, last_words, questions)
    for line in options.keep.read_text(encoding="utf-8").splitlines() if options.keep.exists() else []:
        if line.endswith("\t" + key):  # a line that was cut short has no key
            return json.loads(line.split("\t")[0])
    scores = scored(options, model, last_words, questions)
    with options.keep.open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps(scores)}\t{model}\t{key}\n")
    return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--program", default="retort")
    parser.add_argument("--lambada", type=Path, required=True)
    parser.add_argument("--piqa", type=Path, required=True)
    parser.add_argument("--items", type=int, default=0, help="of each; 0: all")
    parser.add_argument("--device", default="cpu", help="of retort eval")
    parser.add_argument("--bos", choices=["model", "always", "never"], default="model", help="the begin-of-text token")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="scores that are not computed twice")
    options = parser.parse_args()
    if options.keep:
        options.keep.open("a").close()  # a place that cannot be written is found before the first model is scored
    last_words, questions = lines_of(options.lambada, options.items), lines_of(options.piqa, options.items)
    print("| model | LAMBADA, NLL of the last word | | PIQA, acc | acc_norm | |\n|---|---:|---:|---:|---:|---:|")
    for model in options.models:
        scores = scored_once(options, model, last_words, questions)
        first, second = scores["lambada"], scores["piqa"]
        print(f"| {Path(model).name} | {first['last_word_nll']:.3f} | {first['standard_error']:.3f} "
              f"| {100 * second['acc']:.1f} % | {100 * second['acc_norm']:.1f} % | {100 * second['standard_error']:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
