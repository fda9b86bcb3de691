#!/usr/bin/env python3
"""Takes a tiny model of every family through every stage, ranking and kind of units, and prints a Markdown table.

  benchmarks/families/stages.py build/release/cli/retort [--only NAME] [--keep DIR]

The models are those of recipes/families and of variants/, from random weights, and the text is made up: a cell says that the program did
what the recipe asks and that the result was read back, not that the result is good.  Standard library only.
"""

import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402

DATA = 'version: 1\ndata:\n  text: {path: text.txt, separator: "\\n\\n", held_out: {every: 10}}\nstages:\n'
TRAINED = ("data: [text], tokens: TOKENS, packing: {sequence_length: 64}, batch: {sequences: 2}, optim: {lr: 1.0e-3}, "
           "evaluate_tokens: 256")
TEACHER = "{name: teacher, kind: train, config: model.json, tokenizer: models/europa-5m, " + TRAINED + "}"
PRUNED = ("{name: small, kind: prune, from: MODEL, data: [text], target: {parameters: 93%}, width_multiple: 8, "
          "calibration_tokens: 1k, sequence_length: 64, search: {tolerance: 0.05}MORE}")
MODELS = {path.stem: path for folder in (SOURCE / "recipes" / "families", HERE / "variants") for path in folder.glob("*.json")}
RANKINGS = ["wanda", "activation", "fluctuation", "minitron", "taylor", "obs"]


def trained(tokens):
    return TRAINED.replace("TOKENS", str(tokens))


def pruned(**more):
    return [PRUNED.replace("MORE", "".join(f", {key}: {value}" for key, value in more.items()))]


def stepwise(**more):
    return [s.replace(", search: {tolerance: 0.05}", "") for s in pruned(units="uniform", **more)]


def stage(name, kind, rest):
    return "{name: %s, kind: %s, data: [text], %s}" % (name, kind, rest)


# Column of the table: the stages of a recipe, whose MODEL is the trained one.
COLUMNS = {
    "finetune": ["{name: tuned, kind: finetune, from: MODEL, %s}" % trained(512)],
    "profile": [stage("seen", "profile", "from: MODEL, calibration_tokens: 1k, sequence_length: 64")],
    "per_layer": pruned(units="per_layer", compensate="true"),
    "uniform": stepwise(heads="true", hidden="false"),
    "hidden": stepwise(heads="false", hidden="true"),
    "blocks": [s.replace("93%", "80%").replace("0.05", "0.15") for s in pruned(units="blocks")],
    "sub_blocks": [s.replace("93%", "85%").replace("0.05", "0.12") for s in pruned(units="sub_blocks")],
    "rankings": [s.replace("name: small", f"name: {r}")
                 for r in RANKINGS for s in pruned(units="per_layer", heads="false", channel_ranking=r)],
    "head rankings": [s.replace("name: small", f"name: {r}") for r in RANKINGS for s in pruned(units="per_layer", head_ranking=r)],
    "2:4": [stage("sparse", "sparsify", "from: MODEL, calibration_tokens: 2k, sequence_length: 64")],
    "distill": ["{name: student, kind: distill, from: MODEL, teacher: MODEL, loss: [{kind: cross_entropy}, "
                "{kind: kl_divergence}, {kind: squarehead}], %s}" % trained(1024)],
    "select": ["{name: one, kind: finetune, from: MODEL, %s}" % trained(256),
               "{name: best, kind: select, models: [one, MODEL], teacher: MODEL, %s}" % trained(256)],
    "evaluate": [stage("scores", "evaluate",
                       "models: [MODEL], context: 64, tokens: 1k, prompt: the package, max_new_tokens: 8")],
}


def made_text():
    words = "the package system file of a user and to install debian can be is run with server".split()
    state, documents = 1, []
    for _ in range(200):
        line = []
        for _ in range(60):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            line.append(words[(state >> 16) % len(words)])
        documents.append(" ".join(line))
    return "\n\n".join(documents)


class Family:
    """A folder with the configuration of a family, and the runs in it."""

    def __init__(self, name, program, folder):
        self.name, self.program, self.folder = name, program, folder
        folder.mkdir()
        (folder / "text.txt").write_text(made_text())
        (folder / "model.json").write_bytes(MODELS[name].read_bytes())
        (folder / "models").symlink_to(SOURCE / "models")
        recipe = MODELS[name].with_suffix(".yaml")
        self.heads = not recipe.exists() or ", heads: false" not in recipe.read_text()

    def command(self, run, stages, options=()):
        recipe = self.folder / f"{run}.yaml"
        recipe.write_text(DATA + "".join(f"  - {s}\n" for s in stages))
        return [self.program, "run", recipe.name, "--run-dir", run, "--dtype", "fp32", *options]

    def run(self, run, stages, options=()):
        return subprocess.run(self.command(run, stages, options), cwd=self.folder, capture_output=True, text=True)

    def stages_of(self, column):
        model = "runs-teacher/models/teacher"
        found = [s.replace("MODEL", model) for s in COLUMNS[column]]
        if not self.heads and column == "per_layer":  # they say so themselves under "uniform"
            found = [s if "heads:" in s else s[:-1] + ", heads: false}" for s in found]
        return found


def cell_of(done, notes):
    if done.returncode == 0:
        return "yes"
    sentence = next((line.split("error: ", 1)[1] for line in done.stderr.splitlines() if "error: " in line), done.stderr)
    sentence = re.sub(r"^[^:]*\.yaml:\d+: ", "", sentence)
    if done.returncode not in (2, 4):
        return f"**fails** ({done.returncode}: {sentence})"
    if sentence not in notes:
        notes.append(sentence)
    return f"no ({notes.index(sentence) + 1})"


# One stage of every kind, each from the one before.
ALL_KINDS = ["teacher", "seen", "small", "sparse", "student", "best", "scores"]


def all_kinds(family):
    heads = "" if family.heads else ", heads: false"
    pruned_from = [s.replace("MODEL", "teacher")[:-1] + f", profile: seen{heads}}}" for s in pruned(units="per_layer", compensate="true")]
    return [TEACHER.replace("TOKENS", "4k"), stage("seen", "profile", "from: teacher, calibration_tokens: 1k, sequence_length: 64"),
            *pruned_from, stage("sparse", "sparsify", "from: small, calibration_tokens: 2k, sequence_length: 64"),
            "{name: student, kind: distill, from: sparse, teacher: teacher, %s}" % trained("2k"),
            "{name: best, kind: select, models: [student, small], teacher: teacher, %s}" % trained(512),
            stage("scores", "evaluate", "models: [teacher, small, best], context: 64, tokens: 1k")]


def lines_of(path):
    return path.read_text().count("\n") if path.exists() else 0


def stopped_in(process, folder, log, name):
    """Sends a signal once the stage has begun, or has made a few steps; whether it then stopped before its end."""
    metrics = folder / "metrics.jsonl"
    while process.poll() is None and f" stage {name} (" not in log.read_text():
        time.sleep(0.002)
    before = lines_of(metrics)
    while name in ("teacher", "student") and process.poll() is None and lines_of(metrics) < before + 5:
        time.sleep(0.002)
    if process.poll() is None:
        process.send_signal(signal.SIGUSR1)
    return process.wait() == 85 and not (folder / "stages" / f"{name}.json").exists()


def resumed(family):
    """Stopped in every stage and started again: the weights and scores of a run that was not stopped."""
    stages, stops = all_kinds(family), 0
    done = family.run("runs-whole", stages)
    if done.returncode:
        return f"**fails** ({done.returncode}: {done.stderr[-300:]})"
    log = family.folder / "stopped.log"
    for name in ALL_KINDS:
        with open(log, "w") as errors:
            process = subprocess.Popen(family.command("runs-stopped", stages), cwd=family.folder, stdout=subprocess.DEVNULL, stderr=errors)
            stops += stopped_in(process, family.folder / "runs-stopped", log, name)
    if family.run("runs-stopped", stages).returncode:
        return "**fails**"
    return f"same bits, {stops} stops" if ends_of(family, "runs-whole") == ends_of(family, "runs-stopped") else "**other bits**"


def ends_of(family, run):
    folder = family.folder / run
    weights = {path.parent.name: path.read_bytes() for path in folder.glob("models/*/model.safetensors")}
    scores = json.loads((folder / "stages" / "scores.json").read_text())
    return weights, [(source["nll"], source["tokens"]) for model in scores["models"] for source in model["sources"]]


def ratio_of(log):
    """Of the peak of tensors to the plan, as the log has both."""
    found = re.search(r"peak of tensors ([\d.]+) (\w+) \(planned ([\d.]+) (\w+)\)", log)
    return f"{float(found[1]) / float(found[3]):.2f}" if found and found[2] == found[4] else "?"


def row_of(family, notes):
    done = family.run("runs-teacher", [TEACHER.replace("TOKENS", "2k")])
    if done.returncode:
        sys.exit(f"{family.name}: {done.stderr}")
    cells = {}
    for column in COLUMNS:
        done = family.run(f"runs-{column.replace(':', '-')}", family.stages_of(column))
        cells[column] = cell_of(done, notes)
        if column in ("finetune", "distill"):
            cells[f"peak / plan, {column}"] = ratio_of(done.stderr)
    done = family.run("runs-ranks", family.stages_of("distill") + family.stages_of("2:4"), ["--ranks", "2"])
    cells["2 ranks"] = cell_of(done, notes)
    cells["resumed"] = resumed(family)
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--keep", type=Path, help="a new folder for the runs, instead of a temporary one")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = sorted(name for name in MODELS if arguments.only in name)
    rows, notes = collections.OrderedDict(), []
    with tempfile.TemporaryDirectory() as folder:
        base = arguments.keep or Path(folder) / "runs"
        base.mkdir()
        for name in names:
            rows[name] = row_of(Family(name, arguments.program.resolve(), base / name), notes)
            print(name, rows[name], file=sys.stderr)
    columns = list(next(iter(rows.values())))
    print(f"{time.strftime('%Y-%m-%d')}, {machine.described()}\n")
    print("| | " + " | ".join(rows) + " |\n|---" * 1 + "|" + "---|" * len(rows))
    for column in columns:
        print(f"| {column} | " + " | ".join(cells[column] for cells in rows.values()) + " |")
    print()
    for number, note in enumerate(notes, 1):
        print(f"({number}) {note}")


if __name__ == "__main__":
    main()
