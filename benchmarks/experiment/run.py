#!/usr/bin/env python3
"""The experiment: what each search finds at one budget, and what is left of it after distillation.  README.md is the protocol.

Every run of a method with a seed is a recipe for `retort run` with a directory of its own below --out.  Stop it at any moment; the same
command goes on.  The runs come in the order in which they matter, the primary test first; each computes with one thread, as many at once as
there are cores, so that its numbers do not depend on the machine's cores.
"""

import argparse
import concurrent.futures
import ctypes
import dataclasses
import hashlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import documents
from documents import Refused

STOPPED = 85  # as retort's own exit code
LOSSES = [{"kind": "cross_entropy", "weight": 0.25}, {"kind": "kl_divergence", "weight": 1.0, "temperature": 3.0},
          {"kind": "squarehead", "weight": 1.0}]
METHODS = ("tabu", "greedy", "staged", "evolution", "additive", "influence", "random")
REPOSITORY = Path(__file__).resolve().parents[2]
PRCTL = ctypes.CDLL(None).prctl


@dataclasses.dataclass(frozen=True)
class Model:
    """What is the same in all runs with a model."""

    name: str
    sequence_length: int
    calibration_tokens: int
    width_multiple: int
    batch_sequences: int
    lr: float
    test_every: int  # 0: by hash
    test_documents: int  # of each source
    test_characters: int


MODELS = {
    "europa-5m": Model("europa-5m", 512, 10_000, 32, 2, 1.0e-3, 50, 40, 1200),
    "babyllama-tok105": Model("babyllama-tok105", 256, 8_192, 16, 4, 3.0e-4, 0, 120, 1000),
}

# Parameters to keep.  Blocks and halves of blocks are few and large: the reachable size nearest to 60 %.
KEEP = {
    ("europa-5m", "blocks"): 0.5715,  # 6 of 12 blocks
    ("europa-5m", "sub_blocks"): 0.61,  # attentions and MLPs worth 22 attentions
    ("babyllama-tok105", "blocks"): 0.606,  # 3 of 5 blocks
    ("babyllama-tok105", "sub_blocks"): 0.606,
}


@dataclasses.dataclass(frozen=True)
class Run:
    model: str
    space: str
    keep: float
    method: str
    seed: int

    def place(self):
        return Path(self.model) / self.space / f"keep-{self.keep:g}" / self.method / f"seed-{self.seed}"


def planned(options):
    """All runs, the most important first; within a setting seed after seed, so that methods stay paired wherever it stops."""
    seeds = {"europa-5m": 5, "babyllama-tok105": 10}
    settings = [("europa-5m", "per_layer", 0.60, seeds["europa-5m"]), ("babyllama-tok105", "per_layer", 0.60, seeds["babyllama-tok105"])]
    for space in ("blocks", "sub_blocks"):
        settings += [(model, space, KEEP[model, space], seeds[model]) for model in MODELS]
    settings += [("europa-5m", "per_layer", keep, 1) for keep in (0.90, 0.80, 0.70, 0.50)]
    runs = []
    for model, space, keep, count in settings:
        if model == "babyllama-tok105" and not options.babyllama:
            continue
        for seed in range(options.first_seed, options.first_seed + min(count, options.seeds or count)):
            runs += [Run(model, space, keep, method, seed) for method in options.methods]
    return [run for run in runs if str(run.place()).startswith(options.only)]


class Stopped(Exception):
    """A signal came; what was begun goes on with the same command."""


class Experiment:
    def __init__(self, options):
        self.options = options
        self.out = options.out.resolve()
        self.children = set()
        self.lock = threading.RLock()  # of the children; a signal may come while this thread holds it
        self.stopping = self.at_work = False

    def model_directory(self, model):
        return str((REPOSITORY / "models/europa-5m" if model == "europa-5m" else self.options.babyllama).resolve())

    def text(self, model):
        return self.out / "text" / model

    def sources(self, model):
        if model == "europa-5m":
            return {Path(path).name.split(".")[0]: (path, "") for path in self.options.text}
        return {"stories": (self.options.stories, "<|endoftext|>")}

    # -- before the runs ---------------------------------------------------------------------------------------------------

    def prepare(self):
        """Settles what must be the same in all runs, deals out the documents once, and checks them each time."""
        self.out.mkdir(parents=True, exist_ok=True)
        settled = {"budget_tokens": self.options.budget_tokens, "distill_tokens": self.options.distill_tokens,
                   "calibration_tokens": self.options.calibration_tokens, "measure": self.options.measure, "dtype": self.dtype(), "models": {}}
        for model in dict.fromkeys(run.model for run in self.runs):
            settled["models"][model] = dataclasses.asdict(MODELS[model])
            settled["models"][model]["weights"] = sha256(Path(self.model_directory(model)) / "model.safetensors")
            settled["models"][model]["text"] = {name: sha256(path) for name, (path, _) in self.sources(model).items()}
        self.settle(settled)
        for model in settled["models"]:
            self.deal(model)
            self.reference(model)

    def earlier(self):
        path = self.out / "experiment.json"
        return json.loads(path.read_text()) if path.exists() else {"models": {}}

    def dtype(self):
        """Of all students alike, also of those that another machine goes on with; auto as the program decides it where it began."""
        if self.options.dtype == "auto":
            self.options.dtype = self.earlier().get("dtype") or self.decided_dtype()
        return self.options.dtype

    def decided_dtype(self):
        """What a dry run of a student of the first model says."""
        model = self.runs[0].model
        sources = {name: {"path": str(path)} | ({"separator": separator} if separator else {}) for name, (path, separator) in self.sources(model).items()}
        recipe, log = self.out / "dtype.yaml", self.out / "dtype.log"
        write_json(recipe, {"version": 1, "data": sources, "stages": [
            {"name": "student", "kind": "finetune", "from": self.model_directory(model), "data": list(sources), "tokens": self.options.distill_tokens,
             "packing": {"sequence_length": MODELS[model].sequence_length}, "batch": {"sequences": MODELS[model].batch_sequences}}]})
        self.call(["run", str(recipe), "--run-dir", str(self.out / "dtype"), "--dry-run"], log)
        return re.search(r"computing in (\w+) on", log.read_text()).group(1)

    def settle(self, settled):
        path, earlier = self.out / "experiment.json", self.earlier()
        for name, value in settled.items():
            if name != "models" and earlier.get(name, value) != value:
                raise Refused(f"{path}: was begun with {name} {earlier[name]}, found {value}; repeat the command or choose another --out.")
        for model, value in settled["models"].items():
            if earlier["models"].get(model, value) != value:
                raise Refused(f"{path}: was begun with other settings, weights or text of {model}; repeat the command or choose another --out.")
        settled["models"] = {**earlier["models"], **settled["models"]}
        write_json(path, settled)

    def deal(self, model):
        folder, sources = self.text(model), self.sources(model)
        settings = MODELS[model]
        if not (folder / "dealt.json").exists():
            texts = {name: documents.read(path, separator) for name, (path, separator) in sources.items()}
            documents.write(folder, documents.deal(texts, settings.test_every), settings.test_documents, settings.test_characters)
            write_json(folder / "dealt.json", documents.check(folder, sources))
        counts = documents.check(folder, sources)
        if counts != json.loads((folder / "dealt.json").read_text()):
            raise Refused(f"{folder}: has other documents than were written; remove it and start again.")

    def reference(self, model):
        """The whole model and a unigram model on the measured text."""
        path = self.out / model / "reference.json"
        if path.exists():
            return
        dense = self.measured(self.model_directory(model), model, path.parent)
        write_json(path, {"dense": dense, "unigram": self.unigram(model)})

    def unigram(self, model):
        """NLL per token, mean over sources, of each source's token frequencies on its training documents, plus one."""
        tokenizer, values = self.model_directory(model), []
        vocabulary = json.loads((Path(tokenizer) / "config.json").read_text())["vocab_size"]
        for source in self.sources(model):
            counts = [1] * vocabulary
            for ids in self.tokens(tokenizer, documents.piece(self.text(model), "train", source)):
                for token in ids:
                    counts[token] += 1
            measured = self.tokens(tokenizer, documents.piece(self.text(model), self.options.measure, source))
            losses = [math.log(sum(counts) / counts[token]) for ids in measured for token in ids]
            values.append(sum(losses) / len(losses))
        return sum(values) / len(values)

    def tokens(self, tokenizer, path):
        output = self.call(["tokenize", tokenizer, str(path), "--json", "--no-special"])
        return [json.loads(line)["ids"] for line in output.splitlines()]

    # -- one run -----------------------------------------------------------------------------------------------------------

    def recipe(self, run):
        model, settings, text = self.model_directory(run.model), MODELS[run.model], self.text(run.model)
        sources = list(self.sources(run.model))
        piece = lambda set_name, source: str(documents.piece(text, set_name, source))
        data = {}
        for source in sources:
            # What is held out of the text to learn from, the test documents: `documents.check` has compared them before.
            data[source] = {"path": piece("train", source), "held_out": {"path": piece("test", source)}}
            data["search_" + source] = {"path": piece("search", source), "held_out": {"path": piece("test", source)}}
        return {
            "version": 1, "seed": run.seed, "dtype": self.dtype(), "data": data,
            "stages": [
                {"name": "pruned", "kind": "prune", "from": model, "data": ["search_" + source for source in sources],
                 "target": {"parameters": run.keep}, "units": run.space, "width_multiple": settings.width_multiple,
                 "calibration_tokens": self.options.calibration_tokens or settings.calibration_tokens, "sequence_length": settings.sequence_length,
                 "search": {"method": run.method, "budget_tokens": self.options.budget_tokens, "tolerance": 0.005}},
                {"name": "student", "kind": "distill", "from": "pruned", "teacher": model, "data": sources,
                 "tokens": self.options.distill_tokens, "packing": {"sequence_length": settings.sequence_length},
                 "batch": {"sequences": settings.batch_sequences}, "optim": {"lr": settings.lr}, "loss": LOSSES,
                 "evaluate_every_steps": 0, "checkpoint_every_steps": 1000},
            ],
        }

    def carry_out(self, run):
        """The seconds that it took; None for a run that has its result."""
        place = self.out / run.place()
        if (place / "result.json").exists():
            return None
        start = time.monotonic()
        recipe = place / "recipe.yaml"
        write_json(recipe, self.recipe(run))  # JSON is YAML
        command = ["run", str(recipe), "--run-dir", str(place / "run")]
        self.call([*command, "--stage", "pruned"], place / "run.log")
        pruned = stage_result(place, "pruned")
        kept = hashlib.sha256(json.dumps(pruned.pop("kept"), sort_keys=True).encode()).hexdigest()
        result = dataclasses.asdict(run) | {"retort": self.version, "kept": kept, "search": pruned}
        twin = self.twin(run, result["kept"])
        if twin:
            result |= {name: twin[name] for name in ("distill_seconds", "before", "after")} | {"same_student_as": twin["method"]}
        else:
            self.call([*command, "--stage", "student"], place / "run.log")
            result |= {"distill_seconds": stage_result(place, "student")["seconds"],
                       "before": self.measured(place / "run/models/pruned", run.model, place),
                       "after": self.measured(place / "run/models/student", run.model, place)}
        result["seconds"] = time.monotonic() - start
        write_json(place / "result.json", result)
        for weights in place.glob("run/models/*/model.safetensors"):
            weights.unlink()  # the recipe and the seed make it again
        return result["seconds"]

    def twin(self, run, kept):
        """The result of another method that kept the same parts with the same seed: what follows is the same, bit by bit."""
        for path in (self.out / run.place()).parents[1].glob(f"*/seed-{run.seed}/result.json"):
            other = json.loads(path.read_text())
            if other["kept"] == kept and other["retort"] == self.version:
                return other
        return None

    def measured(self, model, name, place):
        """{source: [[targets, summed NLL] of each document]}: every document on its own, in nats."""
        sources = list(self.sources(name))
        paths = [documents.piece(self.text(name), self.options.measure, source) for source in sources]
        place.mkdir(parents=True, exist_ok=True)
        lines = place / "tokens.jsonl"
        bos = json.loads((Path(model) / "config.json").read_text())["bos_token_id"]
        self.call(["eval", str(model), "--text", *map(str, paths), "--rolling", "--context", str(MODELS[name].sequence_length),
                   "--per-token", str(lines), "--json"])
        sums = []
        with lines.open() as file:
            for line in file:
                window = json.loads(line)
                losses = [loss for loss in window["nll"] if loss is not None]
                if window["ids"][0] == bos:  # later windows of a document begin with text
                    sums.append([0, 0.0])
                sums[-1][0] += len(losses)
                sums[-1][1] = round(sums[-1][1] + sum(losses), 6)
        lines.unlink()
        counts = json.loads((self.text(name) / "dealt.json").read_text())[self.options.measure]
        if len(sums) != sum(counts.values()):
            raise Refused(f"{model}: expected scores of {sum(counts.values())} documents, found {len(sums)}; no document may be empty.")
        found, start = {}, 0
        for source in sources:
            found[source], start = sums[start : start + counts[source]], start + counts[source]
        return found

    # -- processes ---------------------------------------------------------------------------------------------------------

    def call(self, arguments, log=None):
        """Runs the program; its output, or with `log` nothing.  The program ends when this one does."""
        with open(log or os.devnull, "ab") as out:
            with self.lock:
                child = subprocess.Popen([self.options.program, *arguments], stdin=subprocess.DEVNULL, stdout=out if log else subprocess.PIPE,
                                         stderr=out if log else subprocess.PIPE, preexec_fn=end_with_parent,
                                         process_group=0, env=os.environ | {"OMP_NUM_THREADS": "1"})
                self.children.add(child)
                if self.stopping:
                    child.terminate()
            output, errors = child.communicate()
        with self.lock:
            self.children.discard(child)
        if child.returncode == STOPPED or self.stopping:
            raise Stopped
        if (code := child.returncode) != 0:
            said = Path(log).read_text(errors="replace") if log else errors.decode(errors="replace")
            raise Refused(f"{' '.join(['retort', *arguments])} ended with code {code}: {said.strip().splitlines()[-1] if said.strip() else ''}")
        return output.decode() if output else ""

    def on_signal(self, *_):
        self.stop()
        if not self.at_work and not self.children:
            raise Stopped

    def stop(self):
        """Once: a second signal would end a child before it has saved.  Whoever waits for a child goes on waiting."""
        with self.lock:
            if self.stopping:
                return
            self.stopping = True
            for child in self.children:
                child.terminate()

    def work(self):
        self.version = self.call(["--version"]).strip()
        self.runs = planned(self.options)
        if self.options.list:
            for run in self.runs:
                print("done" if (self.out / run.place() / "result.json").exists() else "    ", run.place())
            return
        end = time.monotonic() + 3600 * self.options.hours if self.options.hours else math.inf
        self.prepare()
        self.at_work = True
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            began = [pool.submit(self.one_of, number, run, end) for number, run in enumerate(self.runs, 1)]
            try:
                all_begun = all([future.result() for future in concurrent.futures.as_completed(began)])
            except BaseException:
                self.stop()  # the others go on with the next command
                pool.shutdown(cancel_futures=True)
                raise
        if not all_begun:
            raise Stopped

    def one_of(self, number, run, end):
        """Whether there was time to begin it."""
        if self.stopping:
            raise Stopped
        if time.monotonic() > end:
            return False
        seconds = self.carry_out(run)
        if seconds is not None:
            print(f"{time.strftime('%H:%M:%S')}  {number}/{len(self.runs)}  {run.place()}  {seconds:.0f} s", flush=True)
        return True


def end_with_parent():
    """The parent is the thread that starts the program; it waits for its end."""
    PRCTL(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def sha256(path):
    if not Path(path).is_file():
        raise Refused(f"there is no file {path}; check the command.")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write_json(path, value):
    documents.replace(path, (json.dumps(value, indent=1 if path.suffix == ".yaml" else None) + "\n").encode())


def stage_result(place, stage):
    return json.loads((place / "run" / "stages" / f"{stage}.json").read_text())


def count(text):
    return int(float(text[:-1]) * 1000) if text.endswith("k") else int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="retort")
    parser.add_argument("--out", type=Path, required=True, help="directory of the experiment; the same one goes on")
    parser.add_argument("--text", nargs="+", type=Path, required=True, help="documents for europa-5m, a .jsonl file for each language")
    parser.add_argument("--babyllama", type=Path, help="directory of babyllama-tok105; without it its runs are left out")
    parser.add_argument("--stories", type=Path, help="its text, cut at <|endoftext|>")
    parser.add_argument("--only", default="", help="runs whose place begins so, for example europa-5m/per_layer/keep-0.6; see --list")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=0, help="at most so many of each setting")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--measure", choices=("test", "selection"), default="test", help="selection: for choices made before the experiment")
    parser.add_argument("--budget-tokens", type=count, default="400k", help="of each search, in forward passes of the whole model")
    parser.add_argument("--distill-tokens", type=count, default="100k")
    parser.add_argument("--dtype", choices=("auto", "bf16", "fp32"), default="auto", help="of distillation; searches and scores are fp32")
    parser.add_argument("--calibration-tokens", type=count, default="0", help="of the searches, instead of what the protocol says")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs at once, each with one thread; default: one for each core")
    parser.add_argument("--hours", type=float, default=0, help="begin no run after so long; the same command goes on; 0: without end")
    parser.add_argument("--list", action="store_true", help="print the runs in their order, and which are done")
    options = parser.parse_args()
    if options.babyllama and not options.stories:
        parser.error("--babyllama needs --stories")
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    return options


def main():
    experiment = Experiment(arguments())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, experiment.on_signal)
    try:
        experiment.work()
    except Stopped:
        print("stopped; the same command goes on", file=sys.stderr)
        sys.exit(STOPPED)
    except Refused as refused:
        sys.exit(f"experiment: {refused}")


if __name__ == "__main__":
    main()
