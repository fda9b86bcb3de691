"""The table of interop.py in its two forms: docs/formats/loads.md for readers, retort/publish/load_table.inc for the program."""

import json
import re
import time

LONGEST_REASON = 120
BEGIN, END = "<!-- written by benchmarks/interop/interop.py -->\n", "<!-- end -->\n"
DOCUMENT, SOURCE_FILE, SETTINGS_FILE = "docs/formats/loads.md", "retort/publish/load_table.inc", "retort/publish/load_settings.inc"

# What whole sentences come to.
SHORT = [
    (r"is a \w+, expected one of .* for a GGUF file.*", "Retort knows no GGUF architecture for it"),
    (r".*queries and keys are normalised across heads.*", "norms of queries and keys go across heads"),
    (r".*the embedding is multiplied by the root of the hidden size.*", "the embedding is multiplied by the root of the hidden size"),
    (r".*no family computes what a \w+ does with fewer heads.*", "its class takes no such number of heads"),
    (r"\w+Error: check_tensor_dims: tensor '(?:blk\.\d+\.)?(\S+)' has wrong shape; expected ([\d, ]+?), got (\d+, \d+).*",
     r"\1 is \3, it wants \2"),
    (r'GGUF architecture "\w+" would compute something else: (.*?)(?: in block \d+)? cannot be said in it.*', r"\1 cannot be said in it"),
    (r'GGUF architecture "\w+" has no tensor for "(?:model\.layers\.\d+\.)?(.*)";.*', r"it has no \1"),
    (r"its blocks see \d+ tokens, and llama\.cpp computes \w+ without a window.*", "it computes no windows there"),
    (r"ValueError: (There is no module or parameter named '[^']*').*", r"\1"),
    (r"has \d+ query heads of \d+, expected as many channels as its hidden size.*", "its heads together are not as wide as its hidden state"),
    (r"RuntimeError: start \(0\) \+ length .*", "a tensor is smaller than it wants"),
    (r"\w+Error: (.*)", r"\1"),
]


def in_short(cell):
    """A cell with its reason in a few words."""
    kind, colon, reason = re.sub("^other log-probabilities, .*", "other log-probabilities", cell).partition(": ")
    for pattern, words in SHORT:
        reason = re.sub("^" + pattern + "$", words, reason, flags=re.DOTALL)
    said = kind + colon + reason
    return said if len(said) <= LONGEST_REASON else said[: LONGEST_REASON - 3] + "..."


def table_of(cells, families, whats, program, notes):
    """Lines of Markdown; `notes` gets the reasons that are numbered in it."""
    yield "| | " + " | ".join(families) + " |"
    yield "|---" * (1 + len(families)) + "|"
    for what in whats:
        row = [in_short(cells[family, what, program]) for family in families]
        notes.extend(cell for cell in dict.fromkeys(row) if cell != "loads" and cell not in notes)
        yield f"| `{what}` | " + " | ".join("yes" if cell == "loads" else f"({1 + notes.index(cell)})" for cell in row) + " |"


def columns_of(cells):
    return (list(dict.fromkeys(key[i] for key in cells)) for i in range(3))


def markdown(cells, versions):
    """A table for each program, and the reasons below them."""
    families, whats, programs = columns_of(cells)
    notes, lines = [], []
    for program in filter(programs.__contains__, versions):
        tried = any(cells[family, what, program] != "not tried" for family in families for what in whats)
        rows = table_of(cells, families, whats, program, notes) if tried else ["not tried"]
        lines += [f"**{program} {versions[program]}**", "", *rows, ""]
    return "\n".join(lines + [f"{number}. {note}" for number, note in enumerate(notes, 1)]) + "\n"


def listed(cells, versions):
    """A row for each model."""
    programs = [program for program in versions if any(key[2] == program for key in cells)]
    lines = ["| | " + " | ".join(f"{program} {versions[program]}" for program in programs) + " |", "|---" * (1 + len(programs)) + "|"]
    for family, what in dict.fromkeys(key[:2] for key in cells):
        lines.append(f"| {family} `{what}` | " + " | ".join(in_short(cells[family, what, program]) for program in programs) + " |")
    return "\n".join(lines) + "\n"


def rows(cells, versions):
    for (family, what, program), cell in cells.items():
        yield "{" + ", ".join(map(json.dumps, (family + "ForCausalLM", what, program, versions[program], in_short(cell)))) + "},\n"


def tried(versions):
    return time.strftime("%Y-%m-%d"), ", ".join(f"{program} {version}" for program, version in versions.items())


def first_line(script, versions):
    return "// Written by benchmarks/interop/{} on {} with {}; do not edit.\n".format(script, *tried(versions))


def write_settings(cells, versions, root):
    """What a program that read an export computed otherwise, or did not load."""
    failed = {key: cell for key, cell in cells.items() if cell.startswith(("fails", "other"))}
    (root / SETTINGS_FILE).write_text(first_line("interop.py --settings", versions) + "".join(rows(failed, versions)), encoding="utf-8")


def write(cells, versions, root):
    date, programs = tried(versions)
    document = root / DOCUMENT
    before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    document.write_text(f"{before}{BEGIN}{date}, {programs}.\n\n{markdown(cells, versions)}{END}{after}", encoding="utf-8")
    (root / SOURCE_FILE).write_text(first_line("interop.py", versions) + "".join(rows(cells, versions)), encoding="utf-8")
