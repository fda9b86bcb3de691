"""Perplexity, bits per byte, KL and top-1 of transformers over fixed windows and rolling documents.
No begin-of-text token is a target: it has no bytes of text.

student/          europa-5m with noise on its weights, saved by save_pretrained
text.jsonl        documents, {"text", "ids"}: ids without special tokens
expected.json     {"context", "fixed" | "rolling": {"targets", "bytes", "nll", "teacher_nll", "kl", "top1",
                  "top1_agreement", "windows": [{"ids", "nll"}], "documents": [{"targets", "nll", "teacher_nll", "kl"}],
                  "ece", "confidence_gap", "confidence_bins": [[targets, right, sum of confidence]]}};
                  nll of ids[j], null where it is not predicted; sums over the targets of each document
padded.json       "fixed" of padded/, whose head has rows without a token that often win
stretched.json    {"fixed", "rolling", "prompt", "greedy"} of stretched/, whose positions are dynamic beyond 64 tokens
texts/*.txt       documents, most of them short
snippet.json      {"context", "loss"}: what the program in docs/commands.md prints of them
"""

import contextlib
import io
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

TEACHER = Path(__file__).resolve().parent.parent.parent / "models" / "europa-5m"
CONTEXT = 100
BOS = 0
TOKENS = 4096  # of the vocabulary
SHORT = 64  # positions of the stretched model


def documents():
    tokenizer = Tokenizer.from_file(str(TEACHER / "tokenizer.json"))
    docs = json.loads((TEACHER / "reference.json").read_text())["docs"]
    # Lengths on both sides of a window's, one of them exactly a window and one just one token.
    texts = [tokenizer.decode(doc["ids"][1:length]) for doc, length in zip(docs, (412, 60, 101, 350, 7, 205, 512))]
    return [dict(text=text, ids=tokenizer.encode(text, add_special_tokens=False).ids) for text in texts + ["a"]]


def fixed_windows(docs):
    joined = [i for doc in docs for i in [BOS] + doc["ids"]]
    owners = [d for d, doc in enumerate(docs) for _ in [BOS] + doc["ids"]]
    is_text = [inside for doc in docs for inside in [False] + [True] * len(doc["ids"])]
    for begin in range(0, len(joined) - 1, CONTEXT - 1):
        ids = joined[begin:begin + CONTEXT]
        targets = [j for j in range(1, len(ids)) if is_text[begin + j]]
        yield ids, len(ids), targets, [owners[begin + j] for j in targets]


def rolling_windows(docs):
    """Windows of CONTEXT inputs; one token more is predicted."""
    for d, doc in enumerate(docs):
        ids = [BOS] + doc["ids"]
        for done in range(0, len(doc["ids"]), CONTEXT):
            end = min(done + CONTEXT, len(doc["ids"]))
            begin = max(0, end - CONTEXT)
            yield ids[begin:end + 1], end - begin, list(range(done + 1 - begin, end + 1 - begin)), [d] * (end - done)


def calibration(confidence, right):
    """Expected calibration error over 15 bins (a, b], as in the code of Guo et al. 2017, and mean confidence minus accuracy."""
    bins, error = [], 0.0
    for m in range(15):
        inside = confidence.gt(m / 15) & confidence.le((m + 1) / 15)
        bins.append([inside.sum().item(), right[inside].sum().item(), confidence[inside].sum().item()])
        if inside.any():
            error += (right[inside].double().mean() - confidence[inside].mean()).abs().item() * inside.double().mean().item()
    return dict(ece=error, confidence_gap=(confidence.mean() - right.double().mean()).item(), confidence_bins=bins)


def renew_positions(model):
    """A dynamic embedding remembers the longest text that it has seen."""
    model.model.rotary_emb = type(model.model.rotary_emb)(config=model.config)
    return model


def scores(student, teacher, windows, size, documents):
    """`windows`: ids, how many of them are inputs, the places of the targets, and the document of each target."""
    sums = dict(targets=0, nll=0.0, teacher_nll=0.0, kl=0.0, top1=0, top1_agreement=0, rows_won=0)
    lines, confidence, right = [], [], []
    documents = [dict(targets=0, nll=0.0, teacher_nll=0.0, kl=0.0) for _ in range(documents)]
    for ids, count, places, owners in windows:
        inputs, targets = torch.tensor([ids[:count]]), torch.tensor([ids[j] for j in places])
        with torch.no_grad():
            rows = [j - 1 for j in places]
            s, t = (renew_positions(m)(inputs).logits[0, rows].double().log_softmax(-1) for m in (student, teacher))
        of_tokens_s, of_tokens_t = s[:, :TOKENS].log_softmax(-1), t[:, :TOKENS].log_softmax(-1)
        top1, teacher_top1 = of_tokens_s.argmax(-1), of_tokens_t.argmax(-1)
        nll = -s.gather(1, targets[:, None])[:, 0]
        sums["targets"] += len(targets)
        sums["nll"] += nll.sum().item()
        teacher_nll, kl = -t.gather(1, targets[:, None])[:, 0], (of_tokens_t.exp() * (of_tokens_t - of_tokens_s)).sum(-1)
        sums["teacher_nll"] += teacher_nll.sum().item()
        sums["kl"] += kl.sum().item()
        confidence.append(s[:, :TOKENS].max(-1).values.exp())
        right.append(top1 == targets)
        sums["top1"] += (top1 == targets).sum().item()
        sums["top1_agreement"] += (top1 == teacher_top1).sum().item()
        sums["rows_won"] += (s.argmax(-1) >= TOKENS).sum().item()
        nll_of = dict(zip(places, nll.tolist()))
        lines.append(dict(ids=ids, nll=[nll_of.get(j) for j in range(len(ids))]))
        for owner, *values in zip(owners, [1] * len(owners), nll.tolist(), teacher_nll.tolist(), kl.tolist(), strict=True):
            for key, value in zip(("targets", "nll", "teacher_nll", "kl"), values):
                documents[owner][key] += value
    count = sums.pop("targets")
    return dict(targets=count, bytes=size, windows=lines, documents=documents, **calibration(torch.cat(confidence), torch.cat(right)),
                **{key: value / count for key, value in sums.items()})


def write_padded(folder, student, teacher, docs, size):
    """Rows without a token that are like frequent tokens, only more so."""
    student.resize_token_embeddings(TOKENS + 40, mean_resizing=False)
    frequent = torch.tensor([i for doc in docs for i in doc["ids"]]).bincount().topk(40).indices
    matrix = student.get_output_embeddings().weight
    with torch.no_grad():
        matrix[TOKENS:] = 1.2 * matrix[frequent]
    student.save_pretrained(folder / "padded")
    found = scores(student, teacher, fixed_windows(docs), size, len(docs))
    assert found["rows_won"] > 0.05, found["rows_won"]
    (folder / "padded.json").write_text(json.dumps(dict(fixed=found)))


def write_stretched(folder, docs, size):
    directory = folder / "stretched"
    AutoModelForCausalLM.from_pretrained(TEACHER, dtype=torch.float32).save_pretrained(directory)
    config = json.loads((directory / "config.json").read_text())
    config["max_position_embeddings"] = SHORT
    config["rope_parameters"].update(rope_type="dynamic", factor=2.0)
    (directory / "config.json").write_text(json.dumps(config))
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    found = {name: scores(model, model, windows(docs), size, len(docs))
             for name, windows in (("fixed", fixed_windows), ("rolling", rolling_windows))}
    prompt = [BOS] + docs[0]["ids"][:SHORT - 14]
    greedy = renew_positions(model).generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=40, pad_token_id=0,
                                             eos_token_id=None)[0].tolist()
    (folder / "stretched.json").write_text(json.dumps(dict(prompt=prompt, greedy=greedy, **found)))


def write_snippet(folder):
    """Runs the program of docs/commands.md as it stands there, on another folder of texts."""
    docs = json.loads((TEACHER / "reference.json").read_text())["docs"]
    tokenizer = Tokenizer.from_file(str(TEACHER / "tokenizer.json"))
    (folder / "texts").mkdir(exist_ok=True)
    for number, doc in enumerate(docs):
        length = (4, 9, 30, 700)[number % 4]
        (folder / "texts" / f"{number:03}.txt").write_bytes(tokenizer.decode(doc["ids"][1:length]).encode())
    page = (TEACHER.parent.parent / "docs" / "commands.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    for written, used in (("models/europa-5m", TEACHER), ("texts/*.txt", folder / "texts" / "*.txt"), ("512", CONTEXT)):
        assert program.count(written) == 1, written
        program = program.replace(written, str(used))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    (folder / "snippet.json").write_text(json.dumps(dict(context=CONTEXT, loss=float(printed.getvalue()))))


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
    write_padded(folder, student, teacher, docs, size)
    write_stretched(folder, docs, size)
    write_snippet(folder)
