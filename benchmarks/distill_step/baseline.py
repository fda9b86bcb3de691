#!/usr/bin/env python3
"""The step of distill_step.cpp as one writes it with transformers and PyTorch; prints one JSON object.

The shapes, the losses (0.25 CE + KL at T = 3 + SquareHead), AdamW and clipping are the same.  Needs torch and transformers.
"""

import argparse
import contextlib
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

TEMPERATURE = 3.0


def parse_arguments(parser=None):
    parser = parser or argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32", help="bf16: autocast, float32 weights")
    parser.add_argument("--compile", action="store_true", help="torch.compile both models and the losses")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again in backward")
    sizes = dict(hidden=512, vocab=32000, heads=8, kv_heads=4, teacher_blocks=8, teacher_width=1408,
                 student_blocks=5, student_width=1024, sequences=4, length=512, steps=5)
    for name, value in sizes.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    return parser.parse_args()


def model(a, blocks, width, seed):
    torch.manual_seed(seed)
    with torch.device(a.device):
        return LlamaForCausalLM(LlamaConfig(
            vocab_size=a.vocab, hidden_size=a.hidden, intermediate_size=width, num_hidden_layers=blocks,
            num_attention_heads=a.heads, num_key_value_heads=a.kv_heads, max_position_embeddings=a.length,
            tie_word_embeddings=True, use_cache=False, bos_token_id=1, eos_token_id=2))


def squarehead(student_hidden, teacher_hidden):
    """hidden_states[0] is the embedding; transformers gives the last one after the final norm."""
    blocks, teacher_blocks = len(student_hidden) - 1, len(teacher_hidden) - 1
    total = 0.0
    for i in range(blocks):
        phi = round((i + 1) * teacher_blocks / blocks)
        s, t = student_hidden[i + 1].float(), teacher_hidden[phi].float()
        total = total + ((s - t).square().mean((1, 2)) / (t.square().mean((1, 2)) + 1e-6)).mean()
    return total / blocks


def loss_of(student, teacher, ids, targets):
    with torch.no_grad():
        of_teacher = teacher(ids, output_hidden_states=True)
    of_student = student(ids, output_hidden_states=True)
    s = of_student.logits.flatten(0, 1).float()
    t = of_teacher.logits.flatten(0, 1).float()
    cross_entropy = F.cross_entropy(s, targets)
    kl = F.kl_div(F.log_softmax(s / TEMPERATURE, -1), F.log_softmax(t / TEMPERATURE, -1),
                  reduction="batchmean", log_target=True) * TEMPERATURE**2
    return 0.25 * cross_entropy + kl + squarehead(of_student.hidden_states, of_teacher.hidden_states)


def finish(device):
    """Waits for a device that works asynchronously."""
    if device != "cpu":
        torch.accelerator.synchronize()


def product_seconds(size, dtype, device):
    """Of the best of several products of square matrices."""
    a, b = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    c = torch.empty_like(a)
    best, begin = float("inf"), time.monotonic()
    for i in range(50):
        if i >= 3 and time.monotonic() - begin > 0.2:
            break
        finish(device)
        start = time.monotonic()
        torch.mm(a, b.t(), out=c)
        finish(device)
        best = min(best, time.monotonic() - start)
    return best


def matrix_product_flops(dtype, device):
    """The same measurement as retort/bench/matrix_product.cpp."""
    size = 1024
    while (seconds := product_seconds(size, dtype, device)) < 1e-3 and size < 8192:
        size *= 2
    return 2.0 * size**3 / seconds


def peak_bytes(device):
    """Of the process, and of tensors where their allocator knows it."""
    of_process = {"process_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if device == "cpu":
        return of_process
    return of_process | {"peak_tensor_bytes": torch.accelerator.max_memory_allocated()}


def main():
    a = parse_arguments()
    bf16 = a.dtype == "bf16"
    dtype = torch.bfloat16 if bf16 else torch.float32
    student = model(a, a.student_blocks, a.student_width, 1).train()
    teacher = model(a, a.teacher_blocks, a.teacher_width, 2).eval().requires_grad_(False).to(dtype)
    if a.checkpointing:
        student.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-5, betas=(0.9, 0.95), weight_decay=0.0)
    ids = torch.randint(a.vocab, (a.sequences, a.length), device=a.device)
    targets = torch.randint(a.vocab, (a.sequences * a.length,), device=a.device)
    compute_loss = torch.compile(loss_of) if a.compile else loss_of
    autocast = (lambda: torch.autocast(a.device, torch.bfloat16)) if bf16 else contextlib.nullcontext

    seconds = []
    for step in range(a.steps + 1):
        start = time.monotonic()
        with autocast():
            loss = compute_loss(student, teacher, ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        finish(a.device)
        if step > 0:  # the first one compiles and touches pages
            seconds.append(time.monotonic() - start)
    tokens = a.sequences * a.length
    print(json.dumps({
        "dtype": a.dtype, "device": a.device, "compile": a.compile, "checkpointing": a.checkpointing, "threads": torch.get_num_threads(),
        "loss": value, "tokens_per_second": tokens / statistics.mean(seconds),
        "best_tokens_per_second": tokens / min(seconds), "matrix_product_flops": matrix_product_flops(dtype, a.device),
        **peak_bytes(a.device)}))


if __name__ == "__main__":
    main()
