#!/usr/bin/env python3
"""Distils models from themselves on 1 to 4 ranks and in several layouts, and compares each step with that of one rank.

    benchmarks/layouts/layouts.py PROGRAM TEXT.txt MODEL [MODEL ...]

In float32.  Prints a Markdown table of the largest relative differences of loss and gradient norm.  Standard library only.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RECIPE = """version: 1
dtype: fp32
data:
  text: {{path: "{text}", separator: "\\n\\n\\n"}}
stages:
  - {{name: student, kind: distill, from: {model}, teacher: {model}, data: [text], tokens: 3k,
     packing: {{sequence_length: 128}}, batch: {{sequences: 2, accumulate: 3}}, optim: {{lr: 1.0e-3}},
     loss: [{{kind: cross_entropy, weight: 0.25}}, {{kind: kl_divergence, temperature: 3.0}}, {{kind: squarehead}}]}}
"""

# Ranks, those of a copy of the student and of the teacher (0: of a machine), and micro-batches of a wave (0: all).
LAYOUTS = [(1, 0, 0, 0), (2, 0, 0, 0), (2, 0, 0, 1), (2, 0, 0, 2), (3, 0, 0, 0), (4, 0, 0, 0), (4, 2, 2, 0), (4, 1, 1, 0),
           (4, 4, 2, 0)]


def steps_of(program, recipe, folder, layout):
    ranks, student, teacher, wave = layout
    settings = {"shard.student_ranks": student, "shard.teacher_ranks": teacher, "batch.wave": wave}
    command = [program, "run", str(recipe), "--run-dir", str(folder)]
    command += ["--ranks", str(ranks)] if ranks > 1 else []
    for key, value in settings.items():
        command += ["--set", f"stages.student.{key}={value}"] if value else []
    subprocess.run(command, check=True, capture_output=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(line["tokens"], line["loss"], line["gradient_norm"]) for line in lines if line.get("loss") is not None]


def main():
    program, text, *models = sys.argv[1:]
    print("| model | ranks | student over | teacher over | wave | steps | loss | gradient norm | tokens |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        for model in models:
            recipe = Path(name) / "recipe.yaml"
            recipe.write_text(RECIPE.format(text=text, model=Path(model).resolve()))
            of_one = None
            for layout in LAYOUTS:
                run = Path(name) / "-".join(map(str, (Path(model).name, *layout)))
                steps = steps_of(program, recipe, run, layout)
                of_one = of_one or steps
                differences = [max(abs(a[i] / b[i] - 1) for a, b in zip(steps, of_one)) for i in (1, 2)]
                same = len(steps) == len(of_one) and all(a[0] == b[0] for a, b in zip(steps, of_one))
                shape = " | ".join(str(part or "all") for part in layout[1:])
                print(f"| {Path(model).name} | {layout[0]} | {shape} | {len(steps)} | {differences[0]:.1e} "
                      f"| {differences[1]:.1e} | {'equal' if same else 'OTHER'} |", flush=True)


if __name__ == "__main__":
    main()
