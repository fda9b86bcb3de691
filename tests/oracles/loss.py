"""Losses on logits in float64 PyTorch, written as the trainers of GKD (TRL) and DistiLLM compute them, with their gradients by autograd.

logits.safetensors     student [R, V], teacher [R, V], targets [R] (-1: the row does not count)
results.safetensors    value.<case> [], gradient.<case> [R, V]: of the sum over rows that count
cases.json             {case: {"kind", "temperature", "beta", "direction"}}
"""

import json

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

ROWS, VOCAB = 23, 97


def generalized_jsd(student, teacher, beta, temperature):
    """As in TRL's GKD trainer: sums over the vocabulary; beta 0 and 1 are the two divergences."""
    log_q, log_p = (F.log_softmax(z / temperature, -1) for z in (student, teacher))
    if beta == 0:
        return F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
    if beta == 1:
        return F.kl_div(log_p, log_q, reduction="none", log_target=True).sum(-1)
    weight = torch.tensor(beta, dtype=log_q.dtype)
    log_m = torch.logsumexp(torch.stack([log_q + torch.log1p(-weight), log_p + torch.log(weight)]), dim=0)
    return (beta * F.kl_div(log_m, log_p, reduction="none", log_target=True)
            + (1 - beta) * F.kl_div(log_m, log_q, reduction="none", log_target=True)).sum(-1)


def total_variation(student, teacher, temperature):
    return 0.5 * (F.softmax(teacher / temperature, -1) - F.softmax(student / temperature, -1)).abs().sum(-1)


def cases():
    for temperature in (1.0, 2.5):
        for beta in (0.0, 0.1, 0.5, 0.9, 1.0):
            yield dict(kind="jensen_shannon", temperature=temperature, beta=beta)
        yield dict(kind="total_variation", temperature=temperature)
        for direction in ("forward", "reverse"):
            yield dict(kind="kl_divergence", temperature=temperature, direction=direction)


def rows_of(case, student, teacher):
    if case["kind"] == "total_variation":
        return total_variation(student, teacher, case["temperature"])
    beta = case.get("beta", {"forward": 0, "reverse": 1}.get(case.get("direction")))
    return generalized_jsd(student, teacher, beta, case["temperature"])


def write(out_dir, shared):
    folder = out_dir / "loss"
    torch.manual_seed(11)
    student, teacher = (torch.randn(ROWS, VOCAB, dtype=torch.float64) * 3 for _ in range(2))
    targets = torch.randint(0, VOCAB, (ROWS,))
    targets[::5] = -1
    save_file(dict(student=student, teacher=teacher, targets=targets), folder / "logits.safetensors")
    named, results = {}, {}
    for number, case in enumerate(cases()):
        name = f"{number:02}"
        leaf = student.clone().requires_grad_()
        value = rows_of(case, leaf, teacher)[targets >= 0].sum()
        value.backward()
        named[name] = case
        results[f"value.{name}"], results[f"gradient.{name}"] = value.detach(), leaf.grad
    save_file(results, folder / "results.safetensors")
    (folder / "cases.json").write_text(json.dumps(named))
