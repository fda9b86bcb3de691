#!/usr/bin/env python3
"""The step of baseline.py by several ranks with PyTorch's FSDP2 over gloo, both models sharded; prints one JSON object.

Every block and the rest of each model is a unit, as FSDP2's documents advise.  bf16: parameters are gathered in bfloat16 and
gradients summed in float32.  Needs torch and transformers.
"""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import several_ranks


def sharded(model, mesh, dtype):
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32) if dtype else MixedPrecisionPolicy()
    for block in model.model.layers:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def prepare(a, dtype, student, teacher):
    mesh = init_device_mesh("cpu", (a.ranks,))
    student = sharded(student, mesh, dtype)
    teacher = teacher.to(dtype or torch.float32) if a.replicas else sharded(teacher, mesh, dtype)
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-5, betas=(0.9, 0.95), weight_decay=0.0)

    def update(loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return student, teacher, update


if __name__ == "__main__":
    several_ranks.run(several_ranks.parse_arguments(__doc__), prepare)
