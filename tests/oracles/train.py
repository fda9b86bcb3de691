"""Four steps of distillation in float64 PyTorch: losses by autograd through transformers' Llama, AdamW of torch.

cases/<name>/student/, teacher/   models with random weights, saved by save_pretrained
cases/<name>/trained/             the student after the last step
text.jsonl                        documents, {"text"}; a token is 10 + the byte, each document begins with token 1
cases/<name>/expected.json        {"masked", "optim", "losses", "steps": [{"loss", "parts", "gradient_norm", "lr"}],
                                  "held_out": {source: {"windows": [[{"ids", "targets", "starts"}]], "losses"}}};
                                  the gradient's norm is that before clipping, losses[0] is from before the first step
"""

import json
import math

import torch
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

BOS, LENGTH, SEQUENCES, ACCUMULATE, STEPS = 1, 32, 2, 2, 4
TEMPERATURE, SQUAREHEAD_EPS = 3.0, 1e-6
BETA = 0.3
LOSSES = {"cross_entropy": 0.25, "kl_divergence": 1.0, "jensen_shannon": 0.4, "total_variation": 0.2, "squarehead": 0.5}
# So large an eps keeps the step a smooth function of the gradient where that is close to zero.  The gradient's norm is
# above clip_norm in each step of two cases, and crosses it in the third.
OPTIM = dict(lr=3e-3, embedding_lr=1e-3, beta1=0.9, beta2=0.95, eps=1e-3, weight_decay=0.1, clip_norm=0.75,
             warmup_steps=2, final_lr_fraction=0.1)
STUDENT = dict(vocab_size=272, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, max_position_embeddings=128, initializer_range=0.15, bos_token_id=1,
               eos_token_id=2)
TEACHER = {**STUDENT, "num_hidden_layers": 3, "intermediate_size": 64}
CASES = {"untied": dict(tied=False, masked=False), "tied": dict(tied=True, masked=False),
         "masked": dict(tied=False, masked=True)}


def documents():
    """Of such lengths that sequences begin inside documents and documents inside sequences."""
    return [" ".join(f"{chr(97 + (i * 7 + j * j) % 26)}{i * j % 10}" for j in range(2 + i * 5 % 13)) for i in range(40)]


def encode(text):
    return [BOS] + [10 + byte for byte in text.encode()]


def packed(texts, count):
    """The first `count` sequences of the documents joined: ids, targets (-1 before another document), starts."""
    ids, begins = [], []
    for text in texts:
        begins += [len(ids)]
        ids += encode(text)
    sequences = []
    for first in range(0, count * LENGTH, LENGTH):
        window = range(first, first + LENGTH)
        sequences.append(dict(ids=[ids[i] for i in window],
                              targets=[-1 if i + 1 in begins else ids[i + 1] for i in window],
                              starts=sorted({0} | {b - first for b in begins if b in window})))
    return sequences


def forward(model, sequence):
    """Output of each block and logits [L, V]; each document of the sequence alone, so that no mask is involved."""
    bounds = sequence["starts"] + [len(sequence["ids"])]
    outputs = [[] for _ in model.model.layers]
    hooks = [layer.register_forward_hook(lambda _, __, y, kept=kept: kept.append(y[0]))
             for layer, kept in zip(model.model.layers, outputs)]
    logits = [model(torch.tensor([sequence["ids"][a:b]])).logits[0] for a, b in zip(bounds, bounds[1:])]
    for hook in hooks:
        hook.remove()
    return [torch.cat(kept) for kept in outputs], torch.cat(logits)


def parts_of(student, teacher, sequences, targets, count):
    """What these of a step's `count` sequences with `targets` targets add to each part of the loss."""
    parts = dict.fromkeys(LOSSES, 0.0)
    depths = [math.floor((i + 1) * len(teacher.model.layers) / len(student.model.layers) + 0.5) - 1
              for i in range(len(student.model.layers))]
    for sequence in sequences:
        hidden, logits = forward(student, sequence)
        with torch.no_grad():
            teacher_hidden, teacher_logits = forward(teacher, sequence)
        y = torch.tensor(sequence["targets"])
        parts["cross_entropy"] += F.cross_entropy(logits, y, ignore_index=-1, reduction="sum") / targets
        p, q = (F.log_softmax(z[y >= 0] / TEMPERATURE, -1) for z in (teacher_logits, logits))
        parts["kl_divergence"] += F.kl_div(q, p, log_target=True, reduction="sum") * TEMPERATURE**2 / targets
        m = torch.logaddexp(p + math.log(BETA), q + math.log(1 - BETA))
        divergence = sum(weight * F.kl_div(m, x, log_target=True, reduction="sum") for weight, x in ((BETA, p), (1 - BETA, q)))
        parts["jensen_shannon"] += divergence * TEMPERATURE**2 / targets
        parts["total_variation"] += 0.5 * (p.exp() - q.exp()).abs().sum() / targets
        pairs = [(s, teacher_hidden[d]) for s, d in zip(hidden, depths)]
        parts["squarehead"] += sum(F.mse_loss(s, t) / (t.square().mean() + SQUAREHEAD_EPS) for s, t in pairs) / len(pairs) / count
    return parts


def optimizer_of(student):
    """AdamW with rates of their own for the tables, and no decay of norms."""
    tables = {student.get_input_embeddings().weight, student.get_output_embeddings().weight}
    matrices = [p for p in student.parameters() if p.dim() == 2 and p not in tables]
    norms = [p for p in student.parameters() if p.dim() == 1]
    groups = [dict(params=list(tables), lr=OPTIM["embedding_lr"]), dict(params=matrices, lr=OPTIM["lr"]),
              dict(params=norms, lr=OPTIM["lr"], weight_decay=0.0)]
    return torch.optim.AdamW(groups, betas=(OPTIM["beta1"], OPTIM["beta2"]), eps=OPTIM["eps"],
                             weight_decay=OPTIM["weight_decay"])


def rate_factor(step):
    """Linear warm-up, then half a cosine down to the final fraction at the last step."""
    if step <= OPTIM["warmup_steps"]:
        return step / OPTIM["warmup_steps"]
    progress = (step - OPTIM["warmup_steps"]) / (STEPS - OPTIM["warmup_steps"])
    least = OPTIM["final_lr_fraction"]
    return least + (1 - least) * (1 + math.cos(math.pi * progress)) / 2


def held_out_loss(student, micro_batches):
    sequences = [sequence for batch in micro_batches for sequence in batch]
    with torch.no_grad():
        nll = sum(F.cross_entropy(forward(student, s)[1], torch.tensor(s["targets"]), ignore_index=-1,
                                  reduction="sum").item() for s in sequences)
    return nll / sum(t >= 0 for s in sequences for t in s["targets"])


def masks_of(student):
    """The outer two of every four weights in a row stay, in every matrix of the blocks."""
    return {p: torch.tensor([1.0, 0.0, 0.0, 1.0]).repeat(p.numel() // 4).view_as(p)
            for name, p in student.named_parameters() if ".layers." in name and p.dim() == 2}


def take_step(student, teacher, optimizer, masks, sequences, step):
    """One step of accumulated micro-batches; what it was."""
    targets = sum(t >= 0 for s in sequences for t in s["targets"])
    parts = dict.fromkeys(LOSSES, 0.0)
    optimizer.zero_grad()
    for begin in range(0, len(sequences), SEQUENCES):
        batch = parts_of(student, teacher, sequences[begin:begin + SEQUENCES], targets, len(sequences))
        sum(weight * batch[name] for name, weight in LOSSES.items()).backward()
        parts = {name: value + batch[name].item() for name, value in parts.items()}
    for parameter, mask in masks.items():
        parameter.grad *= mask
    norm = math.sqrt(sum(p.grad.square().sum().item() for p in student.parameters()))
    for parameter in student.parameters():
        parameter.grad *= min(1.0, OPTIM["clip_norm"] / norm)
    factor = rate_factor(step)
    rates = [group["lr"] for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate * factor
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate
    return dict(loss=sum(LOSSES[name] * value for name, value in parts.items()), parts=parts, gradient_norm=norm,
                lr=OPTIM["lr"] * factor)


def write_case(folder, tied, masked, sequences, held_out):
    torch.manual_seed(11)
    student = LlamaForCausalLM(LlamaConfig(**STUDENT, tie_word_embeddings=tied)).double()
    teacher = LlamaForCausalLM(LlamaConfig(**TEACHER)).double()
    with torch.no_grad():
        for name, parameter in [*student.named_parameters(), *teacher.named_parameters()]:
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            parameter.copy_(parameter.bfloat16())  # exact in every type that the test computes in
        masks = masks_of(student) if masked else {}
        for parameter, mask in masks.items():
            parameter.mul_(mask)
    student.float().save_pretrained(folder / "student")
    teacher.float().save_pretrained(folder / "teacher")
    student.double(), teacher.double()
    optimizer = optimizer_of(student)
    losses = {name: [held_out_loss(student, batches)] for name, batches in held_out.items()}
    steps = []
    for step in range(1, STEPS + 1):
        batch = sequences[(step - 1) * SEQUENCES * ACCUMULATE:step * SEQUENCES * ACCUMULATE]
        steps.append(take_step(student, teacher, optimizer, masks, batch, step))
        for name, batches in held_out.items():
            losses[name].append(held_out_loss(student, batches))
    student.float().save_pretrained(folder / "trained")
    (folder / "expected.json").write_text(json.dumps(dict(
        masked=masked, optim=OPTIM, losses=LOSSES, steps=steps,
        held_out={name: dict(windows=batches, losses=losses[name]) for name, batches in held_out.items()}), indent=1))


def write_cases(folder):
    texts = documents()
    (folder / "text.jsonl").write_text("".join(json.dumps(dict(text=text)) + "\n" for text in texts))
    sequences = packed(texts, STEPS * SEQUENCES * ACCUMULATE)
    windows = packed([text[::-1] for text in texts], 5)
    held_out = {"first": [windows[0:2], windows[2:3]], "second": [windows[3:5]]}
    for name, case in CASES.items():
        write_case(folder / "cases" / name, **case, sequences=sequences, held_out=held_out)


def write(out_dir, shared):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tensors of a few rows: more threads only wait for each other
    write_cases(out_dir / "train")
    torch.set_num_threads(threads)
