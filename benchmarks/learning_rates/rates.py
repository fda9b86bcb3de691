#!/usr/bin/env python3
"""Which learning rate heals a pruned model, by the width of the model.

    rates.py --program build/release/cli/retort --model MODEL --text FILE [--other FILE] [--tokens 40k 300k] [--out DIR]

MODEL loses a fifth of its parameters (`units: per_layer`, `additive`), or --pruned names a model that did.  Each student then
learns the same tokens by the default losses with one rate of --factors / hidden_size.  With --random, models of its shape begin
with random weights.  --sequences is of a step, 512 tokens each.
Prints a Markdown table of the losses above the whole model on held-out documents, nats per token.  Goes on where it was
stopped: runs lie in --out, which is of one choice of --tokens, --factors and --pruned.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path


def hidden_size(options):
    shown = subprocess.run([options.program, "info", options.model, "--json"], capture_output=True, text=True)
    if shown.returncode:
        sys.exit(f"rates: {shown.stderr.strip()}")
    return json.loads(shown.stdout)["hidden_size"]


def config_of(model):
    return Path(model) / "config.json" if Path(model).is_dir() else Path(model)


def student(options, start, name, tokens, rate):
    trained = {"data": ["text"], "tokens": tokens, "evaluate_every_steps": 0, "batch": {"sequences": options.sequences}, "optim": {"lr": rate}}
    if options.random:
        return {"name": name, "kind": "train", "config": str(config_of(options.model)), "tokenizer": options.model, **trained}
    return {"name": name, "kind": "distill", "from": start, "teacher": options.model, **trained}


def recipe(options, hidden):
    sources = ["text"] + (["other"] if options.other else [])
    data = {"text": {"path": options.text}}
    if options.other:
        data["other"] = {"path": options.other, "separator": "\n\n\n", "held_out": {"every": 2}}
    stages = []
    if not options.pruned and not options.random:
        stages.append({"name": "pruned", "kind": "prune", "from": options.model, "data": ["text"], "target": {"parameters": "80%"},
                       "units": "per_layer", "search": {"method": "additive", "budget_tokens": "120k"}, "calibration_tokens": "32k"})
    start = options.pruned or "pruned"
    for tokens in options.tokens:
        students = []
        for factor in options.factors:
            students.append(f"student_{tokens}_{factor}".replace(".", "_"))
            stages.append(student(options, start, students[-1], tokens, factor / hidden))
        stages.append({"name": f"scores_{tokens}", "kind": "evaluate", "data": sources, "tokens": options.measured,
                       "teacher": options.model, "models": [options.model, *([] if options.random else [start]), *students]})
    return {"version": 1, "data": data, "stages": stages}


def row(model, whole):
    gaps = [of["nll"] - base["nll"] for of, base in zip(model["sources"], whole["sources"])]
    return " | ".join(f"{gap:+.3f}" for gap in gaps)


def table(out, options, hidden):
    for tokens in options.tokens:
        result = json.loads((out / "stages" / f"scores_{tokens}.json").read_text())
        whole, *students = result["models"]
        names = [source["name"] for source in whole["sources"]]
        print(f"\n{Path(options.model).name}, hidden size {hidden}, {tokens} tokens\n")
        print("| learning rate | x hidden size | " + " | ".join(names) + " |\n|---|---|" + "---:|" * len(names))
        if not options.random:
            print(f"| none: pruned | | {row(students.pop(0), whole)} |")
        for factor, model in zip(options.factors, students):
            print(f"| {factor / hidden:.2g} | {factor:g} | {row(model, whole)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/cli/retort")
    parser.add_argument("--model", required=True)
    parser.add_argument("--pruned", help="a model that was pruned before")
    parser.add_argument("--random", action="store_true", help="train models of this shape from random weights instead")
    parser.add_argument("--text", required=True, help="to prune by and to learn from")
    parser.add_argument("--other", help="text of another kind, to measure on")
    parser.add_argument("--tokens", nargs="+", default=["40k", "300k"])
    parser.add_argument("--measured", default="16k", help="tokens of each kind of text that students are measured on")
    parser.add_argument("--factors", nargs="+", type=float, default=[0.012, 0.04, 0.12, 0.36, 1.1])
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/learning_rates"))
    options = parser.parse_args()
    hidden = hidden_size(options)
    options.out.mkdir(parents=True, exist_ok=True)
    run = options.out / (Path(options.model).name.removesuffix(".gguf") + ("-random" if options.random else ""))
    file = options.out / (run.name + ".json")
    file.write_text(json.dumps(recipe(options, hidden), indent=1))
    done = subprocess.run([options.program, "run", file, "--run-dir", run, "--dtype", options.dtype, "--device", options.device],
                          stdout=sys.stderr)
    if done.returncode:
        sys.exit(f"rates: retort ended with {done.returncode}; its own message is above.")
    table(run, options, hidden)


if __name__ == "__main__":
    main()
