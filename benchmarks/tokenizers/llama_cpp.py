#!/usr/bin/env python3
"""Compares ids with the test vectors of llama.cpp: `ggml-vocab-NAME.gguf` with `.inp` and `.out` beside it.

    llama_cpp.py --program build/release/cli/retort FOLDER

FOLDER is `vendor/llama.cpp/models` of the source package llama-cpp-python 0.3.36.  The vectors have the ids of texts that
are hard to cut, by the vocabularies of released models, without special tokens.  Prints a line for each vocabulary: all
ids equal, which text differs first, or why the tokenizer is refused.  Ends with 1 where an id differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

BETWEEN = "\n__ggml_vocab_test__\n"


def tokenized(program, vocabulary, texts):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
        file.flush()
        done = subprocess.run([program, "tokenize", str(vocabulary), file.name, "--json", "--no-special"],
                              capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1].split(": ", 3)[-1], None
    return None, [json.loads(line)["ids"] for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/cli/retort")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    failed = False
    for inputs in sorted(options.folder.glob("ggml-vocab-*.gguf.inp")):
        name = inputs.name[len("ggml-vocab-"):-len(".gguf.inp")]
        texts = inputs.read_text(encoding="utf-8").split(BETWEEN)
        lines = inputs.with_suffix(".out").read_text().split("\n")[:len(texts)]
        expected = [[int(word) for word in line.split()] for line in lines]
        kept = [i for i, text in enumerate(texts) if text]
        refused, ids = tokenized(options.program, inputs.with_suffix(""), [texts[i] for i in kept])
        if refused:
            print(f"{name}: refused: {refused}")
            continue
        wrong = [(texts[i], expected[i], got) for i, got in zip(kept, ids, strict=True) if expected[i] != got]
        failed |= bool(wrong)
        print(f"{name}: {len(kept) - len(wrong)} of {len(kept)} texts have the same ids")
        for text, want, got in wrong[:3]:
            print(f"  {text!r}\n    expected {want}\n    found    {got}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
