#!/usr/bin/env python3
"""Writes the outputs of all oracles (tests/oracles/*.py) below one directory, before the tests run.

A module's output is kept while its own text, the shared helpers, the versions of the outside packages and the extra
test data stay what they were; a module that was interrupted or failed is run again.
"""

import argparse
import concurrent.futures
import fcntl
import hashlib
import importlib
import importlib.metadata
import os
import shutil
import sys
import time
import traceback
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "pyarrow")


def files_digest(files):
    """Hash of the names and bytes of `files`."""
    digest = hashlib.sha256()
    for file in sorted(files):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def listing_digest(folder):
    """Hash of the paths, sizes and modification times below `folder`: its bytes may be gigabytes."""
    digest = hashlib.sha256()
    for file in sorted(p for p in folder.rglob("*") if p.is_file()) if folder else []:
        status = file.stat()
        digest.update(f"{file.relative_to(folder)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def versions():
    """Installed version of each outside package, for example `torch 2.13.0`."""
    lines = []
    for name in PACKAGES:
        try:
            lines.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            lines.append(f"{name} none")
    return "\n".join(lines)


def find_modules(folder):
    return sorted(p for p in folder.glob("*.py") if not p.name.startswith("_"))


def common_digest(folder, shared):
    """What the outputs of every module depend on."""
    helpers = [Path(__file__).resolve(), *folder.glob("_*.py"), *(REPOSITORY / "tools" / "pins").glob("*.txt")]
    models = REPOSITORY / "models"
    parts = (files_digest(helpers), versions(), sys.version, str(shared), listing_digest(shared),
             files_digest(models.rglob("*.json")) if models.is_dir() else "")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def run_module(path, out_dir, shared):
    """Runs one module into an empty folder of its own."""
    shutil.rmtree(out_dir / path.stem, ignore_errors=True)
    (out_dir / path.stem).mkdir(parents=True)
    importlib.import_module(f"oracles.{path.stem}").write(out_dir, shared)


def attempt(path, out_dir, shared):
    """Seconds that a module took, or nothing where it failed: one broken module must not hide the others' result."""
    start = time.monotonic()
    try:
        run_module(path, out_dir, shared)
    except Exception:
        traceback.print_exc()
        return None
    return time.monotonic() - start


def make(folder, out_dir, shared, force=False, only=(), jobs=1):
    """Brings every module's output up to date, `jobs` at a time; returns the names of the modules that failed."""
    common = common_digest(folder, shared)
    wanted = {}
    for path in find_modules(folder):
        if only and path.stem not in only:
            continue
        stamp, text = out_dir / f".{path.stem}.stamp", common + " " + files_digest([path]) + "\n"
        if not force and stamp.is_file() and stamp.read_text() == text:
            print(f"oracles: {path.stem}: up to date", flush=True)
            continue
        stamp.unlink(missing_ok=True)
        wanted[path] = (stamp, text)
    failed = []
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(attempt, path, out_dir, shared): path for path in wanted}
        for done in concurrent.futures.as_completed(running):
            path = running[done]
            seconds = None if done.exception() else done.result()  # an exception: its process was killed
            if seconds is None:
                failed.append(path.stem)
                continue
            stamp, text = wanted[path]
            stamp.write_text(text)
            print(f"oracles: {path.stem}: {seconds:.1f} s", flush=True)
    return sorted(failed)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory of the outputs")
    parser.add_argument("--shared", type=Path, help="directory of extra test data")
    parser.add_argument("--force", action="store_true", help="run modules that are up to date, too")
    parser.add_argument("--only", action="append", default=[], metavar="MODULE", help="run this module (may be repeated)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="modules at a time")
    parser.add_argument("--modules", type=Path, default=REPOSITORY / "tests" / "oracles", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)

    # The outside packages never reach for the network here, whatever a module asks of them, and draw no bars.
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(options.modules.resolve().parent))
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / ".lock", "w") as lock:  # two builds may share the outputs
        fcntl.flock(lock, fcntl.LOCK_EX)
        failed = make(options.modules, options.out.resolve(), options.shared and options.shared.resolve(),
                      options.force, options.only, options.jobs)
    if failed:
        print(f"oracles: {', '.join(failed)} failed with {sys.executable}; what they import is in tools/pins/test.txt.",
              file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
