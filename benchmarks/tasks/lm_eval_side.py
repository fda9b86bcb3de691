#!/usr/bin/env python3
"""What lm-eval finds, for compare_lm_eval.py, which runs this with the Python of lm-eval's environment.

    lm_eval_side.py REQUEST.json

REQUEST has "model" (a directory), "batch_size", "tokenizer_only", "fit" (files of documents, and where to write them) and
"runs": task files with their options and an output file.  "fit" leaves out what lm-eval stops at: documents with an answer
that is longer than the model's context.
"""

import time

started = time.perf_counter()

import json
import os
import sys
from pathlib import Path

import lm_eval
import transformers
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager


def answers(document):
    return document.get("choices") or ([document["continuation"]] if "continuation" in document else [])


def fit(job, tokenizer, context):
    lines = Path(job["from"]).read_text(encoding="utf-8").splitlines()
    short = [line for line in lines if all(len(tokenizer.encode(" " + answer)) <= context for answer in answers(json.loads(line)))]
    Path(job["to"]).write_text("".join(line + "\n" for line in short), encoding="utf-8")


def sample_record(sample):
    """What is compared, without documents."""
    kept = {key: sample[key] for key in ("doc_id", "target", "arguments", "resps", "filtered_resps", "filter")}
    return kept | {name: sample[name] for name in sample["metrics"]}


def evaluate(model, run):
    begun = time.perf_counter()
    found = lm_eval.simple_evaluate(
        model=model, tasks=[run["task"]], task_manager=TaskManager(include_defaults=False), num_fewshot=run["shots"], limit=run["limit"],
        apply_chat_template=run["chat"], fewshot_as_multiturn=run["multiturn"], system_instruction=run["system"], log_samples=True)
    seconds = time.perf_counter() - begun
    (name, samples), = found["samples"].items()
    return {"task": name, "results": found["results"][name], "n-samples": found["n-samples"][name], "n-shot": found["n-shot"][name],
            "evaluation_seconds": seconds, "batch_size": model.batch_size,
            "samples": [sample_record(sample) for sample in samples]}


def main():
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.chdir(request["folder"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(request["model"])
    context = transformers.AutoConfig.from_pretrained(request["model"]).max_position_embeddings
    for job in request["fit"]:
        fit(job, tokenizer, context)
    if not request["runs"]:
        return
    loading = time.perf_counter()
    model = HFLM(pretrained=request["model"], dtype="float32", device="cpu", batch_size=request["batch_size"])
    ready = time.perf_counter()
    for run in request["runs"]:
        found = evaluate(model, run) | {"import_seconds": loading - started, "load_seconds": ready - loading,
                                        "threads": os.environ.get("OMP_NUM_THREADS"), "lm_eval": lm_eval.__version__}
        unfinished = Path(run["output"] + ".unfinished")
        unfinished.write_text(json.dumps(found, ensure_ascii=False, default=str), encoding="utf-8")
        unfinished.rename(run["output"])
        print(f"{run['output']}: {found['evaluation_seconds']:.1f} s", flush=True)


main()
