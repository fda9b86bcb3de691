"""What the baselines of several ranks share: processes that meet over gloo, the loop of steps, and what is printed."""

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

import baseline


def parse_arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--replicas", action="store_true", help="the teacher is whole on every rank")
    parser.add_argument("--no-memory", action="store_true", help="do not sample the memory, which takes time from the ranks")
    return baseline.parse_arguments(parser)


def watch_memory(peak, done):
    """The largest memory of this process of which what it shares with others counts in parts."""
    while not done.wait(0.05):
        with open("/proc/self/smaps_rollup") as file:
            peak[0] = max(peak[0], 1024 * int(re.search(r"^Pss: *(\d+)", file.read(), re.M).group(1)))


def work(rank, a, prepare, meeting):
    peak, done = [0], threading.Event()
    if not a.no_memory:
        threading.Thread(target=watch_memory, args=(peak, done), daemon=True).start()
    torch.set_num_threads(a.threads)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(a.ranks))  # DeepSpeed reads them
    dist.init_process_group("gloo", rank=rank, world_size=a.ranks, init_method=f"file://{meeting}")
    dtype = torch.bfloat16 if a.dtype == "bf16" else None
    student = baseline.model(a, a.student_blocks, a.student_width, 1).train()
    teacher = baseline.model(a, a.teacher_blocks, a.teacher_width, 2).eval().requires_grad_(False)
    student, teacher, update = prepare(a, dtype, student, teacher)
    sequences = a.sequences // a.ranks
    torch.manual_seed(3 + rank)
    ids = torch.randint(a.vocab, (sequences, a.length))
    targets = torch.randint(a.vocab, (sequences * a.length,))
    seconds = []
    for step in range(a.steps + 1):
        start = time.monotonic()
        loss = baseline.loss_of(student, teacher, ids, targets)
        update(loss)
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
            "matrix_product_flops": baseline.matrix_product_flops(dtype or torch.float32, "cpu"),
            "process_peak_bytes": peak[0], "proportional_peak_bytes": total.item()}))
    dist.destroy_process_group()


def run(a, prepare):
    """`prepare(a, dtype, student, teacher)` shards both models and returns them with what makes a step of a loss."""
    os.environ.setdefault("OMP_NUM_THREADS", str(a.threads))
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, args=(a, prepare, os.path.join(folder, "meeting")), nprocs=a.ranks)
