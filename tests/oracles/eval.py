"""Perplexity, bits per byte, KL and top-1 of transformers over fixed windows and rolling documents.

student/          europa-5m with noise on its weights, saved by save_pretrained
text.jsonl        documents, {"text", "ids"}: ids without special tokens
expected.json     {"context", "fixed" | "rolling": {"targets", "bytes", "nll", "teacher_nll", "kl", "top1",
                  "top1_agreement", "windows": [{"ids", "nll"}], "documents": [{"targets", "nll", "teacher_nll", "kl"}],
                  "ece", "confidence_gap", "confidence_bins": [[targets, right, sum of confidence]]}};
                  nll of ids[j], null where it is not predicted; sums over the targets of each document
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
    owners = [d for d, doc in enumerate(docs) for _ in [BOS] + doc["ids"]]
    for begin in range(0, len(joined) - 1, CONTEXT - 1):
        ids = joined[begin:begin + CONTEXT]
        yield ids, 1, owners[begin + 1:begin + CONTEXT]


def rolling_windows(docs):
    """Windows of CONTEXT inputs with one token more, of which those from `first` on are predicted."""
    for d, doc in enumerate(docs):
        ids = [BOS] + doc["ids"]
        for done in range(0, len(doc["ids"]), CONTEXT):
            end = min(done + CONTEXT, len(doc["ids"]))
            begin = max(0, end - CONTEXT)
            yield ids[begin:end + 1], done + 1 - begin, [d] * (end - done)


def calibration(confidence, right):
    """Expected calibration error over 15 bins (a, b], as in the code of Guo et al. 2017, and mean confidence minus accuracy."""
    bins, error = [], 0.0
    for m in range(15):
        inside = confidence.gt(m / 15) & confidence.le((m + 1) / 15)
        bins.append([inside.sum().item(), right[inside].sum().item(), confidence[inside].sum().item()])
        if inside.any():
            error += (right[inside].double().mean() - confidence[inside].mean()).abs().item() * inside.double().mean().item()
    return dict(ece=error, confidence_gap=(confidence.mean() - right.double().mean()).item(), confidence_bins=bins)


def scores(student, teacher, windows, size, documents):
    sums = dict(targets=0, nll=0.0, teacher_nll=0.0, kl=0.0, top1=0, top1_agreement=0)
    lines, confidence, right = [], [], []
    documents = [dict(targets=0, nll=0.0, teacher_nll=0.0, kl=0.0) for _ in range(documents)]
    for ids, first, owners in windows:
        inputs, targets = torch.tensor([ids[:-1]]), torch.tensor(ids[first:])
        with torch.no_grad():
            s, t = (m(inputs).logits[0, first - 1:].double().log_softmax(-1) for m in (student, teacher))
        nll = -s.gather(1, targets[:, None])[:, 0]
        sums["targets"] += len(targets)
        sums["nll"] += nll.sum().item()
        teacher_nll, kl = -t.gather(1, targets[:, None])[:, 0], (t.exp() * (t - s)).sum(-1)
        sums["teacher_nll"] += teacher_nll.sum().item()
        sums["kl"] += kl.sum().item()
        confidence.append(s.max(-1).values.exp())
        right.append(s.argmax(-1) == targets)
        sums["top1"] += (s.argmax(-1) == targets).sum().item()
        sums["top1_agreement"] += (s.argmax(-1) == t.argmax(-1)).sum().item()
        lines.append(dict(ids=ids, nll=[None] * first + nll.tolist()))
        for owner, *values in zip(owners, [1] * len(owners), nll.tolist(), teacher_nll.tolist(), kl.tolist(), strict=True):
            for key, value in zip(("targets", "nll", "teacher_nll", "kl"), values):
                documents[owner][key] += value
    count = sums.pop("targets")
    return dict(targets=count, bytes=size, windows=lines, documents=documents, **calibration(torch.cat(confidence), torch.cat(right)),
                **{key: value / count for key, value in sums.items()})


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
    expected = dict(context=CONTEXT, fixed=scores(student, teacher, fixed_windows(docs), size, len(docs)),
                    rolling=scores(student, teacher, rolling_windows(docs), size, len(docs)))
    (folder / "expected.json").write_text(json.dumps(expected))
