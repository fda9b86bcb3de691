#!/usr/bin/env python3
"""SparseGPT by Retort and by PyTorch (baseline.py) in turn, on the same text: seconds, and how far the layers' outputs move.

    in_turn.py --program build/release/cli/retort --fitted-text build/release/benchmarks/two_four/fitted_text --model MODEL --text FILE

Neither permutes or polishes.  Retort's seconds include reading the model, measuring the damage and saving; those of PyTorch are of
the sweep over its layers alone.  Prints a Markdown table.  Standard library only; the Python of --python has torch, transformers
and, for a GGUF file, gguf and accelerate.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built retort")
    parser.add_argument("--fitted-text", required=True, help="the built fitted_text")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--model", required=True, help="a model directory or a GGUF file")
    parser.add_argument("--text", required=True)
    parser.add_argument("--other", help="text for the perplexity of both results, and of the dense model")
    parser.add_argument("--tokens", default="32000", help="of calibration")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, OMP_WAIT_POLICY="passive"), **more)
    if done.returncode:
        sys.exit(f"in_turn: {command[0]}: {done.stderr.strip()}")
    return done.stdout


def by_pytorch(a, ids, folder):
    printed = run([a.python, str(HERE / "baseline.py"), "--model", a.model, "--ids", str(ids), "--out", str(folder / "model")])
    result = json.loads(printed.splitlines()[-1])  # libraries may have warned before
    return result["seconds"], result["mean_relative_error"]


def by_retort(a, folder):
    recipe = {"version": 1, "dtype": "fp32", "data": {"manuals": {"path": a.text}},
              "stages": [{"name": "sparse", "kind": "sparsify", "from": a.model, "data": ["manuals"], "method": "sparse_gpt",
                          "permute": False, "polish": False, "calibration_tokens": a.tokens}]}
    (folder / "recipe.yaml").write_text(json.dumps(recipe))
    run([a.program, "run", str(folder / "recipe.yaml"), "--run-dir", str(folder / "run")])
    result = json.loads((folder / "run/stages/sparse.json").read_text())
    return result["seconds"], statistics.mean(layer["relative_error"] for layer in result["layers"])


def perplexity(a, model):
    result = run([a.program, "eval", str(model), "--text", a.other, "--context", "512", "--dtype", "fp32", "--json"])
    return json.loads(result)["models"][0]["mean"]["perplexity"]


def main():
    a = parse_arguments()
    a.model, a.text = str(Path(a.model).absolute()), str(Path(a.text).absolute())
    rounds = []
    with tempfile.TemporaryDirectory() as place:
        ids = Path(place) / "ids"
        ids.write_text(run([a.fitted_text, a.model, "--text", a.text, "--name", "manuals", "--tokens", a.tokens]))
        for number in range(a.rounds):
            folder = Path(place) / str(number)
            folder.mkdir()
            rounds.append((by_pytorch(a, ids, folder), by_retort(a, folder)))
            if a.other and number == 0:
                perplexities = [perplexity(a, model) for model in (a.model, folder / "model", folder / "run/models/sparse")]
            print(f"round {number + 1}: PyTorch {rounds[-1][0][0]:.1f} s, Retort {rounds[-1][1][0]:.1f} s", file=sys.stderr)
    listed = lambda values, form: ", ".join(format(value, form) for value in values)
    print(f"{datetime.date.today()}, {machine.described()}\n")
    print("| model | PyTorch, s | Retort, s | ratio | mean relative error of layers, both |\n|---|---:|---:|---:|---:|")
    print(f"| {Path(a.model).name} | {listed((p[0] for p, _ in rounds), '.1f')} | {listed((r[0] for _, r in rounds), '.1f')} "
          f"| {listed((p[0] / r[0] for p, r in rounds), '.2f')} | {rounds[0][0][1]:.3f}, {rounds[0][1][1]:.3f} |")
    if a.other:
        print(f"\nPerplexity of {Path(a.other).name}: dense {perplexities[0]:.2f}, by PyTorch {perplexities[1]:.2f}, by Retort {perplexities[2]:.2f}")


if __name__ == "__main__":
    main()
