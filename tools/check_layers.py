#!/usr/bin/env python3
"""Checks that includes point downwards only: every `#include` against the dependencies that CMake is told of.

A layer is a folder of retort/ with `retort_module(name SOURCES ... DEPENDS ... [OPTIONS ...] [ROOMS ...] [APART ...] [TORCH])`; it may
include itself and the layers that it depends on, directly or not, and of the layers behind OPTIONS their options.h alone.
ROOMS are its folders, lowest first: a file in one includes what lies beside the rooms, its own room and those before it, and
a file beside them includes none.
retort/CMakeLists.txt lists the layers lowest first.  The folders beside retort/ (cli/, benchmarks/, tests/*/) may include
the layers that they link.  A layer's folder reference/ is for tests/ alone.
Prints file:line of each violation and ends with 1 if there is one.
"""

import argparse
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

SOURCE_SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".cu", ".hip", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH_HEADER = re.compile(r"^(ATen|c10|torch|caffe2)/")
FAT_TORCH_HEADER = re.compile(r"^torch/(torch|all|extension|nn|optim)\b")
# What only comm/ may know: MPI, NCCL or RCCL, and the accelerators' own runtimes.
CLUSTER_HEADER = re.compile(r"^(mpi\.h|mpi/.*|nccl\.h|nccl/.*|rccl/.*|rccl\.h|cuda\.h|cuda_\w+\.h|cuda/.*|hip/.*)$")
# What only the module behind parquet/ and the tests' files of tables may know: Apache Arrow.
ARROW_HEADER = re.compile(r"^(arrow|parquet)/")
MAY_KNOW_ARROW = ("retort/parquet/arrow/", "tests/support/parquet_files.cpp")
# Plain versions of what a layer computes: the oracle of the tests, and part of no program.
REFERENCE_HEADER = re.compile(r"^(retort/\w+/reference)/")
# What a family of models is called, in the tables of families; no other code asks for it.
FAMILY_TABLES = "retort/architecture/families"
FAMILY_NAME = re.compile(r'\.(?:architecture|model_type) = "([^"]+)"')
# A default, the names of a file format, of a pattern, and what was tried with each family.
MAY_NAME_FAMILIES = ("retort/architecture/config.h", "retort/io/gguf_", "retort/text/split.cpp", "retort/publish/load_")
KEYWORDS = {"SOURCES", "DEPENDS", "OPTIONS", "ROOMS", "LINKS", "APART", "TORCH"}


@dataclass
class Layer:
    name: str
    file: str
    line: int
    depends: list = field(default_factory=list)
    options: list = field(default_factory=list)
    rooms: list = field(default_factory=list)
    torch: bool = False


def without_comments(text):
    return re.sub(r"#[^\n]*", "", text)


def calls(text, function):
    """Yields (line, arguments) of each call of `function` in CMake's `text`; keeps no comments."""
    text = without_comments(text)
    for match in re.finditer(rf"\b{function}\s*\(([^)]*)\)", text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1).split()


def parse_module(file, line, words):
    layer = Layer(words[0], file, line)
    section = ""
    for word in words[1:]:
        if word in KEYWORDS:
            section = word
            layer.torch |= word == "TORCH"
        elif section == "DEPENDS":
            layer.depends.append(word)
        elif section == "OPTIONS":
            layer.options.append(word)
        elif section == "ROOMS":
            layer.rooms.append(word)
    return layer


def sources_below(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCE_SUFFIXES)


def room_of(name):
    """The room of a file of retort/, "" of one that lies in its layer's own folder."""
    parts = name.split("/")
    return parts[2] if len(parts) > 3 else ""


class Tree:
    """The layers of a checkout, and the violations found in it."""

    def __init__(self, root):
        self.root = root
        self.layers = {}
        self.violations = []
        self.read_layers()
        self.order = [words[0] for _, words in calls(self.read("retort/CMakeLists.txt"), "add_subdirectory")]

    def read(self, path):
        file = self.root / path
        return file.read_text(errors="replace") if file.is_file() else ""

    def report(self, file, line, text):
        self.violations.append(f"{file}:{line}: {text}")

    def read_layers(self):
        for cmake in sorted((self.root / "retort").glob("*/CMakeLists.txt")):
            file = str(cmake.relative_to(self.root))
            for line, words in calls(cmake.read_text(), "retort_module"):
                layer = parse_module(file, line, words)
                if layer.name != cmake.parent.name:
                    self.report(file, line, f"module {layer.name} lies in folder {cmake.parent.name}; name them alike")
                self.layers[layer.name] = layer

    def closure(self, names):
        """`names` and all layers below them."""
        reached, waiting = set(), list(names)
        while waiting:
            name = waiting.pop()
            if name in self.layers and name not in reached:
                reached.add(name)
                waiting += self.layers[name].depends
        return reached

    def check_dependencies(self):
        """Declared dependencies: known, listed lower, without cycles, and torch-free below torch-free layers."""
        for layer in self.layers.values():
            for name in layer.depends + layer.options:
                if name not in self.layers:
                    self.report(layer.file, layer.line, f"{layer.name} depends on {name}, which is no layer")
                    continue
                if self.position(name) > self.position(layer.name):
                    self.report(layer.file, layer.line, f"{layer.name} depends upwards on {name}, "
                                "which retort/CMakeLists.txt lists later")
                if name in layer.options:
                    self.check_options(layer, name)
                    continue
                if layer.name in self.closure([name]):
                    self.report(layer.file, layer.line, f"cycle: {name} depends on {layer.name} in turn")
                if not layer.torch and any(self.layers[n].torch for n in self.closure([name])):
                    self.report(layer.file, layer.line, f"{layer.name} declares no TORCH but depends on {name}, which needs it")

    def check_options(self, layer, name):
        """options.h of `name`, read by a layer that links nothing of it, needs at most options.h of other layers and
        what that layer links."""
        file = f"retort/{name}/options.h"
        linked = self.closure([layer.name])
        for line, text in enumerate(self.read(file).splitlines(), 1):
            match = INCLUDE.match(text)
            header = match.group(2) if match else ""
            is_linked = header.startswith("retort/") and header.split("/")[1] in linked
            fits = is_linked or header.endswith("/options.h") or not (TORCH_HEADER.match(header) or header.startswith("retort/"))
            if not fits:
                self.report(file, line, f"includes {header}: {layer.name} reads this file and links nothing of {name}")

    def position(self, name):
        return self.order.index(name) if name in self.order else len(self.order)

    def linked_layers(self, folder):
        """Layers that the CMakeLists.txt of a folder outside retort/ names, as retort::x or retort_test(x ...)."""
        text = without_comments(self.read(f"{folder}/CMakeLists.txt"))
        names = set(re.findall(r"\bretort::(\w+)", text)) | set(re.findall(r"\bretort_test\s*\(\s*(\w+)", text))
        return names & set(self.layers)

    def check_sources(self):
        for layer in self.layers.values():
            allowed = self.closure([layer.name]) | {f"{name}/options.h" for name in layer.options}
            self.check_folder(f"retort/{layer.name}", allowed, layer.torch, layer.name == "comm")
        for folder in sorted((self.root / "retort").iterdir()):  # without a module it would hide from the check
            sources = sources_below(folder)
            if sources and folder.name not in self.layers:
                self.report(sources[0].relative_to(self.root), 1, f"retort/{folder.name} declares no retort_module()")
        outside = ["cli", "benchmarks", *(f"tests/{p.name}" for p in sorted((self.root / "tests").glob("*")))]
        for folder in outside:
            allowed = self.closure(self.linked_layers(folder))
            # tests/support/ and the like link nothing of their own: their users' layers are checked in the users.
            allowed = allowed or set(self.layers)
            self.check_folder(folder, allowed, torch=True, cluster=folder == "tests/comm")

    def check_rooms(self):
        """Of layers that name their rooms: all are named, and includes between them point to earlier ones."""
        for layer in (layer for layer in self.layers.values() if layer.rooms):
            folder = self.root / "retort" / layer.name
            found = {room_of(str(file.relative_to(self.root))) for file in sources_below(folder)} - {""}
            for room in sorted(found ^ set(layer.rooms)):
                what = "has no sources" if room in layer.rooms else "is missing in ROOMS"
                self.report(layer.file, layer.line, f"room {room} of {layer.name} {what}")
            floor = {"": -1} | {room: number for number, room in enumerate(layer.rooms)}
            for file in sources_below(folder):
                name = str(file.relative_to(self.root))
                for line, header in self.includes(file):
                    if header.startswith(f"retort/{layer.name}/") and floor.get(room_of(header), 0) > floor.get(room_of(name), 0):
                        self.report(name, line, f"includes {header}: room {room_of(header)} of {layer.name} lies above")

    def check_family_names(self):
        names = {name for table in sorted((self.root / FAMILY_TABLES).glob("*.cpp"))
                 for name in FAMILY_NAME.findall(table.read_text())}
        if not names:
            return
        literal = re.compile("\"(" + "|".join(map(re.escape, sorted(names))) + ")\"")
        for top in ("retort", "cli"):
            for file in sorted((self.root / top).rglob("*")):
                name = str(file.relative_to(self.root))
                if file.suffix not in SOURCE_SUFFIXES or name.startswith((FAMILY_TABLES, *MAY_NAME_FAMILIES)):
                    continue
                for line, text in enumerate(file.read_text(errors="replace").splitlines(), 1):
                    if match := literal.search(text.partition("//")[0]):
                        self.report(name, line, f"names the family {match.group(1)}: only {FAMILY_TABLES} knows families")

    def check_folder(self, folder, allowed, torch, cluster):
        for file in sources_below(self.root / folder):
            self.check_file(file, folder, allowed, torch, cluster)

    def includes(self, file):
        """Yields (line, header) of each include, with the header's path from the root."""
        for line, text in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if match := INCLUDE.match(text):
                yield line, self.resolve(file, match.group(1), match.group(2))

    def check_file(self, file, folder, allowed, torch, cluster):
        name = file.relative_to(self.root)
        for line, header in self.includes(file):
            top, _, rest = header.partition("/")
            layer = rest.partition("/")[0]
            if top == "retort" and layer not in allowed and rest not in allowed:
                why = "is no layer" if layer not in self.layers else f"{folder} does not depend on {layer}"
                self.report(name, line, f"includes {header}: {why}")
            elif self.is_foreign_reference(name, header):
                self.report(name, line, f"includes {header}: only tests/ knows the reference versions")
            elif folder.startswith("retort/") and top in ("cli", "tests", "benchmarks"):
                self.report(name, line, f"includes {header}: the library knows nothing of {top}/")
            elif FAT_TORCH_HEADER.match(header):
                self.report(name, line, f"includes {header}: take the ATen header, this one costs 20 seconds a file")
            elif TORCH_HEADER.match(header) and not torch:
                self.report(name, line, f"includes {header}: {folder} declares no TORCH")
            elif ARROW_HEADER.match(header) and not str(name).startswith(MAY_KNOW_ARROW):
                self.report(name, line, f"includes {header}: only retort/parquet/arrow knows Apache Arrow")
            elif CLUSTER_HEADER.match(header) and not cluster:
                self.report(name, line, f"includes {header}: only retort/comm knows MPI, NCCL and the accelerators' runtimes")

    def is_foreign_reference(self, name, header):
        match = REFERENCE_HEADER.match(header)
        return match and name.parts[0] != "tests" and not str(name).startswith(match.group(1) + "/")

    def resolve(self, file, quote, header):
        """The header's path from the root: a quoted one may be relative to its file, and so may hide a layer."""
        beside = file.parent / header
        if quote == '"' and beside.is_file():
            return os.path.relpath(os.path.normpath(beside), self.root).replace(os.sep, "/")
        return os.path.normpath(header).replace(os.sep, "/")


def check(root):
    """All violations below `root`, as printable lines."""
    tree = Tree(root.resolve())
    if not tree.layers:
        return [f"{root}: no retort_module() found below retort/"]
    tree.check_dependencies()
    tree.check_sources()
    tree.check_rooms()
    tree.check_family_names()
    return tree.violations


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    violations = check(parser.parse_args(arguments).root)
    for violation in violations:
        print(violation)
    print(f"layers: {len(violations)} violations" if violations else "layers: includes point downwards only")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
