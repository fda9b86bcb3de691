"""The machine that a benchmark runs on, as its table names it."""

import os
from pathlib import Path


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def instructions():
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return ", ".join(f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in flags)


def described():
    return f"{processor()} ({instructions()}), {os.cpu_count()} cores"
