#!/usr/bin/env python3
"""The step of baseline.py by several ranks with DeepSpeed's ZeRO-3 over gloo, both models sharded; prints one JSON object.

Student and teacher are engines of their own, as TRL makes them.  bf16: weights in bfloat16 with a float32 copy in the
optimizer.  Needs torch, transformers and deepspeed: DS_ACCELERATOR=cpu DS_BUILD_OPS=0 pip install deepspeed.
"""

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch

import several_ranks


def settings(a, dtype):
    config = {
        "train_micro_batch_size_per_gpu": a.sequences // a.ranks,
        "zero_optimization": {"stage": 3, "overlap_comm": True, "contiguous_gradients": True},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "gradient_clipping": 1.0,
        "steps_per_print": 1 << 30,
    }
    if dtype:
        config["bf16"] = {"enabled": True}
    return config


def prepare(a, dtype, student, teacher):
    deepspeed.init_distributed("gloo")
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-5, betas=(0.9, 0.95), weight_decay=0.0)
    engine, *_ = deepspeed.initialize(model=student, optimizer=optimizer, config=settings(a, dtype))
    if a.replicas:
        teacher = teacher.to(dtype or torch.float32)
    else:
        teacher, *_ = deepspeed.initialize(model=teacher, config=settings(a, dtype))
        teacher.eval()

    def update(loss):
        engine.backward(loss)
        engine.step()

    return engine, teacher, update


if __name__ == "__main__":
    several_ranks.run(several_ranks.parse_arguments(__doc__), prepare)
