"""Tokenizers of every supported kind with the ids and texts that HF tokenizers makes of nasty strings; where the extra
data is at hand, also its tokenizers on its texts.

text/<tokenizer>/tokenizer.json, cases.jsonl: {"text", "ids", "ids_no_special", "decoded", "decoded_with_special"} or,
for ids drawn at random, {"ids", "decoded", "decoded_with_special"}.
text/sentencepiece/<name>/tokenizer.model, cases.jsonl: {"text", "ids", "decoded"} by SentencePiece itself.
text/classes.json: {"tokenizer", "model_type", "tokenizer_class", "follows_file"}: whether transformers gives the ids of
tokenizer.json, by the kind of model and the class that tokenizer_config.json names.
text/bos.json: {"tokenizer", "tokenizer_config", "text", "ids"}: what transformers makes of add_bos_token beside a tokenizer.json.
text/mended.json: {"text", "ids"}: those of transformers where it is asked to mend the expression of a Mistral, whose tokenizer
is made/llama3 with tokens "x<id>" up to 100,000.
text/documents/<group>.bin: documents; text/parity/<tokenizer>/<group>.bin: their ids and decoded texts.  A row is
uint32 size, then so many bytes (int32 for ids), little-endian.
"""

import ctypes
import ctypes.util
import io
import itertools
import json
import random
import shutil
import struct
import tempfile
from pathlib import Path

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

from ._patterns import LLAMA3, QWEN2, TEKKEN

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTION +
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTION +
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# DeepSeek has several expressions one after the other; those of its tokenizer.json.
DEEPSEEK3 = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
             r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^""" "\r\n" r"""\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[""" "\r\n" r"""]*|\s*[""" "\r\n" r"""]+|\s+(?!\S)|\s+"""]
# Letters with case of an older Unicode, first and last of each range.
CASED = """
41 5A 61 7A B5 B5 C0 D6 D8 F6 F8 1BA 1BC 1BF 1C4 293 295 2AF 370 373 376 377 37B 37D 37F 37F 386 386 388 38A 38C 38C 38E 3A1 3A3 3F5
3F7 481 48A 52F 531 556 10A0 10C5 13A0 13F5 13F8 13FD 1C90 1CBA 1CBD 1CBF 1D00 1D2B 1D6B 1D77 1D79 1D9A 1E00 1F15 1F18 1F1D 1F20 1F45
1F48 1F4D 1F50 1F57 1F59 1F59 1F5B 1F5B 1F5D 1F5D 1F5F 1F7D 1F80 1FB4 1FB6 1FBC 1FBE 1FBE 1FC2 1FC4 1FC6 1FCC 1FD0 1FD3 1FD6 1FDB
1FE0 1FEC 1FF2 1FF4 1FF6 1FFC 2102 2102 2107 2107 210A 2113 2115 2115 2119 211D 2124 2124 2126 2126 2128 2128 212A 212D 212F 2134
2139 2139 213C 213F 2145 2149 214E 214E 2183 2184 2C00 2C7B 2C7E 2CE4 2CEB 2CEE 2CF2 2CF3 A640 A66D A680 A69B A722 A76F A771 A787
A78B A78E AB70 ABBF FB00 FB06 FB13 FB17 FF21 FF3A FF41 FF5A 10400 1044F 104B0 104D3 104D8 104FB 10C80 10CB2 10CC0 10CF2 118A0 118DF
1E900 1E943""".split()
DEEPSEEK_LETTERS = "\\s?[" + "".join(chr(int(first, 16)) + ("" if first == last else "-" + chr(int(last, 16)))
                                     for first, last in zip(CASED[::2], CASED[1::2])) + "]+"
DEEPSEEK_SIGNS = "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"
DEEPSEEK_CJK = "[一-龥ࠀ-一가-퟿]+"
DEEPSEEK_LLM = ["[\r\n]", DEEPSEEK_LETTERS, DEEPSEEK_SIGNS, r"\s+$", DEEPSEEK_CJK]
DEEPSEEK_CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_CJK]
RUNS = sorted({*DEEPSEEK_LLM, *DEEPSEEK_CODER, *DEEPSEEK3[:2], r"\p{N}", r"\p{N}+"} - {r"\s+$"})

CORPUS = [
    "The kernel reads the file, and the file's owner writes it; they'll read it again in 2024, or 1999.",
    "Der Übersetzer öffnet die Datei und schließt sie wieder: größer, schöner, heißer. 12345 Wörter.",
    "L'utilisateur n'a pas été trouvé; où est-il allé ? Ça va être très long… «déjà vu».",
    "Το αρχείο δεν βρέθηκε. Ο χρήστης διαβάζει το κείμενο.", "Файл не найден. Пользователь читает текст.",
    "for (int i = 0; i < 100; ++i) {\n\t\tsum += values[i];   // add\n}\n\n\n    return sum;\r\n",
    "日本語のテキストと中文文本。한국어 텍스트도 있습니다.", "He'd said I'M sure WE'LL SEE; you've don't can't 'tis.",
    "www.example.org/path/to/file.txt?x=1&y=2 -- ===== ##### .... ,,,, !!! ((())) [[]] <b>bold</b>",
    "CamelCaseNames HTTPServer XMLParser getElementById fooBarBaz ALLCAPS lowercase MixedUP",
] * 3

GOLDEN = [
    "", " ", "  ", "   ", "\n", "\r\n", "\r", "\t", "\t\t x", "a", "A", "é", "e\u0301", "ß", "Hello world", " Hello", "Hello ",
    "  Hello   world  ", "a\r\nb\r\n\r\nc", " \n \n ", "\n \n", "x \n", "x  \ny", "\u180e", "a\u180eb", " \u180e ", "\u00a0",
    "a\u00a0b", "\u00a0\u00a0x", "'s", "'S", "'\u017f", "x'\u017ft", "'\u017f'S's", "'ll'LL'lL've'RE'd'M'T", "'", "''", "' s", "'l", "'r",
    "\u0301", "\u0301a", " \u0301a", "A\u0301b", "aA", "Aa", "AAa", "aAa", "ABcD", "ABÇd", "ǅa", "ʰA", "日A", "A日b", "אבג", "مرحبا ١٢٣",
    "٠١٢٣٤٥٦٧٨٩", "½²³Ⅷ", "1", "12", "123", "1234", "1234567890", " 12 345", "v1.2.3", "3.14e-10", "👩‍👩‍👧‍👦", "👍🏽", "🇩🇪🇫🇷", "😀" * 20,
    "\ufeff", "\ufffd", "\u200b", "a\u200bb", "\u2028\u2029", "\u3000", "\u0085", "\u001c\u001f", "\x00", "a\x00b", "\x7f", "\U0010ffff", "\ue000",
    "\u1100\u1161\u11a8", "각", "Å", "\u212b", "A\u030a", "\u0344", "q\u0307\u0323", "\u0958", "Ω", "<|endoftext|>", "<|endoftext|><|endoftext|>", " <|endoftext|> ",
    "<|endoftext", "<s>", "</s><s>", "<unk>", "<0x41>", "▁", "▁▁a▁", " ▁ a", "a" * 300, " " * 300, "ab " * 100, "\n" * 100, "\t" * 65,
    "a/b//c/", "!!!\n\n", "?/\r\n/", " !\n", "x!\n\ny", "---\n---", "Ġ", "Ċ", "Ā", "ĠĠ", "中" * 64, "\u17b4", "ﬁ", "İi", "\u1e9e", "\u13a0\uab70",
    "\U00011de0", "\U00016ff4", "\u2160", "\u19da", "𝔘𝔫𝔦", "𞤀𞤢", "ა Ა", "ꙁ\ua69e",
]

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz ", "ABC abc 123", "'sStTdDmMlLrRvVeE\u017f ", " \t\r\n\u00a0\u180e\u3000\u2003\u0085", "0123456789.,٣½", "éèüßñåÅ\u0301\u0323\u0307\u030a",
    "日本語中文한국어", "ΑαΒβЖжшыאבعر", "!?.,;:-_/\\()[]{}<>|@#$%^&*~`\"", "😀👩\u200d👧🏽🇩🇪", "▁ ▁a<0x41>", "ĠĊĀ \n", "aAbBʰǅ日\u0301 _/",
]


def nasty_strings(count: int, extra: list[str], seed: int = 20240229) -> list[str]:
    """Golden strings, then strings of mixed alphabets, whole code space and `extra` pieces."""
    rng = random.Random(seed)
    words = " ".join(CORPUS).split(" ")
    out = list(GOLDEN)
    while len(out) < len(GOLDEN) + count:
        text = ""
        for _ in range(rng.randint(1, 8)):
            kind = rng.random()
            if kind < 0.45:
                alphabet = rng.choice(ALPHABETS)
                text += "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 12)))
            elif kind < 0.65:
                text += " ".join(rng.choice(words) for _ in range(rng.randint(1, 6)))
            elif kind < 0.75:
                text += rng.choice(" \n\tzA7") * rng.randint(1, 40)
            elif kind < 0.85 and extra:
                text += rng.choice(["", " ", "  ", "\n", "x", "_"]) + rng.choice(extra) + rng.choice(["", " ", " \t ", "x"])
            else:
                top = rng.choice([0x250, 0x3000, 0x10000, 0x110000])
                codes = [rng.randrange(top) for _ in range(rng.randint(1, 10))]
                text += "".join(chr(c) for c in codes if not 0xD800 <= c < 0xE000)
        out.append(text)
    return out


def trained(pre_tokenizer, normalizer=None, size=700, special=("<|endoftext|>",), alphabet=None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=list(special),
                                                              initial_alphabet=alphabet, show_progress=False))
    return tokenizer


def changed(tokenizer: Tokenizer, change) -> Tokenizer:
    """The tokenizer after `change` has edited its JSON."""
    document = json.loads(tokenizer.to_str())
    change(document)
    return Tokenizer.from_str(json.dumps(document))


def byte_level(split, **model_options) -> Tokenizer:
    tokenizer = trained(split)
    tokenizer.decoder = decoders.ByteLevel()
    return changed(tokenizer, lambda d: d["model"].update(model_options))


def split_then_bytes(pattern: str, behavior: str = "isolated", invert: bool = False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior, invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def splits_then_bytes(patterns: list[str], digits=None):
    return pre_tokenizers.Sequence([*(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns), *([digits] if digits else []),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def bos_template(token: str, id_: int, single: str):
    return processors.TemplateProcessing(single=single, special_tokens=[(token, id_)])


def add_unreachable_tokens(document) -> None:
    """Whole words that merges do not reach: only ignore_merges finds them."""
    vocabulary = document["model"]["vocab"]
    for word in ("Ġkernel", "zzz", "ĠÃ©", "Hello", "ĊĊĊ", "1234"):
        vocabulary.setdefault(word, len(vocabulary))


def llama3_style(pattern=LLAMA3) -> Tokenizer:
    tokenizer = changed(byte_level(split_then_bytes(pattern), ignore_merges=True), add_unreachable_tokens)
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                    bos_template("<|begin_of_text|>", bos, "<|begin_of_text|> $A")])
    return tokenizer


BYTES = [f"<0x{b:02X}>" for b in range(256)]


def spm(byte_tokens=(), fuse_unk=True, unk=True, pre_tokenizer=None, normalizer="legacy") -> Tokenizer:
    if normalizer == "legacy":
        normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    # Training needs words; the tokenizer then works on whole segments.
    tokenizer = trained(pre_tokenizers.Metaspace(), None, 400, ("<unk>", "<s>", "</s>", *byte_tokens), [])

    def change(document) -> None:
        document["added_tokens"] = [t for t in document["added_tokens"] if t["id"] < 3]
        document["model"].update(byte_fallback=bool(byte_tokens), fuse_unk=fuse_unk, unk_token="<unk>" if unk else None)

    tokenizer = changed(tokenizer, change)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer = changed(tokenizer, lambda d: d.update(pre_tokenizer=None))
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.post_processor = bos_template("<s>", 1, "<s> $A")
    steps = [decoders.Replace("▁", " "), *([decoders.ByteFallback()] if byte_tokens else []), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])
    return tokenizer


def with_added_tokens(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<|im_end|>", rstrip=True),
                                  AddedToken("<both>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([
        AddedToken("word", single_word=True), AddedToken("Wörter", single_word=True, normalized=False),
        AddedToken("ab", normalized=False), AddedToken("abc", normalized=False), AddedToken("abcabd", normalized=False),
        AddedToken("    ", normalized=False), AddedToken("  ", normalized=True), AddedToken("\n\n\n"), AddedToken("日本"),
        AddedToken("e\u0301x", normalized=True), AddedToken("two words", normalized=True),
        AddedToken("<soft>", normalized=True, special=True), AddedToken("\tend", rstrip=True, normalized=False)])
    return tokenizer


ADDED = ["<mask>", "<|im_end|>", "<both>", "word", "words", "sword", "Wörter", "abcabc", "abcabd", "    ", "日本語", "e\u0301x", "éx",
         "two words", "<soft>", "\tend", "\n\n\n"]


def standalone_tokenizers() -> dict[str, Tokenizer]:
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits
    made = {
        "gpt2": byte_level(gpt2),
        "gpt2-prefix-space": byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
        "digits": byte_level(pre_tokenizers.Sequence([digits(individual_digits=True), gpt2])),
        "digit-runs": byte_level(pre_tokenizers.Sequence([digits(individual_digits=False), gpt2])),
        "cl100k": byte_level(split_then_bytes(LLAMA3)),
        "cl100k-inverted": byte_level(split_then_bytes(LLAMA3, "removed", True)),
        "llama3": llama3_style(),
        "tekken": llama3_style(TEKKEN),
        "o200k": llama3_style(O200K),
        "o200k-plain": byte_level(split_then_bytes(O200K)),
        "deepseek3": byte_level(splits_then_bytes(DEEPSEEK3)),
        "deepseek-llm": byte_level(splits_then_bytes(DEEPSEEK_LLM, digits(individual_digits=True))),
        "deepseek-coder": byte_level(splits_then_bytes(DEEPSEEK_CODER, digits(individual_digits=True))),
        "qwen2-nfc": byte_level(split_then_bytes(QWEN2)),
        "spm-fallback": spm(BYTES),
        "spm-some-bytes": spm(BYTES[:0xA0]),
        "spm-some-bytes-unfused": spm(BYTES[:0xA0], fuse_unk=False),
        "spm-unk": spm(),
        "spm-unk-unfused": spm(fuse_unk=False),
        "spm-no-unk": spm(unk=False),
        "added-byte-level": with_added_tokens(byte_level(split_then_bytes(LLAMA3))),
        "added-spm": with_added_tokens(spm(BYTES)),
        "template-both-sides": byte_level(gpt2),
    }
    made["qwen2-nfc"].normalizer = normalizers.NFC()
    made["added-nfc"] = with_added_tokens(changed(made["qwen2-nfc"], lambda d: None))
    made["template-both-sides"].post_processor = bos_template("<|endoftext|>", 0, "<|endoftext|> $A <|endoftext|>")
    for scheme in ("first", "always", "never"):
        for split in (True, False):
            pre = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
            tokenizer = spm(BYTES, pre_tokenizer=pre, normalizer=None)
            tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
            made[f"metaspace-{scheme}-{'split' if split else 'whole'}"] = with_added_tokens(tokenizer)
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        tokenizer = spm(pre_tokenizer=pre_tokenizers.Split("▁", behavior))
        tokenizer = changed(tokenizer, lambda d: d.update(decoder=None))  # joined by spaces
        made[f"literal-{behavior}"] = tokenizer
    return made


def case_of(tokenizer: Tokenizer, text: str) -> dict:
    ids = tokenizer.encode(text).ids
    return {"text": text, "ids": ids, "ids_no_special": tokenizer.encode(text, add_special_tokens=False).ids,
            "decoded": tokenizer.decode(ids), "decoded_with_special": tokenizer.decode(ids, skip_special_tokens=False)}


def random_ids(tokenizer: Tokenizer, count: int) -> list[dict]:
    rng = random.Random(17)
    known = sorted(tokenizer.get_vocab().values())
    low = known[: min(len(known), 300)]  # single bytes are among the first
    cases = []
    for _ in range(count):
        ids = [rng.choice(low if rng.random() < 0.6 else known) for _ in range(rng.randint(0, 12))]
        cases.append({"ids": ids, "decoded": tokenizer.decode(ids),
                      "decoded_with_special": tokenizer.decode(ids, skip_special_tokens=False)})
    return cases


def write_cases(folder: Path, tokenizer: Tokenizer, texts: list[str]) -> None:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    cases = [case_of(tokenizer, text) for text in texts] + random_ids(tokenizer, 100)
    with open(folder / "cases.jsonl", "w", encoding="utf-8") as out:
        for case in cases:
            out.write(json.dumps(case, ensure_ascii=False) + "\n")


def write_tokenizer(folder: Path, tokenizer: Tokenizer, legacy: bool) -> None:
    folder.mkdir(parents=True)
    document = json.loads(tokenizer.to_str())
    if legacy:  # merges as lines, first line and all
        document["model"]["merges"] = ["#version: 0.2", *(" ".join(pair) for pair in document["model"]["merges"])]
    (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


class Buffer(ctypes.Structure):
    """ZSTD_inBuffer and ZSTD_outBuffer."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("position", ctypes.c_size_t)]


def decompressed(path: Path, at_least: int) -> bytes:
    """The first `at_least` bytes or a little more of a zstd file, by the library that the build needs anyway."""
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_createDStream.restype = ctypes.c_void_p
    library.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.POINTER(Buffer), ctypes.POINTER(Buffer)]
    library.ZSTD_decompressStream.restype = ctypes.c_size_t
    library.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
    packed = path.read_bytes()
    space = ctypes.create_string_buffer(at_least + (1 << 18))
    source = Buffer(ctypes.cast(packed, ctypes.c_void_p), len(packed), 0)
    target = Buffer(ctypes.cast(space, ctypes.c_void_p), len(space), 0)
    stream = library.ZSTD_createDStream()
    while target.position < at_least and source.position < source.size:
        result = library.ZSTD_decompressStream(stream, ctypes.byref(target), ctypes.byref(source))
        assert not library.ZSTD_isError(ctypes.c_size_t(result)), path
    library.ZSTD_freeDStream(stream)
    return space.raw[: target.position]


def first_documents(path: Path, size: int) -> list[str]:
    """Whole lines of about the first `size` bytes; a longer document is cut."""
    out, total = [], 0
    lines = decompressed(path, 2 * size).split(b"\n")[:-1]
    assert lines, f"{path}: no whole document in {2 * size} bytes"
    for line in lines:
        if total >= size:
            break
        out.append(json.loads(line)["text"][: size - total])
        total += len(out[-1])
    return out


MANUAL_BYTES = 100_000


def shared_documents(shared: Path) -> dict[str, list[str]]:
    def plain(folder: str) -> list[str]:
        return [p.read_bytes().decode("utf-8") for p in sorted((shared / "text" / folder).glob("*.txt"))
                if p.name != "SOURCE.txt"]

    manuals = []
    for path in sorted((shared / "text" / "manuals").glob("*.jsonl.zst")):
        manuals += first_documents(path, MANUAL_BYTES)
    return {"udhr": plain("udhr-eu24"), "tinystories": plain("tinystories"), "manuals": manuals}


def shared_tokenizers(shared: Path) -> dict[str, Path]:
    of_models = {p.parent.name: p for p in sorted((shared / "models").glob("*/tokenizer.json"))}
    others = {p.parent.name if p.name == "tokenizer.json" else p.stem: p
              for p in sorted((shared / "tokenizers").glob("*/*tokenizer.json"))}
    return of_models | others


def write_rows(path: Path, rows: list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as out:
        for row in rows:
            out.write(struct.pack("<I", len(row)) + row)


def write_parity(out: Path, shared: Path) -> None:
    documents = shared_documents(shared)
    for group, texts in documents.items():
        write_rows(out / "documents" / f"{group}.bin", [text.encode("utf-8") for text in texts])
    for name, path in shared_tokenizers(shared).items():
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        (out / "parity" / name).mkdir(parents=True)
        (out / "parity" / name / "source.txt").write_text(str(path.relative_to(shared)))
        for group, texts in documents.items():
            rows = []
            for encoding in tokenizer.encode_batch_fast(texts):
                rows.append(struct.pack(f"<{len(encoding.ids)}i", *encoding.ids))
                rows.append(tokenizer.decode(encoding.ids).encode("utf-8"))
            write_rows(out / "parity" / name / f"{group}.bin", rows)
        write_cases(out / "parity" / name, tokenizer, nasty_strings(300, ADDED))


def write_pieces(out: Path) -> None:
    """What the splitting steps alone make of nasty strings: ids hide a wrong cut where nothing merges across it."""
    gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    steps = {name: pre_tokenizers.Split(Regex(pattern), "isolated")
             for name, pattern in [("gpt2", gpt2), ("llama3", LLAMA3), ("qwen2", QWEN2), ("tekken", TEKKEN),
                                   ("o200k", O200K), ("deepseek3", DEEPSEEK3[2]), ("spaces_at_end", r"\s+$")]}
    steps |= {"re:" + pattern: pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in RUNS}
    steps |= {"digits": pre_tokenizers.Digits(individual_digits=True),
              "digit-runs": pre_tokenizers.Digits(individual_digits=False)}
    with open(out / "pieces.jsonl", "w", encoding="utf-8") as file:
        for text in nasty_strings(1500, ADDED, seed=5):
            row = {"text": text} | {name: [piece for piece, _ in step.pre_tokenize_str(text)] for name, step in steps.items()}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


SENTENCEPIECE = {
    "llama": {"byte_fallback": True},
    "gemma": {"byte_fallback": True, "add_dummy_prefix": False, "user_defined_symbols": ["▁▁", "▁▁▁", "\n\n", "<start>", "日本"]},
    "split-digits": {"byte_fallback": True, "split_digits": True},
    "no-bytes": {},
    # Those that have to be refused.
    "unigram": {"model_type": "unigram"},
    "nfkc": {"normalization_rule_name": "nfkc"},
    "single-spaces": {"remove_extra_whitespaces": True},
}


def trained_sentencepiece(options: dict) -> bytes:
    model = io.BytesIO()
    fixed = {"model_type": "bpe", "vocab_size": 600, "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
             "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, **(fixed | options))
    return model.getvalue()


def sentencepiece_case(processor, text: str) -> dict:
    ids = processor.encode(text)
    return {"text": text, "ids": ids} | ({} if processor.unk_id() in ids else {"decoded": processor.decode(ids)})


def write_sentencepiece(folder: Path, model: bytes) -> None:
    """Control tokens in a text are left to tokenizer.json's readers, which find them; SentencePiece does not."""
    folder.mkdir(parents=True)
    (folder / "tokenizer.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    control = [processor.id_to_piece(i) for i in range(len(processor)) if processor.is_control(i) or processor.is_unknown(i)]
    texts = [text for text in nasty_strings(1500, ["▁▁", "   ", "\n\n\n", "<start>", "日本語"]) if not any(c in text for c in control)]
    with open(folder / "cases.jsonl", "w", encoding="utf-8") as out:
        for text in texts:
            out.write(json.dumps(sentencepiece_case(processor, text), ensure_ascii=False) + "\n")


CLASSES = ["GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizerFast", "Qwen2Tokenizer", "GemmaTokenizer", "LlamaTokenizerFast", "CodeLlamaTokenizer",
           "PreTrainedTokenizerFast", None]
MODEL_TYPES = ["llama", "qwen2", "qwen3", "granite", "gemma2"]
REVEALING = ["a  1", " hello", "hello", "e\u0301", "12345", "I'LL", "a\n b", "\u180e x", "don't 10%"]


def by_transformers(folder: Path, config: dict, tokenizer_config: dict, **more):
    """The tokenizer that transformers makes of the tokenizer.json in a folder, of a model with these two files."""
    import transformers
    transformers.logging.set_verbosity_error()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return transformers.AutoTokenizer.from_pretrained(folder, **more)


def put_made(out: Path, name: str, folder: Path) -> Tokenizer:
    """Copies a tokenizer with its merges as they are written today."""
    tokenizer = Tokenizer.from_file(str(out / "made" / name / "tokenizer.json"))
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def write_classes(out: Path, folder: Path) -> None:
    rows = []
    for name in ["gpt2", "digits", "qwen2-nfc", "spm-fallback"]:
        file = put_made(out, name, folder)
        expected = [file.encode(text, add_special_tokens=False).ids for text in REVEALING]
        for model_type, of_class in itertools.product(MODEL_TYPES, CLASSES):
            theirs = by_transformers(folder, {"model_type": model_type}, {"tokenizer_class": of_class} if of_class else {})
            if type(theirs).__name__ in ("GemmaTokenizer", "CodeLlamaTokenizer") and name != "spm-fallback":
                continue  # which want the token <unk>
            same = [theirs(text, add_special_tokens=False).input_ids for text in REVEALING] == expected
            rows.append({"tokenizer": name, "model_type": model_type, "tokenizer_class": of_class, "follows_file": same})
    (out / "classes.json").write_text(json.dumps(rows))


def write_bos(out: Path, folder: Path) -> None:
    rows = []
    for name, adds in itertools.product(["gpt2", "template-both-sides"], [True, False]):
        put_made(out, name, folder)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": adds, "add_eos_token": adds,
                  "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
        theirs = by_transformers(folder, {"model_type": "llama"}, config)
        rows += [{"tokenizer": name, "tokenizer_config": config, "text": text, "ids": theirs(text).input_ids} for text in ["hello", ""]]
    (out / "bos.json").write_text(json.dumps(rows))


def write_mended(out: Path, folder: Path) -> None:
    tokenizer = json.loads(put_made(out, "llama3", folder).to_str())
    vocabulary = tokenizer["model"]["vocab"]
    known = [*vocabulary.values(), *(token["id"] for token in tokenizer["added_tokens"])]
    vocabulary.update({f"x{number}": number for number in range(max(known) + 1, 100_001)})  # transformers looks at large ones
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    theirs = by_transformers(folder, {"model_type": "mistral", "transformers_version": "4.57.1"},
                             {"tokenizer_class": "PreTrainedTokenizerFast"}, fix_mistral_regex=True)
    texts = ["CamelCase HTTPServer 12345", "I'LL a/b//c/", *REVEALING]
    (out / "mended.json").write_text(json.dumps([{"text": text, "ids": theirs(text).input_ids} for text in texts]))


def write(out_dir: Path, shared: Path | None) -> None:
    out = out_dir / "text"
    for name, options in SENTENCEPIECE.items():
        write_sentencepiece(out / "sentencepiece" / name, trained_sentencepiece(options))
    if shared is not None:
        for path in sorted((shared / "tokenizers").glob("*/tokenizer.model")):
            write_sentencepiece(out / "sentencepiece" / path.parent.name, path.read_bytes())
    write_pieces(out)
    texts = nasty_strings(400, ADDED)
    for number, (name, tokenizer) in enumerate(standalone_tokenizers().items()):
        folder = out / "made" / name
        # Lines cannot tell a space inside a token from the one between tokens.
        spaced = any(" " in part for pair in json.loads(tokenizer.to_str())["model"]["merges"] for part in pair)
        write_tokenizer(folder, tokenizer, legacy=number % 2 == 0 and not spaced)
        write_cases(folder, tokenizer, texts)
    europa = Path(__file__).resolve().parents[2] / "models" / "europa-5m" / "tokenizer.json"
    folder = out / "made" / "europa-5m"
    folder.mkdir(parents=True)
    shutil.copy(europa, folder / "tokenizer.json")
    write_cases(folder, Tokenizer.from_file(str(europa)), texts)
    with tempfile.TemporaryDirectory() as scratch:
        write_classes(out, Path(scratch))
        write_bos(out, Path(scratch))
        write_mended(out, Path(scratch))
    if shared is not None:
        write_parity(out, shared)
