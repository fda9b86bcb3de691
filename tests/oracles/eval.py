"""Perplexity, bits per byte, KL and top-1 of transformers over fixed windows and rolling documents.

student/          europa-5m with noise on its weights, saved by save_pretrained
text.jsonl        documents, {"text", "ids"}: ids without special tokens
expected.json     {"context", "fixed" | "rolling": {"targets", "bytes", "nll", "teacher_nll", "kl", "top1",
                  "top1_agreement", "windows": [{"ids", "nll"}]}}; nll of ids[j], null where it is not predicted
"""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

TEACHER = Path(__file__).resolve().parent.parent.parent / "models" / "europa-5m"
CONTEXT = 100
BOS = 0


def documents():
    tokenizer = Tokenizer.from_file(str(TEACHER / "tokenizer.json"))
    docs = json.loads((TEACHER / "reference.json").read_text())["docs"]
    # Lengths on both sides of a window's, one of them exactly a window and one just one token.
    texts = [tokenizer.decode(doc["ids"][1:length]) for doc, length in zip(docs, (412, 60, 101, 350, 7, 205, 512))]
    return [dict(text=text, ids=tokenizer.encode(text, add_special_tokens=False).ids) for text in texts + ["a"]]


def fixed_windows(docs):
    joined = [i for doc in docs for i in [BOS] + doc["ids"]]
    for begin in range(0, len(joined) - 1, CONTEXT - 1):
        ids = joined[begin:begin + CONTEXT]
        yield ids, 1


def rolling_windows(docs):
    """Windows of CONTEXT inputs with one token more, of which those from `first` on are predicted."""
    for doc in docs:
        ids = [BOS] + doc["ids"]
        for done in range(0, len(doc["ids"]), CONTEXT):
            end = min(done + CONTEXT, len(doc["ids"]))
            begin = max(0, end - CONTEXT)
            yield ids[begin:end + 1], done + 1 - begin


def scores(student, teacher, windows, size):
    sums = dict(targets=0, nll=0.0, teacher_nll=0.0, kl=0.0, top1=0, top1_agreement=0)
    lines = []
    for ids, first in windows:
        inputs, targets = torch.tensor([ids[:-1]]), torch.tensor(ids[first:])
        with torch.no_grad():
            s, t = (m(inputs).logits[0, first - 1:].double().log_softmax(-1) for m in (student, teacher))
        nll = -s.gather(1, targets[:, None])[:, 0]
        sums["targets"] += len(targets)
        sums["nll"] += nll.sum().item()
        sums["teacher_nll"] -= t.gather(1, targets[:, None]).sum().item()
        sums["kl"] += (t.exp() * (t - s)).sum().item()
        sums["top1"] += (s.argmax(-1) == targets).sum().item()
        sums["top1_agreement"] += (s.argmax(-1) == t.argmax(-1)).sum().item()
        lines.append(dict(ids=ids, nll=[None] * first + nll.tolist()))
    count = sums.pop("targets")
    return dict(targets=count, bytes=size, windows=lines, **{key: value / count for key, value in sums.items()})


def write(out_dir: Path, shared: Path | None) -> None:
    folder = out_dir / "eval"
    docs = documents()
    (folder / "text.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    torch.manual_seed(3)
    teacher = AutoModelForCausalLM.from_pretrained(TEACHER, dtype=torch.float32).eval()
    student = AutoModelForCausalLM.from_pretrained(TEACHER, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2 * parameter.std())
    student.save_pretrained(folder / "student")
    size = sum(len(doc["text"].encode()) for doc in docs)
    expected = dict(context=CONTEXT, fixed=scores(student, teacher, fixed_windows(docs), size),
                    rolling=scores(student, teacher, rolling_windows(docs), size))
    (folder / "expected.json").write_text(json.dumps(expected))
