#!/usr/bin/env python3
"""Compares the answers that Retort finds with those that a marked version of the same template says.

    python3 tools/compare_answers.py --program build/release/tests/chat/render_conversations FOLDER

FOLDER has pairs NAME.jinja and NAME_training.jinja, as TRL has them in trl/chat_templates: the second has {% generation %} and
renders the same text, else a conversation is passed over.  White space that only one of the two counts at an answer's end
is no difference, nor what a marked template counts of the generation prompt.  Ends with 1 where an answer is another one.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers.utils import chat_template_utils

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def say(role, content, **more):
    return {"role": role, "content": content, **more}


CONVERSATIONS = {
    "one": [say("user", "Hello"), say("assistant", "Hi there.")],
    "two": [say("user", "Hello"), say("assistant", "Hi there."), say("user", "And?"), say("assistant", "Bye.\n")],
    "system": [say("system", "Be brief."), say("user", "a"), say("assistant", "a"), say("user", "a"), say("assistant", "a")],
    "thoughts": [say("user", "a"), say("assistant", "<think>\nhm\n</think>\n\nb"), say("user", "c"),
                 say("assistant", "<think>\nso\n</think>\n\nd")],
    "last asks": [say("user", "a"), say("assistant", "b"), say("user", "c")],
    "many": [say("user" if i % 2 == 0 else "assistant", f"turn {i} ") for i in range(12)],
}


def tokenizer_of(template, folder):
    """One of bytes that knows what looks like a special token."""
    special = sorted(set(re.findall(r"<[|｜]?[^<>\s'\"{}]{1,40}[|｜]?>|\[/?[A-Z_]+\]", template)) | set(TOKENS.values()))
    vocab = {byte: i for i, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special if "think" not in token])
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return str(path)


def rendered(template, messages):
    texts, answers = chat_template_utils.render_jinja_template(
        conversations=[messages], chat_template=template, return_assistant_tokens_mask=True, **TOKENS)
    return texts[0], [[len(texts[0][:a].encode()), len(texts[0][:b].encode())] for a, b in answers[0]]


def trimmed(text, spans):
    """Without white space at ends; what only white space is between is one."""
    data, joined = text.encode(), []
    for begin, end in spans:
        if joined and not data[joined[-1][1]:begin].strip():
            joined[-1][1] = end
        else:
            joined.append([begin, end])
    return [[begin, begin + len(data[begin:end].rstrip())] for begin, end in joined if data[begin:end].strip()]


def prompts(template, messages):
    """Where answers begin that follow the generation prompt: some marked templates count parts of that."""
    places = set()
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            text, _ = chat_template_utils.render_jinja_template(
                conversations=[messages[:i]], chat_template=template, add_generation_prompt=True, **TOKENS)
            places.add(len(text[0].encode()))
    return places


def same(text, got, want, begins):
    got, want = trimmed(text, got), trimmed(text, want)
    return len(got) == len(want) and all(
        g[1] == w[1] and (g[0] == w[0] or g[0] in begins) for g, w in zip(got, want))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        for number, marked in enumerate(sorted(args.folder.glob("*_training.jinja"))):
            plain = marked.with_name(marked.name.replace("_training", ""))
            if not plain.exists():
                continue
            folder = Path(temporary) / str(number)
            folder.mkdir()
            template, tokenizer = plain.read_text(), tokenizer_of(plain.read_text(), folder)
            for kind, messages in CONVERSATIONS.items():
                try:
                    text, _ = rendered(template, messages)
                    marked_text, want = rendered(marked.read_text(), messages)
                except Exception as error:
                    counts["refused by transformers"] += 1
                    continue
                if text != marked_text:
                    counts["other text"] += 1
                    continue
                line = {"template": template, "variables": TOKENS, "conversation": messages, "tokenizer": tokenizer, "find_answers": True}
                got = json.loads(subprocess.run([args.program], input=json.dumps(line) + "\n", capture_output=True, text=True).stdout)
                if "refused" in got:
                    result = "refused by Retort"
                else:
                    result = "equal" if same(text, got["answers"], want, prompts(template, messages)) else "DIFFERENT"
                counts[result] += 1
                if result == "DIFFERENT" or (args.verbose and result != "equal"):
                    data = text.encode()
                    cut = lambda spans: [data[a:b].decode(errors="replace") for a, b in spans]
                    print(f"{result} {plain.name} [{kind}]: {got.get('refused', '')}\n  want {cut(want)}\n  got  {cut(got.get('answers', []))}")
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    return 1 if counts["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
