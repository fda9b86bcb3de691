"""Which tokens transformers leaves in a row of logits, and with what probability.

cases.jsonl       {"logits": [V], "ids": [...], "settings": {key: value}, "left": {id: probability}} a line: float64
                  rows, some with equal logits, through the processors that transformers itself builds of a
                  generation configuration, in its order
"""

import json

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

ROWS = 200
SETTINGS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


def drawn_settings(number, generator):
    """Each setting alone in turn, then several together."""
    def between(low, high):
        return low + (high - low) * torch.rand((), generator=generator).item()

    values = dict(temperature=between(0.2, 2.5), top_k=int(between(1, 40)), top_p=between(0.05, 0.999),
                  min_p=between(0.001, 0.6), repetition_penalty=between(0.6, 2.0))
    if number % 2 == 0:
        chosen = [SETTINGS[number // 2 % len(SETTINGS)]]
    else:
        chosen = [key for key in SETTINGS if between(0, 1) < 0.6] or list(SETTINGS)
    return {key: values[key] for key in chosen}


def drawn_logits(number, settings, generator):
    """Halves of whole numbers have equals; which of them top_p leaves is not specified there."""
    logits = 3 * torch.randn(int(torch.randint(2, 300, (), generator=generator)), generator=generator, dtype=torch.float64)
    has_equals = number % 3 == 0 and "top_p" not in settings
    return (2 * logits).round() / 2 if has_equals else logits


def probabilities(model, logits, ids, settings):
    # What a configuration leaves out, transformers takes from its own defaults, of which top_k is 50.
    config = GenerationConfig(do_sample=True, **({"top_k": 0} | settings))
    processors = model._get_logits_processor(config, input_ids_seq_length=len(ids))
    left = processors(torch.tensor([ids]), logits[None].clone())[0]
    return left.softmax(-1)


def write(out_dir, shared):
    generator = torch.Generator().manual_seed(0)
    tiny = LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                        num_attention_heads=1, num_key_value_heads=1))
    lines = []
    for number in range(ROWS):
        settings = drawn_settings(number, generator)
        logits = drawn_logits(number, settings, generator)
        ids = torch.randint(0, len(logits), (5,), generator=generator).tolist()
        found = probabilities(tiny, logits, ids, settings)
        left = {int(i): found[i].item() for i in found.nonzero()[:, 0]}
        lines.append(json.dumps(dict(logits=logits.tolist(), ids=ids, settings=settings, left=left)))
    (out_dir / "sampling" / "cases.jsonl").write_text("\n".join(lines) + "\n")
