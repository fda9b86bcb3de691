#!/usr/bin/env python3
"""Writes retort/chat/letter_case_tables.inc: upper and lower case of characters as Python has them.

    python3 tools/make_letter_case.py > retort/chat/letter_case_tables.inc
"""

import unicodedata

CODES = [c for c in range(0x80, 0x110000) if not 0xD800 <= c < 0xE000]


def table(name, kind, rows):
    print(f"const {kind} {name}[] = {{")
    line = " "
    for row in rows:
        text = " {" + ", ".join(row) + "},"
        if len(line) + len(text) > 108:
            print(line)
            line = " "
        line += text
    print(line + "\n};\n")


def shifts(change):
    """First and last code, distance between codes, and what is added to them."""
    runs = []
    for c in CODES:
        to = change(chr(c))
        if len(to) != 1 or ord(to) == c:
            continue
        add = ord(to) - c
        for step in (1, 2):
            if runs and runs[-1][3] == add and runs[-1][1] + step == c and runs[-1][2] in (0, step):
                runs[-1][1], runs[-1][2] = c, step
                break
        else:
            runs.append([c, c, 0, add])
    return [(hex(first), hex(last), str(step or 1), str(add)) for first, last, step, add in runs]


def longer(change):
    for c in CODES:
        to = change(chr(c))
        if len(to) != 1:
            yield hex(c), '"' + "".join(f"\\x{b:02X}" for b in to.encode()) + '"'


def ranges(belongs):
    runs = []
    for c in CODES:
        if not belongs(chr(c)):
            continue
        if runs and runs[-1][1] + 1 == c:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return [(hex(a), hex(b)) for a, b in runs]


print(f"// Written by tools/make_letter_case.py from Unicode {unicodedata.unidata_version}; do not edit.")
table("kUpperShifts", "Shift", shifts(str.upper))
table("kLowerShifts", "Shift", shifts(str.lower))
table("kLongUpper", "Longer", longer(str.upper))
table("kLongLower", "Longer", longer(str.lower))
table("kUpperRanges", "Range", ranges(str.isupper))
table("kLowerRanges", "Range", ranges(str.islower))
table("kOtherTitle", "Range", ranges(lambda c: c.title() != c.upper()))
