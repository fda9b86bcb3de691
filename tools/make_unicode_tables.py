#!/usr/bin/env python3
"""Writes retort/text/unicode_tables.cpp: the character classes and the canonical decompositions that the text layer uses.

Everything is asked of the Hugging Face `tokenizers` package itself, code point by code point, so that our hand-written
scanners see the very same Unicode version as its regular expressions do.  Only the values of combining classes are
Python's; whether a character has one is asked too, because the package's normalizer follows an older Unicode.

    python3 tools/make_unicode_tables.py > retort/text/unicode_tables.cpp
"""

import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, __version__, models, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL_TEXT = "".join(map(chr, CODE_POINTS))


def kept_by(split) -> set[int]:
    """Code points that `split`, which removes what it matches, takes away."""
    taken = set(range(len(CODE_POINTS)))
    for _, (begin, end) in split.pre_tokenize_str(ALL_TEXT):
        taken.difference_update(range(begin, end))
    return {CODE_POINTS[i] for i in taken}


def matching(pattern: str) -> set[int]:
    return kept_by(pre_tokenizers.Split(Regex(pattern), "removed"))


def numeric() -> set[int]:
    # Isolated digits: every numeric character is a piece of its own, other characters are taken two by two.
    text = "".join(chr(c) + "ab" for c in CODE_POINTS)
    pieces = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str(text)
    return {CODE_POINTS[b // 3] for _, (b, e) in pieces if e - b == 1 and b % 3 == 0}


def added_token_sweep(**options) -> list[int]:
    """Start offsets of the added token in <code point>@@<space>, for every code point (-1: not found)."""
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer.add_tokens([AddedToken("@@", normalized=False, **options)])
    token = tokenizer.token_to_id("@@")
    starts = []
    for first in range(0, len(CODE_POINTS), 65536):
        part = CODE_POINTS[first : first + 65536]
        encoding = tokenizer.encode("".join(chr(c) + "@@!" for c in part))
        begins = [-1] * len(part)
        for id_, (begin, end) in zip(encoding.ids, encoding.offsets):
            if id_ == token:
                begins[(end - 1) // 4] = begin % 4
        starts += begins
    return starts


def classes() -> list[tuple[str, set[int]]]:
    space = matching(r"\s")
    stripped = {c for c, start in zip(CODE_POINTS, added_token_sweep(lstrip=True)) if start == 0 and c != ord("@")}
    assert stripped == space, sorted(stripped ^ space)
    word = {c for c, start in zip(CODE_POINTS, added_token_sweep(single_word=True)) if start == -1}
    return [
        ("kLetter", matching(r"\p{L}")),
        ("kNumber", matching(r"\p{N}")),
        ("kMark", matching(r"\p{M}")),
        ("kUpperLike", matching(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]")),
        ("kLowerLike", matching(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]")),
        ("kSpace", space),
        ("kNumeric", numeric()),
        ("kWord", word - {ord("@")}),
        ("kPunctuation", matching(r"\p{P}")),
        ("kSymbol", matching(r"\p{S}")),
    ]


def ranges_of(values: list[int]) -> list[tuple[int, int, int]]:
    rows = []
    for code, value in enumerate(values):
        if value and rows and rows[-1][1] == code - 1 and rows[-1][2] == value:
            rows[-1] = (rows[-1][0], code, value)
        elif value:
            rows.append((code, code, value))
    return rows


def canonical() -> tuple[list[tuple[int, str]], list[tuple[int, int, int]]]:
    nfd, nfc = normalizers.NFD(), normalizers.NFC()
    decompositions, compositions = [], []
    for code in CODE_POINTS:
        if 0xAC00 <= code < 0xD7A4:
            continue  # Hangul syllables follow a formula
        parts = nfd.normalize_str(chr(code))
        if parts == chr(code):
            continue
        decompositions.append((code, parts))
        if nfc.normalize_str(chr(code)) == chr(code):
            first = nfc.normalize_str(parts[:-1])
            assert len(first) == 1 and nfc.normalize_str(first + parts[-1]) == chr(code), hex(code)
            compositions.append((ord(first), ord(parts[-1]), code))
    return decompositions, sorted(compositions)


def combining_classes() -> list[int]:
    nfd = normalizers.NFD()
    lowest, highest = "\u0334", "\u0345"  # classes 1 and 240
    values = [0] * 0x110000
    for code in CODE_POINTS:
        mark = chr(code)
        moves = (nfd.normalize_str(mark + lowest) != nfd.normalize_str(mark) + lowest
                 or nfd.normalize_str(highest + mark) != highest + nfd.normalize_str(mark))
        if moves:
            values[code] = unicodedata.combining(mark)
            assert values[code] or nfd.normalize_str(mark) != mark, hex(code)
    return values


def print_rows(head: str, rows: list[str]) -> None:
    print(head)
    line = " "
    for row in rows:
        if len(line) + len(row) > 108:
            print(line)
            line = " "
        line += " " + row + ","
    print(line + "\n};\n")


def main() -> None:
    named = classes()
    values = [0] * 0x110000
    for bit, (_, members) in enumerate(named):
        for code in members:
            values[code] |= 1 << bit
    print(f"// Written by tools/make_unicode_tables.py from tokenizers {__version__}; do not edit.")
    print("// Class bits, lowest first: " + ", ".join(name for name, _ in named) + ".")
    print("// clang-format off")
    print('#include "retort/text/unicode_tables.h"\n\nnamespace retort::text {\n')
    rows = [f"{{0x{a:X},0x{b:X},{v}}}" for a, b, v in ranges_of(values)]
    print_rows("const ClassRange kClassRanges[] = {", rows)
    print(f"const std::size_t kClassRangeCount = {len(rows)};\n")
    decompositions, compositions = canonical()
    assert max(len(parts) for _, parts in decompositions) <= 4
    rows = ["{0x%X,{%s}}" % (c, ",".join(f"0x{ord(p):X}" for p in parts)) for c, parts in decompositions]
    print_rows("const Decomposition kDecompositions[] = {", rows)
    print(f"const std::size_t kDecompositionCount = {len(rows)};\n")
    rows = [f"{{0x{a:X},0x{b:X},0x{c:X}}}" for a, b, c in compositions]
    print_rows("const Composition kCompositions[] = {", rows)
    print(f"const std::size_t kCompositionCount = {len(rows)};\n")
    rows = [f"{{0x{a:X},0x{b:X},{v}}}" for a, b, v in ranges_of(combining_classes())]
    print_rows("const ClassRange kCombiningRanges[] = {", rows)
    print(f"const std::size_t kCombiningRangeCount = {len(rows)};\n\n}}  // namespace retort::text")


main()
