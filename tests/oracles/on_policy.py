"""What a student learns from texts that it wrote itself, as TRL's GKDTrainer computes it, in float64 through transformers.

student/, teacher/   models with random weights, saved by save_pretrained
expected.json        {"texts": [{"ids", "prompt_tokens"}], "cases": [{"kind", "beta", "temperature", "direction", "loss",
                     "gradient_norm"}]}: prompts with what generate() drew after them, cut behind the end-of-text token;
                     the loss is that of a batch padded on the left, its gradient's norm is over all parameters
"""

import json
import math

import torch
from torch.nn import functional as F
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

EOS, PAD = 2, 3
STUDENT = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, max_position_embeddings=128, initializer_range=0.3, bos_token_id=1,
               eos_token_id=EOS)
TEACHER = {**STUDENT, "num_hidden_layers": 3, "intermediate_size": 64}
PROMPTS = [5, 9, 3, 7, 5, 8, 4, 6, 9, 2]  # tokens
CASES = [dict(kind="jensen_shannon", beta=beta, temperature=1.0) for beta in (0.0, 0.1, 0.5, 1.0)]
CASES += [dict(kind="kl_divergence", direction=direction, temperature=1.0) for direction in ("forward", "reverse")]
CASES += [dict(kind="total_variation", temperature=1.0)]


def generalized_jsd(student, teacher, labels, beta):
    """Sum over the vocabulary, mean over labels that count; beta 0 and 1 are the two divergences."""
    log_q, log_p = student.log_softmax(-1), teacher.log_softmax(-1)
    if beta == 0:
        divergence = F.kl_div(log_q, log_p, reduction="none", log_target=True)
    elif beta == 1:
        divergence = F.kl_div(log_p, log_q, reduction="none", log_target=True)
    else:
        log_m = torch.logaddexp(log_q + math.log1p(-beta), log_p + math.log(beta))
        divergence = (beta * F.kl_div(log_m, log_p, reduction="none", log_target=True)
                      + (1 - beta) * F.kl_div(log_m, log_q, reduction="none", log_target=True))
    counted = labels != -100
    return divergence[counted].sum() / counted.sum()


def total_variation(student, teacher, labels):
    return 0.5 * (student.softmax(-1) - teacher.softmax(-1)).abs().sum(-1)[labels != -100].mean()


def written_texts(student):
    """Prompts of several lengths and what the student draws after them; some end by themselves, some at once."""
    width = max(PROMPTS)
    prompts = torch.full((len(PROMPTS), width), PAD)
    for row, tokens in enumerate(PROMPTS):
        prompts[row, width - tokens:] = torch.randint(10, STUDENT["vocab_size"], (tokens,))
    how = GenerationConfig(do_sample=True, top_k=0, max_new_tokens=14, pad_token_id=PAD, eos_token_id=EOS)
    rows = student.generate(prompts, attention_mask=(prompts != PAD).long(), generation_config=how)
    texts = []
    for row, tokens in zip(rows.tolist(), PROMPTS):
        new = row[width:]
        texts.append(dict(ids=row[width - tokens:width] + new[:new.index(EOS) + 1 if EOS in new else len(new)],
                          prompt_tokens=tokens))
    return texts


def padded(texts):
    """Prompts padded on the left, what follows on the right, as the trainer has them."""
    width, longest = max(PROMPTS), max(len(t["ids"]) - t["prompt_tokens"] for t in texts)
    ids, labels = (torch.full((len(texts), width + longest), fill) for fill in (PAD, -100))
    attended = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        first, new = width - text["prompt_tokens"], len(text["ids"]) - text["prompt_tokens"]
        ids[row, first:width + new] = torch.tensor(text["ids"])
        attended[row, first:width + new] = 1
        labels[row, width:width + new] = ids[row, width:width + new]
    return ids, attended, labels, width


def logits_of(model, ids, attended, width):
    positions = (attended.cumsum(-1) - 1).clamp(min=0)
    return model(input_ids=ids, attention_mask=attended, position_ids=positions).logits[:, width - 1:-1]


def computed(case, student, teacher, texts):
    ids, attended, labels, width = padded(texts)
    with torch.no_grad():
        of_teacher = logits_of(teacher, ids, attended, width)
    student.zero_grad()
    of_student, labels = logits_of(student, ids, attended, width), labels[:, width:]
    if case["kind"] == "total_variation":
        loss = total_variation(of_student, of_teacher, labels)
    else:
        beta = case.get("beta", {"forward": 0, "reverse": 1}.get(case.get("direction")))
        loss = generalized_jsd(of_student, of_teacher, labels, beta)
    loss.backward()
    norm = math.sqrt(sum(p.grad.square().sum().item() for p in student.parameters()))
    return {**case, "loss": loss.item(), "gradient_norm": norm}


def write(out_dir, shared):
    folder = out_dir / "on_policy"
    torch.manual_seed(2)
    student, teacher = (LlamaForCausalLM(LlamaConfig(**shape)).eval() for shape in (STUDENT, TEACHER))
    with torch.no_grad():  # likely in some places
        student.lm_head.weight[EOS] *= 4
    student.save_pretrained(folder / "student")
    teacher.save_pretrained(folder / "teacher")
    student.double(), teacher.double()
    texts = written_texts(student)
    assert any(t["ids"][-1] == EOS for t in texts) and any(t["ids"][-1] != EOS for t in texts)
    cases = [computed(case, student, teacher, texts) for case in CASES]
    (folder / "expected.json").write_text(json.dumps(dict(texts=texts, cases=cases), indent=1))
