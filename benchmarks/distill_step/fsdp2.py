#!/usr/bin/env python3
"""The step of baseline.py by several ranks with PyTorch's FSDP2 over gloo, both models sharded; prints one JSON object.

Every block and the rest of each model is a unit, as FSDP2's documents advise.  bf16: parameters are gathered in bfloat16 and
gradients summed in float32.  Needs torch and transformers.
"""

import argparse
import json
import os
import re
import statistics
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import baseline


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--replicas", action="store_true", help="the teacher is whole on every rank")
    return baseline.parse_arguments(parser)


def watch_memory(peak, done):
    """The largest memory of this process of which what it shares with others counts in parts."""
    while not done.wait(0.05):
        with open("/proc/self/smaps_rollup") as file:
            peak[0] = max(peak[0], 1024 * int(re.search(r"^Pss: *(\d+)", file.read(), re.M).group(1)))


def sharded(model, mesh, dtype):
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32) if dtype else MixedPrecisionPolicy()
    for block in model.model.layers:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def work(rank, a, meeting):
    peak, done = [0], threading.Event()
    threading.Thread(target=watch_memory, args=(peak, done), daemon=True).start()
    torch.set_num_threads(a.threads)
    dist.init_process_group("gloo", rank=rank, world_size=a.ranks, init_method=f"file://{meeting}")
    mesh = init_device_mesh("cpu", (a.ranks,))
    dtype = torch.bfloat16 if a.dtype == "bf16" else None
    student = sharded(baseline.model(a, a.student_blocks, a.student_width, 1).train(), mesh, dtype)
    teacher = baseline.model(a, a.teacher_blocks, a.teacher_width, 2).eval().requires_grad_(False)
    teacher = teacher.to(dtype or torch.float32) if a.replicas else sharded(teacher, mesh, dtype)
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-5, betas=(0.9, 0.95), weight_decay=0.0)
    sequences = a.sequences // a.ranks
    torch.manual_seed(3 + rank)
    ids = torch.randint(a.vocab, (sequences, a.length))
    targets = torch.randint(a.vocab, (sequences * a.length,))
    seconds = []
    for step in range(a.steps + 1):
        start = time.monotonic()
        loss = baseline.loss_of(student, teacher, ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        if step > 0:
            seconds.append(time.monotonic() - start)
    done.set()
    total = torch.tensor([float(peak[0])], dtype=torch.float64)
    dist.all_reduce(total)
    tokens = a.sequences * a.length
    if rank == 0:
        print(json.dumps({
            "dtype": a.dtype, "ranks": a.ranks, "threads": a.threads, "loss": value,
            "tokens_per_second": tokens / statistics.mean(seconds), "best_tokens_per_second": tokens / min(seconds),
            "matrix_product_flops": baseline.matrix_product_flops(dtype or torch.float32),
            "process_peak_bytes": peak[0], "proportional_peak_bytes": total.item()}))
    dist.destroy_process_group()


def main():
    a = parse_arguments()
    os.environ.setdefault("OMP_NUM_THREADS", str(a.threads))
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, args=(a, os.path.join(folder, "meeting")), nprocs=a.ranks)


if __name__ == "__main__":
    main()
