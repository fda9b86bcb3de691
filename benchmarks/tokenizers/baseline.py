#!/usr/bin/env python3
"""What tokenizers.cpp does, with Hugging Face's `tokenizers`: one pass over all documents by encode_batch_fast, as JSON.
The variables RAYON_NUM_THREADS and TOKENIZERS_PARALLELISM choose the threads."""

import argparse
import array
import json
import subprocess
import time
from pathlib import Path

from tokenizers import Tokenizer


def read_bytes(path: Path) -> bytes:
    commands = {".zst": ["zstd", "-dc"], ".gz": ["gzip", "-dc"]}
    if path.suffix in commands:
        return subprocess.run([*commands[path.suffix], path], check=True, stdout=subprocess.PIPE).stdout
    return path.read_bytes()


def documents_of(path: Path) -> list[str]:
    text = read_bytes(path).decode("utf-8", "replace")
    if ".jsonl" not in path.suffixes:
        return [text]
    return [json.loads(line)["text"] for line in text.split("\n") if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--ids", type=Path)
    arguments = parser.parse_args()
    path = arguments.tokenizer
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    documents = [document for path in arguments.texts for document in documents_of(path)]
    begin, processor_begin = time.perf_counter(), time.process_time()
    encodings = tokenizer.encode_batch_fast(documents)
    end, processor_end = time.perf_counter(), time.process_time()
    if arguments.ids:
        with open(arguments.ids, "wb") as out:
            for encoding in encodings:
                array.array("i", [len(encoding)]).tofile(out)
                array.array("i", encoding.ids).tofile(out)
    print(json.dumps({"documents": len(documents), "bytes": sum(len(d.encode()) for d in documents),
                      "tokens": sum(map(len, encodings)), "seconds": end - begin,
                      "processor_seconds": processor_end - processor_begin}))


if __name__ == "__main__":
    main()
