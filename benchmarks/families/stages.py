#!/usr/bin/env python3
"""Takes a tiny model of every family through every stage, ranking and kind of units, and prints a Markdown table.

  benchmarks/families/stages.py build/release/cli/retort [--only NAME] [--keep DIR]

The models are those of recipes/families and of variants/, from random weights, and the text is made up: a cell says that the program did
what the recipe asks and that the result was read back, not that the result is good.  Standard library only.
"""

import argparse
import collections
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


def resumed(family):
    """Stopped in the middle and started again: the weights of a run that was not stopped."""
    train = [TEACHER.replace("TOKENS", "20k")]
    files = []
    for run in ("runs-whole", "runs-stopped"):
        process = subprocess.Popen(family.command(run, train), cwd=family.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        metrics = family.folder / run / "metrics.jsonl"
        while run == "runs-stopped" and process.poll() is None:
            if metrics.exists() and metrics.read_text().count("\n") > 12:
                process.send_signal(signal.SIGUSR1)
                break
            time.sleep(0.002)
        code = process.wait()
        if code == 85:
            code = family.run(run, train).returncode
        elif run == "runs-stopped":
            return "was not stopped"
        if code:
            return f"**fails** ({code})"
        files.append((family.folder / run / "models" / "teacher" / "model.safetensors").read_bytes())
    return "yes, same bits" if files[0] == files[1] else "**other bits**"


def row_of(family, notes):
    done = family.run("runs-teacher", [TEACHER.replace("TOKENS", "2k")])
    if done.returncode:
        sys.exit(f"{family.name}: {done.stderr}")
    cells = {}
    for column in COLUMNS:
        done = family.run(f"runs-{column.replace(':', '-')}", family.stages_of(column))
        cells[column] = cell_of(done, notes)
        if column == "distill":
            ratio = re.search(r"peak of tensors ([\d.]+) (\w+) \(planned ([\d.]+) (\w+)\)", done.stderr)
            cells["peak / plan"] = f"{float(ratio[1]) / float(ratio[3]):.2f}" if ratio and ratio[2] == ratio[4] else "?"
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
