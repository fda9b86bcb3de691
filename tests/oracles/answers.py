"""Conversations of data sets as ids, with the tokens of the answers: what transformers says where a template marks them,
and what a pattern finds in the rendered text elsewhere.

answers/tokenizers/<name>/tokenizer.json; answers/cases.jsonl: {"name", "tokenizer", "template", "variables", "record", "text",
"ids", "mask"}: the record as a file has it, and the ids and answers of its conversation; "tokenizer" is a folder.
"""

import json
import re
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from .chat import CHATML, TEMPLATES as CHAT_TEMPLATES

SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|begin_of_text|>", "<|end|>",
           "<|user|>", "<|assistant|>", "<|system|>"]
SMOLLM2 = ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
           "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
           "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
          "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + "
          "content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>"
          "\n\n' }}{% endif %}")
LLAMA2 = ("{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}"
          "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
          "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}"
          "{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\n' + system_message + "
          "'\n<</SYS>>\n\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}"
          "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == "
          "'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}")
PLAIN = ("{% for m in messages %}{{ {'user': 'USER', 'assistant': 'ASSISTANT', 'system': 'SYSTEM'}[m.role] }}: {{ m.content }}\n"
         "{% endfor %}{% if add_generation_prompt %}ASSISTANT: {% endif %}")
# As hybrid reasoning models have it: of earlier turns the thoughts are taken out, and the last turn has some, empty or not.
THINKING = r"""{%- set ns = namespace(last=-1) %}
{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}
{%- if m.role == 'assistant' %}
{%- set content = m.content %}{%- set thoughts = '' %}
{%- if '</think>' in content %}{%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
{%- set content = content.split('</think>')[-1].lstrip('\n') %}{%- endif %}
{%- if loop.index0 > ns.last %}{{- '<|im_start|>assistant\n<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content + '<|im_end|>\n' }}
{%- else %}{{- '<|im_start|>assistant\n' + content + '<|im_end|>\n' }}{%- endif %}
{%- else %}{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- if open_thoughts is defined %}{{- '<think>\n' }}{%- endif %}{%- endif %}"""
# The same for a model that always thinks: what asks for an answer is no beginning of earlier turns.
ALWAYS_THINKING = THINKING.replace("open_thoughts is defined", "true")
# What begins the next turn has a beginning in common with what ends a conversation.
PHI3 = ("{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
        "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}"
        "{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}")
MARKED = ("{% for message in messages %}{% if message.role == 'assistant' %}<|im_start|>assistant\n{% generation %}{{ message.content }}"
          "<|im_end|>{% endgeneration %}\n{% else %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endif %}"
          "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

# Template, its special tokens, and a pattern whose groups are the answers; none where transformers says them.
CHATML_ANSWER = r"<\|im_start\|>assistant\n(.*?<\|im_end\|>)"
TEMPLATES = {
    "chatml": (CHATML, CHATML_ANSWER),
    "smollm2": (SMOLLM2, CHATML_ANSWER),
    "llama3": (LLAMA3, r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n(.*?<\|eot_id\|>)"),
    "llama2": (LLAMA2, r"\[/INST\]( .*? </s>)"),
    "phi3": (PHI3, r"<\|assistant\|>\n(.*?<\|end\|>(?:\n</s>)?)"),
    "plain": (PLAIN, r"ASSISTANT: (.*?\n)(?=USER: |\Z)"),
    "thinking": (THINKING, CHATML_ANSWER),
    "always_thinking": (ALWAYS_THINKING, None),
    "marked": (MARKED, None),
    "roles": (CHAT_TEMPLATES["roles"], None),
}
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}

NASTY = "Grüße \u00a0 日本 😀\u2028 {{ x }} \t'\"\\ e\u0301"
TURNS = [("user", "What is the capital of France?"), ("assistant", "Paris."), ("user", " And of Spain?\n"), ("assistant", "\n\nMadrid, of course.  ")]


def openai(turns):
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


def sharegpt(turns):
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    return {"id": 7, "conversations": [{"from": names[role], "value": text} for role, text in turns]}


RECORDS = [
    ("messages", openai(TURNS), TURNS),
    ("system", openai([("system", "Be brief.")] + TURNS), [("system", "Be brief.")] + TURNS),
    ("sharegpt", sharegpt(TURNS[:2]), TURNS[:2]),
    ("conversations with roles", {"conversations": openai(TURNS)["messages"]}, TURNS),
    ("alpaca", {"instruction": "Add.", "input": "1 2", "output": "3"}, [("user", "Add.\n\n1 2"), ("assistant", "3")]),
    ("alpaca without input", {"instruction": "Say hi.", "input": "", "output": "hi"}, [("user", "Say hi."), ("assistant", "hi")]),
    ("completion", {"prompt": "Count:", "completion": "1 2 3"}, [("user", "Count:"), ("assistant", "1 2 3")]),
    ("completion of lists", {"prompt": openai(TURNS[:3])["messages"], "completion": openai(TURNS[3:])["messages"]}, TURNS),
    ("ends with a question", openai(TURNS[:3]), TURNS[:3]),
    ("nasty", openai([("user", NASTY), ("assistant", NASTY), ("user", "x"), ("assistant", "😀")]),
     [("user", NASTY), ("assistant", NASTY), ("user", "x"), ("assistant", "😀")]),
    ("equal turns", openai([("user", "a"), ("assistant", "a"), ("user", "a"), ("assistant", "a")]),
     [("user", "a"), ("assistant", "a"), ("user", "a"), ("assistant", "a")]),
    ("thoughts", openai([("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c"), ("assistant", "<think>\nso\n</think>\n\nd")]),
     [("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c"), ("assistant", "<think>\nso\n</think>\n\nd")]),
    ("long", openai(TURNS * 12), TURNS * 12),
]


def trained(model, pre_tokenizer, decoder, trainer):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    texts = [json.dumps(record, ensure_ascii=False) for _, record, _ in RECORDS] + [template for template, _ in TEMPLATES.values()]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def byte_level():
    return trained(models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel(),
                   trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, show_progress=False,
                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def with_nfc():
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def save(tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def tokenizers(out, shared):
    """Name -> folder."""
    folders = {"byte_level": save(byte_level(), out / "byte_level"), "nfc": save(with_nfc(), out / "nfc")}
    for name in ("smollm2", "mistral7b"):
        folder = shared / "tokenizers" / name if shared else None
        if not folder or not folder.exists():
            continue
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.post_processor = None
        tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL if tokenizer.token_to_id(token) is None])
        folders[name] = save(tokenizer, out / name)
    return folders


def mask_by_pattern(tokenizer, text, pattern):
    encoding = tokenizer._tokenizer.encode(text, add_special_tokens=False)
    mask = [0] * len(encoding.ids)
    for match in re.finditer(pattern, text, re.DOTALL):
        for i, (begin, end) in enumerate(encoding.offsets):
            if begin < match.end(1) and end > match.start(1):
                mask[i] = 1
    return encoding.ids, mask


def case(name, folder, tokenizer, template, pattern, record, turns):
    messages = openai(turns)["messages"]
    try:
        if pattern is None and "generation %}" in template:
            got = tokenizer.apply_chat_template(messages, chat_template=template, return_dict=True, return_assistant_tokens_mask=True)
            return got["input_ids"], got["assistant_masks"]
        ids = tokenizer.apply_chat_template(messages, chat_template=template, return_dict=False)
        text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
    except Exception:  # the template refuses the roles
        return None
    if pattern is None:  # behind the header and the opened thought, where there is one
        pattern = r"<\|im_start\|>assistant\n(?:<think>\n)?(.*?<\|im_end\|>)"
    found, mask = mask_by_pattern(tokenizer, text, pattern)
    assert found == ids, (name, template)
    return ids, mask


def write(out_dir: Path, shared: Path | None) -> None:
    out = out_dir / "answers"
    out.mkdir(parents=True, exist_ok=True)
    with (out / "cases.jsonl").open("w", encoding="utf-8") as file:
        for tokenizer_name, folder in tokenizers(out / "tokenizers", shared).items():
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **VARIABLES)
            for template_name, (template, pattern) in TEMPLATES.items():
                for record_name, record, turns in RECORDS:
                    name = f"{tokenizer_name}, {template_name}, {record_name}"
                    got = case(name, folder, tokenizer, template, pattern, record, turns)
                    if got is not None:
                        file.write(json.dumps({"name": name, "tokenizer": tokenizer_name, "template": template, "variables": VARIABLES,
                                               "record": record, "ids": got[0], "mask": got[1]}) + "\n")
