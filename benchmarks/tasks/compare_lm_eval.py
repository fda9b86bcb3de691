#!/usr/bin/env python3
"""Tasks scored by lm-eval and by `retort eval`, on the same files: every request, every metric, both times.

    compare_lm_eval.py --cache DIR --texts DIR --python VENV/bin/python --program build/release/cli/retort
                       --model NAME=DIRECTORY [--model NAME=DIRECTORY=WHAT_RETORT_READS ...] --tasks FILE... [--shots 0 3]

lm-eval runs its Hugging Face backend in fp32, from the environment of requirements.txt.  What it finds is kept in --cache, a
file for each model, task and number of examples, and is not computed again; --lm-eval-only stops there.  Documents with an
answer that is longer than a model's context are left out for both, because lm-eval stops at them.

A row is equal when the requests are the same texts, log-likelihoods differ by at most --tolerance, and metrics of documents
differ only where the two best answers lie within twice the tolerance of each other: the ties, which are counted and listed.
Generated texts have to be equal.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHOSEN_BY = {"acc": lambda text: 1, "acc_norm": len, "acc_bytes": lambda text: len(text.encode())}


def prepare(options, name, model, folder):
    """Task files in a folder with their data, as both programs want them."""
    inputs = folder / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    jobs = []
    for task in options.tasks:
        for file in task.parent.glob("*.yaml"):
            shutil.copyfile(file, inputs / file.name)
        for text in re.findall(r"[\w.]+\.jsonl", task.read_text(encoding="utf-8")):
            found = next((where / text for where in options.texts if (where / text).exists()), None)
            if not found:
                sys.exit(f"compare_lm_eval: no {text} of {task} in --texts {' '.join(map(str, options.texts))}")
            if not (inputs / text).exists():
                jobs.append({"from": str(found.resolve()), "to": str((inputs / text).resolve())})
    return inputs, jobs


def planned(options, folder):
    """Of one model: what is run, and the key of its files."""
    for task in options.tasks:
        for shots in options.shots:
            key = f"{task.stem}-{shots}" + (f"-first{options.limit}" if options.limit else "") + ("-chat" if options.chat else "")
            yield {"key": key, "task": task.name, "shots": shots, "limit": options.limit, "chat": options.chat, "multiturn": options.multiturn,
                   "system": options.system, "output": str((folder / "lm-eval" / f"{key}.json").resolve())}


def run_lm_eval(options, model, folder, inputs, jobs):
    (folder / "lm-eval").mkdir(exist_ok=True)
    runs = [run for run in planned(options, folder) if not Path(run["output"]).exists()]
    if not runs and not jobs:
        return
    request = {"model": str(Path(model).resolve()), "batch_size": options.batch_size, "folder": str(inputs.resolve()), "fit": jobs, "runs": runs}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str((options.cache / "datasets").resolve()), "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}
        subprocess.run([options.python, str(Path(__file__).with_name("lm_eval_side.py")), file.name], env=environment, check=True)


def run_retort(options, model, folder, inputs, run):
    """As lm-eval's record: "results", "samples", and the seconds of the whole process."""
    samples = folder / "retort" / run["key"]
    shutil.rmtree(samples, ignore_errors=True)
    samples.mkdir(parents=True)
    command = [str(options.program.resolve()), "eval", str(Path(model).resolve()), "--tasks", run["task"], "--num-fewshot", str(run["shots"]),
               "--log-samples", str(samples.resolve()), "--json", *options.retort_options.split()]
    command += ["--limit", str(run["limit"])] if run["limit"] else []
    command += ["--apply-chat-template"] if run["chat"] else []
    command += ["--fewshot-as-multiturn"] if run["chat"] and run["multiturn"] else []
    command += ["--system", run["system"]] if run["system"] else []
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=inputs, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}")
    found = json.loads(done.stdout)
    (samples / "results.json").write_text(done.stdout, encoding="utf-8")
    (name, results), = found["results"].items()
    lines = (samples / f"samples_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {"results": results, "process_seconds": seconds, "report": found, "samples": [json.loads(line) for line in lines]}


def arguments_of(sample):
    """Texts of the requests, from either form that lm-eval writes."""
    given = sample["arguments"]
    if isinstance(given, dict):
        given = [list(each.values()) for each in given.values()]
    return [[part for part in each if isinstance(part, str)] for each in given]


def responses_of(value):
    """Flat: (log-likelihood, is_greedy) pairs, log-likelihoods, or texts."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], bool):
        return [tuple(value)]
    if isinstance(value, list):
        return [found for each in value for found in responses_of(each)]
    return [value]


def margin(sample, metric, choices):
    """How far the best answer lies before the second, as `metric` counts; in log-likelihood, not divided."""
    scores = sorted((pair[0] / CHOSEN_BY[metric](text), CHOSEN_BY[metric](text)) for pair, text in zip(responses_of(sample["resps"]), choices))
    (second, length), (first, other) = scores[-2:]
    return (first - second) * min(length, other)


def choices_of(sample):
    """The delimiter's space is no part of a choice's length."""
    continuations = [each[-1] for each in arguments_of(sample)]
    return [text[1:] if text.startswith(" ") and len(text) > 1 else text for text in continuations]


def equal_values(first, second):
    """NaN is equal to NaN, and "N/A" to a null."""
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return first == second or math.isnan(first) and math.isnan(second) or math.isclose(first, second, rel_tol=1e-9)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(equal_values, first, second))
    return first == second or {str(first), str(second)} <= {"N/A", "None"}


def compare_sample(options, ours, theirs, metrics, row):
    where = {"doc_id": theirs["doc_id"], "filter": theirs["filter"]}
    if arguments_of(ours) != arguments_of(theirs):
        row["other_requests"].append(where | {"lm_eval": arguments_of(theirs), "retort": arguments_of(ours)})
    pairs = list(zip(responses_of(ours["resps"]), responses_of(theirs["resps"])))
    row["requests"] += len(pairs)
    far = False
    for index, (our, their) in enumerate(pairs):
        if isinstance(their, str):
            if our != their or ours["filtered_resps"] != theirs["filtered_resps"]:
                row["other_answers"].append(where | {"lm_eval": [their, theirs["filtered_resps"]], "retort": [our, ours["filtered_resps"]]})
            continue
        (our, our_greedy), (their, their_greedy) = (value if isinstance(value, tuple) else (value, None) for value in (our, their))
        difference = abs(our - their)
        far |= not difference <= options.tolerance
        if not difference <= row["largest_difference"]:
            row["largest_difference"], row["largest_at"] = difference, where | {"request": index, "lm_eval": their, "retort": our}
        if our_greedy != their_greedy:
            row["other_greedy"].append(where | {"request": index, "lm_eval": their_greedy, "retort": our_greedy})
    for metric in metrics:
        if metric not in ours:
            row["other_metrics"].append(where | {"metric": metric, "retort": "missing"})
        elif len(pairs) > 1 and metric in CHOSEN_BY and not far:
            distance = margin(theirs, metric, choices_of(theirs))
            if distance <= 2 * options.tolerance:
                row["ties"].append(where | {"metric": metric, "margin": distance, "lm_eval": theirs[metric], "retort": ours[metric]})
            elif ours[metric] != theirs[metric]:
                row["other_metrics"].append(where | {"metric": metric, "lm_eval": theirs[metric], "retort": ours[metric], "margin": distance})
        elif not isinstance(theirs[metric], float) or isinstance(theirs[metric], float) and theirs[metric] in (0, 1):
            if not isinstance(theirs[metric], list) and ours[metric] != theirs[metric]:
                row["other_metrics"].append(where | {"metric": metric, "lm_eval": theirs[metric], "retort": ours[metric]})


def metrics_of(sample):
    known = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "doc_hash", "prompt_hash", "target_hash", "metrics"}
    return [key for key in sample if key not in known]


def compare(options, ours, theirs):
    row = {"documents": len({sample["doc_id"] for sample in theirs["samples"]}), "requests": 0, "largest_difference": 0.0, "largest_at": None, "other_requests": [],
           "other_greedy": [], "other_metrics": [], "other_answers": [], "ties": [], "other_aggregates": []}
    at = {(sample["doc_id"], sample["filter"]): sample for sample in ours["samples"]}
    if len(at) != len(theirs["samples"]):
        row["other_requests"].append({"lm_eval": len(theirs["samples"]), "retort": len(at), "what": "documents"})
    for sample in theirs["samples"]:
        our = at.get((sample["doc_id"], sample["filter"]))
        if our is None:
            row["other_requests"].append({"doc_id": sample["doc_id"], "filter": sample["filter"], "retort": "missing"})
        else:
            compare_sample(options, our, sample, metrics_of(sample), row)
    changed = {tie["metric"] for tie in row["ties"] if tie["lm_eval"] != tie["retort"]}
    row["values"] = {}
    for key, value in theirs["results"].items():
        if not isinstance(value, (int, float)) and value != "N/A" or key in ("sample_len",):
            continue
        our = ours["results"].get(key)
        row["values"][key] = [value, our]
        metric = re.split(r"_stderr|,", key)[0]
        near = isinstance(our, float) and metric not in CHOSEN_BY and math.isclose(value, our, rel_tol=options.tolerance)
        if not equal_values(value, our) and metric not in changed and not near:
            row["other_aggregates"].append({"value": key, "lm_eval": value, "retort": our})
    row["equal"] = row["largest_difference"] <= options.tolerance and not any(row[f"other_{what}"] for what in ("requests", "greedy", "metrics", "answers", "aggregates"))
    return row


def shown(row):
    values = [f"{name.split(',')[0]}{'' if name.endswith(',none') else ' ' + name.split(',')[1]} {theirs:.4f} / {ours:.4f}" if isinstance(ours, (int, float)) else f"{name} {theirs} / {ours}"
              for name, (theirs, ours) in row["values"].items() if "stderr" not in name]
    times = f"{row['lm_eval_seconds']:.1f} / {row['retort_seconds']:.1f} | {row['lm_eval_process_seconds']:.1f} / {row['retort_process_seconds']:.1f}"
    turned = sum(tie["lm_eval"] != tie["retort"] for tie in row["ties"])
    faults = ", ".join(f"{len(row[f'other_{what}'])} other {what}" for what in ("requests", "greedy", "metrics", "answers", "aggregates") if row[f"other_{what}"])
    return (f"| {row['model']} | {row['run']} | {row['documents']} | {row['requests']} | {row['largest_difference']:.1e} | {'; '.join(values)} | "
            f"{len(row['ties'])} ({turned}) | {times} | {'yes' if row['equal'] else 'NO: ' + (faults or 'log-likelihoods')} |")


HEAD = """| model | task-examples | documents | requests | largest difference | lm-eval / Retort | ties (turned) | evaluation, s | process, s | equal |
|---|---|---:|---:|---:|---|---:|---:|---:|---|"""


def compared(options, name, reads, folder, inputs, run):
    theirs = json.loads(Path(run["output"]).read_text(encoding="utf-8"))
    kept = folder / "retort" / f"{run['key']}.json"
    if options.again or not kept.exists():
        ours = run_retort(options, reads, folder, inputs, run)
        kept.write_text(json.dumps(ours), encoding="utf-8")
    ours = json.loads(kept.read_text(encoding="utf-8"))
    row = {"model": name, "run": run["key"]} | compare(options, ours, theirs)
    row["lm_eval_seconds"] = theirs["evaluation_seconds"]
    row["lm_eval_process_seconds"] = theirs["evaluation_seconds"] + theirs["import_seconds"] + theirs["load_seconds"]
    row["retort_process_seconds"] = ours["process_seconds"]
    row["retort_seconds"] = ours["report"].get("seconds", ours["process_seconds"])
    return row


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="folders of the files that tasks name")
    parser.add_argument("--python", required=True, help="of lm-eval's environment")
    parser.add_argument("--program", type=Path, help="retort")
    parser.add_argument("--model", action="append", required=True, metavar="NAME=DIRECTORY[=MODEL]")
    parser.add_argument("--tasks", type=Path, nargs="+", required=True)
    parser.add_argument("--shots", type=int, nargs="+", default=[0])
    parser.add_argument("--limit", type=int, help="the first so many documents of a task")
    parser.add_argument("--chat", action="store_true", help="through the model's chat template")
    parser.add_argument("--multiturn", action="store_true", help="examples as turns of their own")
    parser.add_argument("--system")
    parser.add_argument("--batch-size", type=int, default=1, help="of lm-eval")
    parser.add_argument("--retort-options", default="--dtype fp32 --device cpu --quiet", help="added to each `retort eval`")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--lm-eval-only", action="store_true")
    parser.add_argument("--again", action="store_true", help="run retort also where its results are kept")
    parser.add_argument("--json", type=Path, help="write all rows, with each difference, there")
    return parser.parse_args()


def main():
    options = parsed()
    rows, failed = [], False
    if not options.lm_eval_only:
        print(HEAD)
    for given in options.model:
        name, directory, *other = given.split("=")
        folder = options.cache / name
        inputs, jobs = prepare(options, name, directory, folder)
        run_lm_eval(options, directory, folder, inputs, jobs)
        for run in [] if options.lm_eval_only else planned(options, folder):
            try:
                rows.append(compared(options, name, (other or [directory])[0], folder, inputs, run))
                print(shown(rows[-1]), flush=True)
                failed |= not rows[-1]["equal"]
            except RuntimeError as error:
                failed = True
                print(f"| {name} | {run['key']} | {error} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
