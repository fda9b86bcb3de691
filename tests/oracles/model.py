"""Logits and greedy continuations of transformers, for models with random weights and for models at hand.

cases/<name>/model/              saved by save_pretrained (for models at hand: case.json names the directory)
cases/<name>/logits.safetensors  "logits" [N, V] of the packed documents, each computed on its own, float32
wrapped/<name>/                 a model that also sees, with the logits of a text: model/, logits.safetensors, case.json
gguf/<name>/                     model.gguf, with the logits of a text as transformers computes them from the file
cases/<name>/case.json           ids, starts (first token of each document, and N), prompt, greedy (prompt and answer)
"""

import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from . import _families, _gguf

REPOSITORY = Path(__file__).resolve().parent.parent.parent
# initializer_range far above what training starts from: logits of a few units, as a trained model's are.
SMALL = dict(vocab_size=131, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=128, initializer_range=0.12, bos_token_id=1, eos_token_id=2)

RANDOM = {
    "tied": (LlamaForCausalLM, LlamaConfig(**SMALL, tie_word_embeddings=True), torch.float32),
    "untied_bf16": (LlamaForCausalLM, LlamaConfig(**SMALL, rms_norm_eps=1e-5), torch.bfloat16),
    "all_heads": (LlamaForCausalLM, LlamaConfig(**{**SMALL, "num_key_value_heads": 6}), torch.float32),
    "one_kv_head": (LlamaForCausalLM, LlamaConfig(**{**SMALL, "num_key_value_heads": 1}), torch.float32),
    "wide_heads": (LlamaForCausalLM, LlamaConfig(**SMALL, head_dim=20, rope_theta=500000.0), torch.float32),
    "mistral": (MistralForCausalLM, MistralConfig(**SMALL, head_dim=16, sliding_window=None, rope_theta=1e6,
                                                  rms_norm_eps=1e-5), torch.float32),
    "mistral_tied_f16": (MistralForCausalLM, MistralConfig(**SMALL, sliding_window=None, tie_word_embeddings=True),
                         torch.float16),
}


def packed_logits(model, ids, starts):
    """Each document alone, so that no mask of transformers is involved."""
    with torch.no_grad():
        return torch.cat([model(torch.tensor([ids[a:b]])).logits[0] for a, b in zip(starts, starts[1:])])


def write_case(folder, model, documents, prompt, new_tokens, directory=None):
    folder.mkdir(parents=True, exist_ok=True)
    ids = [i for document in documents for i in document]
    starts = [0]
    for document in documents:
        starts.append(starts[-1] + len(document))
    with torch.no_grad():
        greedy = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                                do_sample=False, max_new_tokens=new_tokens, pad_token_id=0)[0].tolist()
    save_file({"logits": packed_logits(model, ids, starts).contiguous()}, folder / "logits.safetensors")
    (folder / "case.json").write_text(json.dumps(dict(
        directory=str(directory or folder / "model"), ids=ids, starts=starts, prompt=prompt, greedy=greedy,
        new_tokens=new_tokens)))


def random_documents(vocab, context):
    return [torch.randint(3, vocab, (length,)).tolist() for length in (1, 37, 5, min(context, 90))]


def write_random(folder):
    torch.manual_seed(5)
    for name, (kind, config, dtype) in RANDOM.items():
        kind(config).to(dtype).save_pretrained(folder / name / "model")
        model = AutoModelForCausalLM.from_pretrained(folder / name / "model", dtype=torch.float32).eval()
        documents = random_documents(config.vocab_size, config.max_position_embeddings)
        write_case(folder / name, model, documents, documents[1][:7], 40)


def write_families(folder):
    torch.manual_seed(6)
    for name, config, dtype in _families.drawn():
        model = _families.make(config, dtype, folder / name / "model")
        documents = _families.documents_of(config)
        write_case(folder / name, model, documents, documents[1][:7], 64)
        _families.write_more(folder / name, documents)


def write_wrapped(folder):
    torch.manual_seed(7)
    for name, model, old_names in _families.wrapped():
        (folder / name).mkdir(parents=True)
        _families.save_wrapped(model, folder / name / "model", old_names)
        ids = _families.documents_of(model.config.text_config)[1]
        save_file({"logits": packed_logits(model, ids, [0, len(ids)])}, folder / name / "logits.safetensors")
        (folder / name / "case.json").write_text(json.dumps(dict(ids=ids)))


def write_gguf(folder):
    torch.manual_seed(8)
    for name, (architecture, kind, values) in _gguf.MODELS.items():
        (folder / name).mkdir(parents=True)
        config = getattr(transformers, kind + ("TextConfig" if kind == "Gemma3" else "Config"))(**values)
        model = getattr(transformers, kind + "ForCausalLM")(config)
        for parameter in model.parameters():
            if parameter.dim() == 1:
                torch.nn.init.normal_(parameter, parameter.mean().item(), 0.2)
        _gguf.write_model(folder / name / "model.gguf", model, architecture)
        read = _gguf.read_model(folder / name / "model.gguf", type(model), type(config))
        ids = _families.documents_of(config)[1]
        save_file({"logits": packed_logits(read, ids, [0, len(ids)])}, folder / name / "logits.safetensors")
        (folder / name / "case.json").write_text(json.dumps(dict(ids=ids)))


def write_at_hand(folder, directory):
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    context = model.config.max_position_embeddings
    documents = [d["ids"] for d in json.loads((directory / "reference.json").read_text())["docs"][:3]]
    documents = [documents[0][:context], documents[1][:100], documents[2][:29]]
    write_case(folder / directory.name, model, documents, documents[0][:20], 60, directory)


def write(out_dir: Path, shared: Path | None) -> None:
    folder = out_dir / "model" / "cases"
    write_random(folder)
    write_families(folder)
    write_wrapped(out_dir / "model" / "wrapped")
    write_gguf(out_dir / "model" / "gguf")
    write_at_hand(folder, REPOSITORY / "models" / "europa-5m")
    for directory in sorted((shared / "models").iterdir()) if shared else []:
        if (directory / "reference.json").is_file() and not (folder / directory.name).exists():
            write_at_hand(folder, directory)
