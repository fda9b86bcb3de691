#!/usr/bin/env python3
"""How far logits and gradients of every family are from those of transformers, by family and by option.

  benchmarks/families/parity.py BUILD

Reads what the tests of BUILD print, and the configurations that they compare: six of each family, drawn from a seed over
all of its options (tests/oracles/_families.py).  Standard library only.
"""

import argparse
import collections
import json
import os
import re
import subprocess
from pathlib import Path

TESTS = [("model", "Logits.EqualThoseOfTransformers*"), ("loss", "*Families.*")]
MEASURES = {"logits": r"largest difference ([\d.e+-]+)", "gradients": r"gradients, largest relative difference ([\d.e+-]+)",
            "bf16": r"bfloat16, error beside theirs ([\d.]+)", "bf16 gradients": r"bfloat16 gradients, error beside theirs ([\d.]+)"}


def printed_by(build, test, cases):
    environment = dict(os.environ, RETORT_ORACLES=str(build.parent / "oracles"), OMP_NUM_THREADS="1")
    name, of_cases = test
    done = subprocess.run([build / "tests" / name / f"{name}_test", f"--gtest_filter={of_cases}"], env=environment,
                          capture_output=True, text=True)
    for line in done.stdout.splitlines():
        words = line.split()
        for measure, pattern in MEASURES.items():
            found = re.search(r"\s" + pattern + "$", line)
            if found and (measure != "logits" or "largest logit" in line):
                cases[words[0]][measure] = float(found[1])
    if done.returncode:
        raise SystemExit(f"{name}_test failed:\n{done.stdout[-2000:]}")


def tables_of(config):
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    return list(rope.values()) if rope and all(isinstance(v, dict) for v in rope.values()) else [rope]


def ropes_of(config):
    return {table.get("rope_type", "default") for table in tables_of(config)}


def options_of(config):
    options = {f"rope {kind}" for kind in ropes_of(config)}
    kinds = set(config.get("layer_types") or [])
    windows = config.get("sliding_window") and config.get("use_sliding_window", True)
    present = {
        "window": windows and "sliding_attention" in (kinds or {"sliding_attention"}),
        "windows in some layers": windows and len(kinds) > 1,
        "no positions in some layers": 0 in (config.get("no_rope_layers") or []),
        "part of the channels turned": (config.get("partial_rotary_factor") or 1) < 1,
        "bias of attention": config.get("attention_bias") or config["model_type"] == "qwen2",
        "bias of the MLP": config.get("mlp_bias"),
        "soft cap of scores": config.get("attn_logit_softcapping") and config["model_type"] == "gemma2",
        "soft cap of logits": config.get("final_logit_softcapping"),
        "multipliers of embedding, residual and logits": config["model_type"] == "granite",
        "scale of scores": config["model_type"] == "granite" or "query_pre_attn_scalar" in config,
        "norms of queries and keys, head by head": config["model_type"] in ("qwen3", "gemma3_text"),
        "norms of queries and keys, across heads": config["model_type"] in ("olmo2", "olmo3"),
        "norms after": config["model_type"] in ("olmo2", "olmo3"),
        "norms before and after, by 1 + w": "gemma" in config["model_type"],
        "queries that grow with the position": any("llama_4_scaling_beta" in table for table in tables_of(config)),
        "a rotary embedding of each type of layer": config["model_type"] in ("olmo3", "gemma3_text"),
        "GELU in place of SiLU, or the reverse":
            config.get("hidden_activation", config.get("hidden_act")) != ("gelu_pytorch_tanh" if "gemma" in config["model_type"] else "silu"),
        "tied head": config.get("tie_word_embeddings"),
        "stored in bfloat16": config.get("dtype") == "bfloat16",
    }
    return options | {name for name, is_there in present.items() if is_there}


def print_table(first, groups):
    print(f"| {first} | models | logits, largest difference | gradients, largest relative | bf16, error of logits beside theirs | of gradients |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, cases in sorted(groups.items()):
        worst = {m: max((case[m] for case in cases if m in case), default=None) for m in MEASURES}
        cells = [f"{worst['logits']:.1e}", f"{worst['gradients']:.1e}", f"{worst['bf16']:.2f}", f"{worst['bf16 gradients']:.2f}"]
        print(f"| {name} | {len(cases)} | " + " | ".join(cells) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="a folder with built tests, beside the folder of oracles")
    build = parser.parse_args().build.resolve()
    measured = collections.defaultdict(dict)
    for test in TESTS:
        printed_by(build, test, measured)
    by_family, by_option = collections.defaultdict(list), collections.defaultdict(list)
    for name, values in measured.items():
        if "gradients" not in values:
            continue
        config = json.loads((build.parent / "oracles" / "model" / "cases" / name / "model" / "config.json").read_text())
        by_family[name.rsplit("_", 1)[0]].append(values)
        for option in options_of(config):
            by_option[option].append(values)
    print_table("family", by_family)
    print_table("option", by_option)


if __name__ == "__main__":
    main()
