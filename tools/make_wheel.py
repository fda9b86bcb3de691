#!/usr/bin/env python3
"""Packs a built program into a wheel for pip, which brings torch of the same release along.

The wheel holds what `cmake --install` makes, but for what only builds need, and the libraries outside of it that are
neither torch's, pyarrow's nor part of every system.  Run paths are relative: nothing in it knows where it was built.
"""

import argparse
import base64
import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux.*)\.so\.\d+")
TORCH = re.compile(r"(libtorch\w*|libc10\w*)\.so|libgomp.*\.so.*")
ARROW = re.compile(r"lib(arrow|parquet)\.so\.\d+")  # of pyarrow, which is installed by who reads Parquet files
MPI = re.compile(r"lib(mpi|mpich)\.so\.\d+")  # of the site, whose launcher starts the ranks
METADATA = """Metadata-Version: 2.1
Name: retort
Version: {version}
Summary: Makes language models smaller: prunes, sparsifies, distils and measures them.
Requires-Python: >=3.10
Requires-Dist: torch=={torch}.*
{extras}"""
PARQUET = """Provides-Extra: parquet
Requires-Dist: pyarrow=={pyarrow}; extra == "parquet"
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: tools/make_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
ENTRY_POINTS = "[console_scripts]\nretort = retort:main\n"


def output_of(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def setting(file, pattern):
    match = re.search(pattern, file.read_text(), re.MULTILINE)
    if not match:
        sys.exit(f"make_wheel: {file} has no line like {pattern}; build the program first.")
    return match.group(1)


def install(build, prefix):
    """The program's files below `prefix`; a library is one file with the name that is asked for."""
    output_of("cmake", "--install", build, "--prefix", prefix, "--component", "Unspecified", "--strip")
    for link in [path for path in (prefix / "lib").iterdir() if path.is_symlink()]:
        library = link.resolve()
        link.unlink()
        library.rename(link)


def needed(file):
    return re.findall(r"NEEDED.*\[(.+)\]", output_of("readelf", "-d", file))


def carry_libraries(prefix, built):
    """Copies what the program needs from this system into lib/.  `built` is the same program before it moved."""
    places = dict(re.findall(r"(\S+) => (/\S+)", "".join(output_of("ldd", file) for file in built)))
    waiting = [prefix / "bin" / "retort", *(prefix / "lib").iterdir()]
    while waiting:
        for name in needed(waiting.pop()):
            target = prefix / "lib" / name
            if any(kind.fullmatch(name) for kind in (SYSTEM, TORCH, ARROW, MPI)) or target.exists():
                continue
            shutil.copy(places[name], target)
            waiting.append(target)


def set_run_paths(prefix):
    packages = ((TORCH, "$ORIGIN/../../torch/lib"), (ARROW, "$ORIGIN/../../pyarrow"))
    for file in (prefix / "lib").iterdir():
        names = needed(file)
        paths = ["$ORIGIN"] + [path for kind, path in packages if any(map(kind.fullmatch, names))]
        output_of("patchelf", "--force-rpath", "--set-rpath", ":".join(paths), file)
    output_of("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", prefix / "bin" / "retort")


def write_licences(prefix, folder):
    """Retort's own licence, and what Debian says of the libraries that come along."""
    folder.mkdir(parents=True)
    shutil.copy(REPOSITORY / "LICENSE", folder)
    for library in (prefix / "lib").iterdir():
        for copyright in Path("/usr/share/doc").glob(f"{library.name.split('.so')[0]}[0-9]*/copyright"):
            shutil.copy(copyright, folder / f"{copyright.parent.name}.txt")


def extras_of(prefix):
    """What pip may bring besides: Apache Arrow, of the release that the module for Parquet files was built with."""
    if not (prefix / "lib" / "libretort_parquet.so").exists():
        return ""
    return PARQUET.format(pyarrow=setting(REPOSITORY / "tools" / "pins" / "build.txt", r"^pyarrow==(.+)$"))


def write_info(info, version, torch, extras, tag):
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(METADATA.format(version=version, torch=torch, extras=extras))
    (info / "WHEEL").write_text(WHEEL.format(tag=tag))
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


def pack(root, info, wheel):
    """Zips `root`; the same files give the same bytes."""
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            archive.writestr(entry, content)

        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            name, content = path.relative_to(root).as_posix(), path.read_bytes()
            add(name, content, 0o755 if path.stat().st_mode & 0o100 else 0o644)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")
        name = f"{info.name}/RECORD"
        add(name, "".join(record) + f"{name},,\n", 0o644)


def make(build, out):
    version = setting(build / "CMakeCache.txt", r"^CMAKE_PROJECT_VERSION:STATIC=(.+)$")
    torch = setting(build / "retortConfig.cmake", r"^set\(_retort_built_with (\d+\.\d+)")
    tag = f"py3-none-manylinux_{platform.libc_ver()[1].replace('.', '_')}_{platform.machine()}"
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"retort-{version}-{tag}.whl"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        package, info = root / "retort", root / f"retort-{version}.dist-info"
        install(build, package)
        carry_libraries(package, [build / "cli" / "retort", *(build / "retort").glob("libretort.so")])
        set_run_paths(package)
        for file in (REPOSITORY / "tools" / "wheel").glob("*.py"):
            shutil.copy(file, package)
        write_licences(package, info / "licenses")
        write_info(info, version, torch, extras_of(package), tag)
        pack(root, info, wheel)
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True, help="folder in which the program was built")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder for the wheel")
    arguments = parser.parse_args()
    if not shutil.which("patchelf"):
        sys.exit("make_wheel: patchelf is missing; install the Debian package of this name.")
    print(make(arguments.build.resolve(), arguments.out))


if __name__ == "__main__":
    main()
