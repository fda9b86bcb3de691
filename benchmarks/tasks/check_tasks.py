#!/usr/bin/env python3
"""The files of tasks/ beside lm-eval's own tasks of the same names: the same requests and metrics for the same documents.

    check_tasks.py --texts DIR [--program build/release/cli/retort --model MODEL] [--documents DIR]
    check_tasks.py --golden tests/tasks/golden_requests.json

runs in the environment of requirements.txt.  Documents have the shapes of the hub's data sets: some are drawn at random
from awkward pieces of text, others are rebuilt from the flat files of --texts, where it has them.  With --program the
requests that `retort eval` makes of our files are compared too.  --golden writes a few documents of each task with the
requests that lm-eval's own task makes of them, for a test that has no lm-eval.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import datasets
import lm_eval
from lm_eval.tasks import TaskManager

OURS = Path(__file__).resolve().parents[2] / "tasks"
THEIRS = Path(lm_eval.__file__).parent / "tasks"
SEED = 1234
SUBJECTS = ("anatomy", "high_school_computer_science")
PIECES = ["the cat", "[header]", "[title]", " [title]", "[step]", "  ", "Wäre's", "it's", "\"so\"", "don't", "12", ",", ".", "?", "naïve", "]", "[", "{x }",
          "( a )", "' b '", "\" c \"", "= = =", "@-@", "@,@", "@.@", ":", ";", "!", "N", "'s", "s '", "°", "\n", "\n\n", "ÉÀ", "Жук", "ß", "日本", "🙂", "\\n", "'",
          "\u00a0", "\t", "{{x}}", "{% if %}"]


def text(draw, count=8, first="The"):
    return " ".join([first, *(draw.choice(PIECES) for _ in range(draw.randint(1, count)))])


def arc(draw):
    count = draw.choice([3, 4, 4, 5])
    labels = draw.choice([list("ABCDE"), list("12345")])[:count]
    return {"id": "x", "question": text(draw), "choices": {"text": [text(draw, 4) for _ in labels], "label": labels}, "answerKey": draw.choice(labels)}


def hellaswag(draw):
    return {"activity_label": text(draw, 3), "ctx_a": text(draw), "ctx_b": draw.choice(["", text(draw, 4, "she"), text(draw, 3, "DON'T")]),
            "endings": [text(draw, first=draw.choice(["and", " then", "[title] it"])) for _ in range(4)], "label": str(draw.randrange(4))}


def winogrande(draw):
    names = draw.choice([("Ann", "Bob"), ("the 'x'", 'the "y"')])
    return {"sentence": f"{text(draw)} _{draw.choice([' ', ' was _ ', ', '])}{text(draw, 4, 'and')}. ", "option1": names[0], "option2": names[1], "answer": draw.choice("12")}


def piqa(draw):
    return {"goal": text(draw), "sol1": text(draw), "sol2": text(draw), "label": draw.randrange(2)}


def copa(draw):
    return {"premise": text(draw) + draw.choice([".", ". ", "!"]), "choice1": text(draw, 4, draw.choice(["Élan", "I", "Жук"])), "choice2": text(draw, 5), "question": draw.choice(["cause", "effect"]),
            "idx": 0, "label": draw.randrange(2)}


def openbookqa(draw):
    return {"id": "x", "question_stem": text(draw), "choices": {"text": [text(draw, 3) for _ in range(4)], "label": list("ABCD")}, "answerKey": draw.choice([" A", "B", "C", "D"])}


def boolq(draw):
    return {"question": text(draw, 4, "is"), "passage": text(draw, 30), "idx": 0, "label": draw.randrange(2)}


def mmlu(draw):
    return {"question": " " + text(draw) + "\n", "subject": "", "choices": [text(draw, 3) for _ in range(4)], "answer": draw.randrange(4)}


def lambada(draw):
    return {"text": text(draw, 30)}


def wikitext(draw):
    return {"page": text(draw, 80, " ")}


def gsm8k(draw):
    return {"question": text(draw), "answer": f"{text(draw)}\n#### {draw.randint(-9999, 9999):,}"}


def ifeval(draw):
    kinds = ["punctuation:no_comma", "startend:quotation", "detectable_format:title", "detectable_format:constrained_response", "keywords:existence"]
    chosen = draw.sample(kinds, draw.randint(1, 3))
    return {"key": 1, "prompt": text(draw), "instruction_id_list": chosen, "kwargs": [{"keywords": None} for _ in chosen]}


# name: lm-eval's file, data set, its name, splits, documents
TASKS = {
    "arc_easy": ("arc/arc_easy.yaml", "allenai/ai2_arc", "ARC-Easy", ["train", "validation", "test"], arc),
    "arc_challenge": ("arc/arc_challenge.yaml", "allenai/ai2_arc", "ARC-Challenge", ["train", "validation", "test"], arc),
    "hellaswag": ("hellaswag/hellaswag.yaml", "Rowan/hellaswag", None, ["train", "validation"], hellaswag),
    "winogrande": ("winogrande/default.yaml", "allenai/winogrande", "winogrande_xl", ["train", "validation"], winogrande),
    "piqa": ("piqa/piqa.yaml", "baber/piqa", None, ["train", "validation"], piqa),
    "copa": ("super_glue/copa/default.yaml", "aps/super_glue", "copa", ["train", "validation"], copa),
    "openbookqa": ("openbookqa/openbookqa.yaml", "allenai/openbookqa", "main", ["train", "validation", "test"], openbookqa),
    "boolq": ("super_glue/boolq/default.yaml", "aps/super_glue", "boolq", ["train", "validation"], boolq),
    "lambada_openai": ("lambada/lambada_openai.yaml", "EleutherAI/lambada_openai", "default", ["test"], lambada),
    "wikitext": ("wikitext/wikitext.yaml", "EleutherAI/wikitext_document_level", "wikitext-2-raw-v1", ["train", "validation", "test"], wikitext),
    "gsm8k": ("gsm8k/gsm8k.yaml", "openai/gsm8k", "main", ["train", "test"], gsm8k),
    "ifeval": ("ifeval/ifeval.yaml", "google/IFEval", None, ["train"], ifeval),
    **{f"mmlu_{subject}": (f"mmlu/default/mmlu_{subject}.yaml", "cais/mmlu", subject, ["dev", "test"], mmlu) for subject in SUBJECTS},
}
NO_EXAMPLES = {"wikitext", "ifeval"}
OTHER_METRICS = {"wikitext", "ifeval"}  # tasks/README.md says how they differ


def flat(texts, name):
    return [json.loads(line) for line in (texts / name).read_text(encoding="utf-8").splitlines()] if texts and (texts / name).exists() else []


def real(texts, name):
    """Documents of the hub's form, rebuilt from flat files."""
    if name == "arc_easy":
        return [{"id": "x", "question": row["query"].removeprefix("Question: "), "choices": {"text": row["choices"], "label": list("ABCDE")[: len(row["choices"])]},
                 "answerKey": "ABCDE"[row["gold"]]} for row in flat(texts, "arc_easy.jsonl")]
    if name == "piqa":
        return [{"goal": row["query"].removeprefix("Question: ").rstrip("\n"), "sol1": row["choices"][0], "sol2": row["choices"][1], "label": row["gold"]} for row in flat(texts, "piqa.jsonl")]
    if name == "lambada_openai":
        return [{"text": f"{row['context']} {row['continuation']}"} for row in flat(texts, "lambada_openai.jsonl")]
    if name == "copa":
        return [{"premise": row["query"].rsplit(", ", 1)[0] + ".", "choice1": row["choices"][0][:1].upper() + row["choices"][0][1:], "choice2": row["choices"][1],
                 "question": {"because": "cause", "therefore": "effect"}[row["query"].rsplit(", ", 1)[1]], "idx": 0, "label": row["gold"]} for row in flat(texts, "copa.jsonl")]
    if name == "winogrande":
        rows = []
        for row in flat(texts, "winogrande.jsonl"):
            first, second = row["context_options"]
            same = next((i for i, pair in enumerate(zip(first, second)) if pair[0] != pair[1]), min(len(first), len(second)))
            begin = first.rfind(" ", 0, same + 1) + 1
            rows.append({"sentence": f"{first[:begin]}_ {row['continuation']}", "option1": first[begin:], "option2": second[begin:], "answer": "12"[row["gold"]]})
        return rows
    if name == "wikitext":
        return flat(texts, "pages.jsonl")
    return []


def documents(options, name, splits, make):
    """By split."""
    draw = random.Random(name)
    found = {split: [make(draw) for _ in range(3 if options.golden else 40)] for split in splits}
    found[splits[-1]] += real(options.texts, name)[: options.limit]
    if name.startswith("mmlu"):
        for row in (row for rows in found.values() for row in rows):
            row["subject"] = name.removeprefix("mmlu_")
    return found


def write(root, path, name, found):
    folder = root / path / (name or "")
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in found.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def stub_modules():
    """What IFEval's checkers import for rules that are not compared here."""
    for name in ("langdetect", "nltk", "immutabledict"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
    sys.modules["immutabledict"].immutabledict = dict
    if not hasattr(sys.modules["nltk"], "data"):
        sys.modules["nltk"].data = types.SimpleNamespace(find=lambda *_: None)


def loaded(path, shots):
    (task,) = TaskManager(include_defaults=False).load([str(path)])["tasks"].values()
    task.set_config(key="num_fewshot", value=shots)
    task.set_fewshot_seed(seed=SEED)
    task.build_all_requests(limit=None, rank=0, world_size=1)
    return task


def requests_of(task):
    return [(instance.doc_id, instance.idx, instance.args) for instance in task.instances]


def texts_of(task):
    """Context and continuation of each request, by document; a rolling text has no context, a context to go on with no continuation."""
    found = {}
    for instance in task.instances:
        texts = [part for part in instance.args if isinstance(part, str)]
        found.setdefault(instance.doc_id, []).append(["", *texts] if task.OUTPUT_TYPE == "loglikelihood_rolling" else [*texts, ""][:2])
    return list(found.values())


def results_for(task, draw):
    """Metrics of made-up results."""
    values = {}
    for doc_id, document in enumerate(task.eval_docs):
        state = random.Random(f"{draw}-{doc_id}")
        count = len(task.doc_to_choice(document)) if task.config.doc_to_choice else 1
        if task.OUTPUT_TYPE == "generate_until":
            results = [state.choice(["18", "[invalid]", task.doc_to_target(document).split()[-1]])]
        elif task.OUTPUT_TYPE == "loglikelihood_rolling":
            results = [-state.uniform(0, 900)]
        else:
            results = [(-state.uniform(0, 90), state.random() < 0.5) for _ in range(count)]
        values[doc_id] = task.process_results(document, results)
    return values


def compare(name, ours, theirs, what):
    differing = [(our, their) for our, their in zip(ours, theirs) if our != their]
    print(f"{name}: {len(theirs)} {what}, {len(differing) + abs(len(ours) - len(theirs))} differ", flush=True)
    for our, their in differing[:2]:
        print(f"  ours    {our!r:.600}\n  lm-eval {their!r:.600}")
    return len(ours) == len(theirs) and not differing


def answers_for(draw):
    pieces = ["<<", ">>", "<", ">", " ", "a", "\n", ",", '"', "My answer is yes.", "My answer is no", "B c"]
    return "".join(draw.choice(pieces) for _ in range(draw.randint(0, 9)))


def check_rules():
    """The patterns of ifeval.yaml beside IFEval's checkers, on random answers."""
    stub_modules()
    from lm_eval.tasks.ifeval import instructions_registry
    config = TaskManager(include_defaults=False).load([str(OURS / "ifeval.yaml")])["tasks"]["ifeval"]
    names = {"no_comma": "punctuation:no_comma", "quotation": "startend:quotation", "title": "detectable_format:title",
             "constrained_response": "detectable_format:constrained_response"}
    draw, differing, kept = random.Random(5), 0, dict.fromkeys(names, 0)
    for _ in range(100000):
        answer = answers_for(draw)
        for ensemble in config._filters:
            (result,) = ensemble.filters[0]().apply([[answer]], [{}])
            checker = instructions_registry.INSTRUCTION_DICT[names[ensemble.name]](names[ensemble.name])
            checker.build_description()
            right = bool(answer.strip()) and bool(checker.check_following(answer))
            kept[ensemble.name] += right
            if (result[0] == "") != right:
                differing += 1
                if differing < 5:
                    print(f"  {ensemble.name}: {answer!r}: ours {result[0] == ''}, IFEval {right}")
    print(f"ifeval: rules on 100000 answers, {differing} differ; kept {kept}")
    return not differing


def check_retort(options, root, name, shots, theirs):
    file = OURS / ("mmlu/" + name.removeprefix("mmlu_") if name.startswith("mmlu_") else name)
    with tempfile.TemporaryDirectory() as logs:
        done = subprocess.run([options.program, "eval", options.model, "--tasks", f"{file}.yaml", "--data", root, "--num-fewshot", str(shots), "--log-samples", logs,
                               "--dtype", "fp32", "--device", "cpu", "--quiet", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            print(f"{name}, {shots} examples: retort: {done.stderr.strip()[-600:]}")
            return False
        samples = [json.loads(line) for line in (Path(logs) / f"samples_{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    ours, seen = [], set()
    for sample in sorted(samples, key=lambda each: each["doc_id"]):
        if sample["doc_id"] not in seen:
            seen.add(sample["doc_id"])
            ours += [(sample["doc_id"], index, tuple(part if isinstance(part, str) else "" for part in each)) for index, each in enumerate(sample["arguments"])]
    expected = [(doc_id, index, tuple(part if isinstance(part, str) else "" for part in arguments)) for doc_id, index, arguments in theirs]
    return compare(f"{name}, {shots} examples, retort", ours, expected, "requests")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="folder of the flat files and of pages.jsonl")
    parser.add_argument("--limit", type=int, help="the first so many of those files")
    parser.add_argument("--documents", type=Path, help="write the documents there")
    parser.add_argument("--golden", type=Path)
    parser.add_argument("--program")
    parser.add_argument("--model")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    options = parser.parse_args()
    root = options.documents or Path(tempfile.mkdtemp())
    stub_modules()
    datasets.load_dataset = lambda path, name=None, **_: datasets.DatasetDict(
        {file.stem: datasets.Dataset.from_list([json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line])
         for file in sorted((root / path / (name or "")).glob("*.jsonl"))})
    right, golden = True, {}
    for name in options.tasks:
        path, hub, config, splits, make = TASKS[name]
        found = documents(options, name, splits, make)
        write(root, hub, config, found)
        file = OURS / (f"mmlu/{name.removeprefix('mmlu_')}.yaml" if name.startswith("mmlu_") else f"{name}.yaml")
        if options.golden:
            golden[str(file.relative_to(OURS))] = {"folder": f"{hub}/{config}" if config else hub, "documents": found,
                                                   "requests": {shots: texts_of(loaded(THEIRS / path, shots)) for shots in ((0,) if name in NO_EXAMPLES else (0, 2))}}
            continue
        for shots in (0,) if name in NO_EXAMPLES else (0, 3):
            ours, theirs = loaded(file, shots), loaded(THEIRS / path, shots)
            right &= compare(f"{name}, {shots} examples", requests_of(ours), requests_of(theirs), "requests")
            if options.program:
                right &= check_retort(options, root, name, shots, requests_of(theirs))
        if name not in OTHER_METRICS:
            right &= compare(name, list(results_for(ours, 1).values()), list(results_for(theirs, 1).values()), "documents' metrics")
    if options.golden:
        options.golden.write_text(json.dumps(golden, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    elif "ifeval" in options.tasks:
        right &= check_rules()
    sys.exit(not right)


main()
