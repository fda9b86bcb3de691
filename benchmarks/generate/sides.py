"""What the benchmarks of this folder share: prompts, Retort's side, and rounds in turn."""

import json
import random
import statistics
import subprocess
from pathlib import Path


def add_arguments(parser):
    parser.add_argument("--retort", default="build/release/cli/retort")
    parser.add_argument("--tokenizer", type=Path, required=True, help="a directory with the model's tokenizer.json")
    parser.add_argument("--text", type=Path, required=True, help="what prompts are cut from")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--texts", type=int, nargs="+", default=[4, 32, 64], help="for each batch size")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)


def make_prompts(arguments, count):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(arguments.tokenizer / "tokenizer.json"))
    ids = tokenizer.encode(arguments.text.read_text(encoding="utf-8", errors="replace")[:2_000_000], add_special_tokens=False).ids
    rng = random.Random(1)
    prompts = []
    for _ in range(count):
        length = rng.randint(32, 512)
        begin = rng.randrange(len(ids) - length)
        prompts.append(tokenizer.decode(ids[begin:begin + length]))
    return prompts


def by_retort(arguments, model, prompts, batch, work):
    """Tokens that were made, seconds, and the answers."""
    asked, out = work / "prompts.jsonl", work / "out.jsonl"
    asked.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    out.unlink(missing_ok=True)
    found = subprocess.run([arguments.retort, "generate", str(model), "--prompts", str(asked), "--out", str(out),
                            "--max-new-tokens", str(arguments.new_tokens), "--batch", str(batch), "--dtype", arguments.dtype,
                            "--temperature", "0", "--json", "-q"], check=True, capture_output=True, text=True)
    result = json.loads(found.stdout)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return result["new_tokens"], result["seconds"], [line["answer"] for line in lines if "answer" in line]


def in_turn(arguments, batch, count, sides):
    """Runs both sides in rounds, whose order changes; what is printed of it.  A side returns tokens/s."""
    rates = {side: [] for side in sides}
    for number in range(arguments.rounds):
        for side in sorted(sides, reverse=number % 2 == 1):
            rates[side].append(round(sides[side](), 1))
    ours, theirs = (statistics.median(rates[side]) for side in sides)
    return {"dtype": arguments.dtype, "batch": batch, "texts": count, "new_tokens": arguments.new_tokens,
            "tokens_per_second": rates, "ratio": round(ours / theirs, 2)}
