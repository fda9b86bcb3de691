"""Documents of the experiment, dealt out to four sets that have none in common.

A document is known by a hash of its first KEY_CHARACTERS characters.  Documents with the same key are in the same set, whatever
their source; what has the key of a test document is in no other set.
"""

import gzip
import hashlib
import json
import subprocess
from pathlib import Path

SETS = ("train", "search", "selection", "test")
KEY_CHARACTERS = 1000
SHARES = {"search": 0.10, "selection": 0.05}  # of the documents that are not test; the others are for training


class Refused(Exception):
    """One sentence for the user."""


def replace(path, data):
    """Writes the whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".writing")
    temporary.write_bytes(data)
    temporary.replace(path)


def _text_of(path):
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", str(path)], capture_output=True, check=True).stdout.decode()
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    return path.read_text(encoding="utf-8")


def read(path, separator=""):
    """The documents of a .jsonl file (key text) or of a plain one, cut at `separator`; either also with .zst or .gz."""
    path = Path(path)
    if not path.is_file():
        raise Refused(f"there is no file {path}; check --text and --stories.")
    text = _text_of(path)
    if ".jsonl" in path.name:
        return [json.loads(line)["text"] for line in text.split("\n") if line.strip()]
    documents = text.split(separator) if separator else [text]
    return [document for document in (document.strip() for document in documents) if document]


def key(text):
    return hashlib.sha256(text[:KEY_CHARACTERS].encode()).hexdigest()[:16]


def _share(document_key):
    """Uniform in [0, 1), a function of the key alone."""
    return int(hashlib.sha256(b"set of " + document_key.encode()).hexdigest()[:12], 16) / 16.0**12


def deal(sources, test_every=0, test_share=0.1):
    """{source: {set: [text]}} of {source: [text]}.  Test are documents n (from 0) with n % test_every == test_every - 1,
    or without test_every a share by hash."""
    test_keys = set()
    for texts in sources.values():
        for number, text in enumerate(texts):
            by_number = test_every > 0 and number % test_every == test_every - 1
            if by_number or (test_every == 0 and _share(key(text)) >= 1 - test_share):
                test_keys.add(key(text))
    dealt, seen = {}, set()
    for source, texts in sources.items():
        dealt[source] = {name: [] for name in SETS}
        for number, text in enumerate(texts):
            document = key(text)
            if document in seen:  # a copy teaches and measures nothing
                continue
            if document in test_keys:
                # Of europa-5m's test documents only the ones at their places were never trained on.
                if test_every == 0 or number % test_every == test_every - 1:
                    dealt[source]["test"].append(text)
                    seen.add(document)
                continue
            seen.add(document)
            share = _share(document)
            if share < SHARES["search"]:
                dealt[source]["search"].append(text)
            elif share < SHARES["search"] + SHARES["selection"]:
                dealt[source]["selection"].append(text)
            else:
                dealt[source]["train"].append(text)
    return dealt


def piece(folder, set_name, source):
    return Path(folder) / set_name / f"{source}.jsonl"


def write(folder, dealt, measured_documents, measured_characters):
    """One file per set and source.  Of selection and test the first `measured_documents`, cut to `measured_characters`, which is
    at least KEY_CHARACTERS, so that a cut document has the key of the whole."""
    assert measured_characters >= KEY_CHARACTERS
    for source, sets in dealt.items():
        for set_name, texts in sets.items():
            if not texts:
                raise Refused(f"source {source}: expected documents for {set_name}, found none; give more text.")
            if set_name in ("selection", "test"):
                texts = [text[:measured_characters] for text in texts[:measured_documents]]
            path = piece(folder, set_name, source)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")


def check(folder, sources):
    """Reads the files again: no document may be in two sets.  Returns {set: {source: documents}}."""
    owner, counts = {}, {}
    for set_name in SETS:
        for source in sources:
            texts = read(piece(folder, set_name, source))
            counts.setdefault(set_name, {})[source] = len(texts)
            shared = {}
            for text in texts:
                other = owner.setdefault(key(text), (set_name, source))
                if other[0] != set_name:
                    shared[other] = shared.get(other, 0) + 1
            for (other_set, other_source), number in shared.items():
                raise Refused(f"{piece(folder, set_name, source)} and {piece(folder, other_set, other_source)} have {number} documents "
                              f"in common; the sets must be disjoint, remove {folder} and start again.")
    return counts
