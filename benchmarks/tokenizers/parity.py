#!/usr/bin/env python3
"""Compares ids and texts with those of the programs that tokenizers come from, on strings drawn from a seed: all that Unicode has,
contractions, digits, spaces, marks, words of many languages, and the tokenizer's own tokens.

    benchmarks/tokenizers/parity.py --program build/release/cli/retort --strings 100000 TOKENIZER...

TOKENIZER is a tokenizer.json, compared with Hugging Face's tokenizers, or a directory that has only a tokenizer.model, compared
with SentencePiece, or only a tekken.json, compared with mistral-common.  Needs these packages (tools/setup python test has the
first two).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from oracles import text  # noqa: E402


def of_retort(program, tokenizer, strings, folder):
    (folder / "strings.jsonl").write_text("".join(json.dumps({"text": string}) + "\n" for string in strings))
    command = [program, "tokenize", tokenizer, folder / "strings.jsonl", "--json", "--no-special"]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    return [json.loads(line)["ids"] for line in out.splitlines()]


def texts_of_retort(program, tokenizer, ids, folder):
    (folder / "ids.jsonl").write_text("".join(json.dumps({"ids": row}) + "\n" for row in ids))
    with open(folder / "ids.jsonl") as file:
        out = subprocess.run([program, "detokenize", tokenizer, "--json"], stdin=file, stdout=subprocess.PIPE, check=True).stdout.decode()
    return [json.loads(line)["text"] for line in out.split("\n")[:-1]]


def compare(options, tokenizer, folder):
    """Strings, strings with other ids, with other texts."""
    if (tokenizer / "tekken.json").exists():
        from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
        theirs = Tekkenizer.from_file(str(tokenizer / "tekken.json"))
        names = [theirs.id_to_piece(i) for i in range(theirs.num_special_tokens, theirs.n_words)]
        control = [theirs.id_to_piece(i) for i in range(theirs.num_special_tokens)]  # letters to mistral-common
        encode = lambda rows: [theirs.encode(row, bos=False, eos=False) for row in rows]  # noqa: E731
        decode = lambda rows: [theirs.decode(row, SpecialTokenPolicy.KEEP) for row in rows]  # noqa: E731
        unknown = None
    elif tokenizer.is_dir():
        import sentencepiece
        processor = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer / "tokenizer.model"))
        names = [processor.id_to_piece(i) for i in range(len(processor))]
        control = [name for i, name in enumerate(names) if processor.is_control(i) or processor.is_unknown(i)]
        encode, decode = processor.encode, lambda rows: [processor.decode(row) for row in rows]
        unknown = processor.unk_id()
    else:
        theirs = text.Tokenizer.from_file(str(tokenizer))
        theirs.no_truncation()
        names, control, unknown = list(theirs.get_vocab()), [], None
        encode = lambda rows: [one.ids for one in theirs.encode_batch_fast(rows, add_special_tokens=False)]  # noqa: E731
        decode = theirs.decode_batch
    extra = names[:: max(1, len(names) // 500)]
    strings = [s for s in text.nasty_strings(options.strings, text.ADDED + extra, seed=options.seed) if not any(c in s for c in control)]
    wanted, found = encode(strings), of_retort(options.program, tokenizer, strings, folder)
    other_ids = [s for s, a, b in zip(strings, wanted, found, strict=True) if a != b]
    for string in other_ids[:5]:
        print(f"  other ids: {string!r}", file=sys.stderr)
    rows = [row for row in wanted if row and unknown not in row]
    other_texts = sum(a != b for a, b in zip(decode(rows), texts_of_retort(options.program, tokenizer, rows, folder), strict=True))
    return len(strings), len(other_ids), other_texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", nargs="+", type=Path, metavar="TOKENIZER")
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| tokenizer | strings | other ids | other texts |\n|---|---:|---:|---:|")
    different = 0
    for tokenizer in options.tokenizers:
        with tempfile.TemporaryDirectory() as folder:
            strings, ids, texts = compare(options, tokenizer, Path(folder))
        name = tokenizer.parent.name if tokenizer.name == "tokenizer.json" else tokenizer.name
        print(f"| {name} | {strings} | {ids} | {texts} |", flush=True)
        different += ids + texts
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
