#!/usr/bin/env python3
"""Steps in which a student learns from what it writes, by `retort run` and by TRL's GKDTrainer, in turn.

Both go on with the first tokens of the same documents, draw at temperature 1 from the same student, compare it with the same
teacher by the generalised Jensen-Shannon divergence (beta 0.5) on what was written, and update all weights by AdamW, in float32 with
the same threads.  TRL keeps keys and values while it writes (no gradient checkpointing).  The first step of a side does not count.
Each round runs both, the order changes from round to round.  Prints a JSON object: seconds of a step and written tokens a second of
each round, and the ratio of the medians.

Needs torch, transformers, trl and datasets for --python, which may be another environment.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RECIPE = """version: 1
data:
  text: {{path: {text}, held_out: {{fraction: 0}}}}
stages:
  - name: student
    kind: distill
    from: {student}
    teacher: {teacher}
    data: [text]
    tokens: {tokens}
    packing: {{sequence_length: {length}}}
    batch: {{sequences: {sequences}}}
    optim: {{lr: 1.0e-5}}
    loss: [{{kind: jensen_shannon, beta: 0.5, temperature_squared: false}}]
    on_policy: {{share: 1.0, temperature: 1.0, max_new_tokens: {new}, prompt_tokens: {prompt}}}
    evaluate_every_steps: 0
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retort", default="build/release/cli/retort")
    parser.add_argument("--python", default=sys.executable, help="with trl")
    parser.add_argument("--student", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True, help="documents, JSON lines with a key text")
    parser.add_argument("--texts", type=int, default=16, help="that are written in a step; even")
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--trl-side", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def environment(arguments):
    return {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), "TRL_EXPERIMENTAL_SILENCE": "1",
            "TOKENIZERS_PARALLELISM": "false"}


def by_retort(arguments):
    """Seconds and written tokens of each step."""
    length = 2 * (arguments.prompt_tokens + arguments.new_tokens)
    sequences = arguments.texts // 2
    with tempfile.TemporaryDirectory() as work:
        recipe, run = Path(work) / "recipe.yaml", Path(work) / "run"
        recipe.write_text(RECIPE.format(text=arguments.text.resolve(), student=arguments.student.resolve(),
                                        teacher=arguments.teacher.resolve(), tokens=arguments.steps * sequences * length,
                                        length=length, sequences=sequences, new=arguments.new_tokens,
                                        prompt=arguments.prompt_tokens))
        subprocess.run([arguments.retort, "run", str(recipe), "--run-dir", str(run), "--dtype", "fp32", "-q"], check=True,
                       env=environment(arguments), stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["step"] > 0]
    seconds = [b["seconds"] - a["seconds"] for a, b in zip(lines, lines[1:])]
    writing = [line["phase_seconds"]["writing"] for line in lines[1:]]
    return {"seconds": seconds, "writing": writing, "tokens": [line["written"]["tokens"] for line in lines[1:]]}


def trl_side(arguments):
    import time

    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
    from trl.experimental.gkd import GKDConfig, GKDTrainer

    torch.set_num_threads(arguments.threads)
    student, teacher = (AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
                        for path in (arguments.student, arguments.teacher))
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(arguments.student / "tokenizer.json"))
    pad, bos = student.config.pad_token_id, student.config.bos_token_id
    tokenizer.pad_token, tokenizer.eos_token = (tokenizer.convert_ids_to_tokens(i)
                                                for i in (pad if pad is not None else student.config.eos_token_id,
                                                          student.config.eos_token_id))
    texts = [json.loads(line)["text"] for line in arguments.text.read_text().splitlines()]
    prompts = [([bos] if bos is not None else []) + tokenizer.encode(text, add_special_tokens=False) for text in texts]
    prompts = [ids[:arguments.prompt_tokens] for ids in prompts]

    def collate(rows):
        width = max(len(row["prompt"]) for row in rows)
        ids = torch.tensor([[tokenizer.pad_token_id] * (width - len(row["prompt"])) + row["prompt"] for row in rows])
        attended = torch.tensor([[0] * (width - len(row["prompt"])) + [1] * len(row["prompt"]) for row in rows])
        return dict(input_ids=ids, attention_mask=attended, labels=ids.clone(), prompts=ids, prompt_attention_mask=attended)

    found = {"seconds": [], "writing": [], "tokens": []}

    class Timed(GKDTrainer):
        @staticmethod
        def generate_on_policy_outputs(model, inputs, *more):
            begin = time.perf_counter()
            ids, attended, labels = GKDTrainer.generate_on_policy_outputs(model, inputs, *more)
            found["writing"].append(time.perf_counter() - begin)
            found["tokens"].append(int((labels[:, inputs["prompts"].shape[1]:] != -100).sum()))
            return ids, attended, labels

    class Clock(TrainerCallback):
        def on_step_begin(self, *_, **__):
            self.begin = time.perf_counter()

        def on_step_end(self, *_, **__):
            found["seconds"].append(time.perf_counter() - self.begin)

    with tempfile.TemporaryDirectory() as work:
        config = GKDConfig(output_dir=work, per_device_train_batch_size=arguments.texts, max_steps=arguments.steps, lmbda=1.0, beta=0.5,
                           temperature=1.0, max_new_tokens=arguments.new_tokens, gradient_checkpointing=False, bf16=False, use_cpu=True,
                           learning_rate=1e-5, max_grad_norm=1.0, report_to="none", save_strategy="no", logging_strategy="no",
                           disable_tqdm=True, max_length=arguments.prompt_tokens + arguments.new_tokens)
        trainer = Timed(model=student, teacher_model=teacher, args=config, data_collator=collate, processing_class=tokenizer,
                        train_dataset=Dataset.from_list([{"prompt": ids} for ids in prompts]), callbacks=[Clock()])
        trainer.train()
    print(json.dumps({key: values[1:] for key, values in found.items()}))


def by_trl(arguments):
    names = ("student", "teacher", "text", "texts", "prompt_tokens", "new_tokens", "steps", "threads")
    command = [arguments.python, __file__, "--trl-side"]
    for name in names:
        command += ["--" + name.replace("_", "-"), str(getattr(arguments, name))]
    done = subprocess.run(command, check=True, env=environment(arguments), capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    arguments = parse_arguments()
    if arguments.trl_side:
        return trl_side(arguments)
    sides = {"retort": by_retort, "trl": by_trl}
    rounds = {side: [] for side in sides}
    for number in range(arguments.rounds):
        for side in sorted(sides, reverse=number % 2 == 1):
            rounds[side].append(sides[side](arguments))
    found = {"texts": arguments.texts, "prompt_tokens": arguments.prompt_tokens, "new_tokens": arguments.new_tokens}
    for side, of_side in rounds.items():
        steps = [(s, w, t) for r in of_side for s, w, t in zip(r["seconds"], r["writing"], r["tokens"])]
        found[side] = {
            "step_seconds": round(statistics.median(s for s, _, _ in steps), 3),
            "tokens_per_second": [round(sum(r["tokens"]) / sum(r["seconds"]), 1) for r in of_side],
            "writing_share": round(sum(w for _, w, _ in steps) / sum(s for s, _, _ in steps), 2),
            "mean_tokens": round(sum(t for _, _, t in steps) / len(steps) / arguments.texts, 1)}
    ours, theirs = (statistics.median(found[side]["tokens_per_second"]) for side in ("retort", "trl"))
    print(json.dumps({**found, "ratio": round(ours / theirs, 2)}))


if __name__ == "__main__":
    main()
