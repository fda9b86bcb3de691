"""Configurations in the spellings of transformers 4 and 5 with what transformers makes of them, and small models.

cases/<name>/config.json   read with expected.json: the effective fields and the parameter count of the built model
models/<name>/             saved by save_pretrained with random weights; expected.json lists names and shapes
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

SMALL = dict(vocab_size=96, hidden_size=32, intermediate_size=88, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64)

VERSION_5 = {
    "llama_grouped": LlamaConfig(**SMALL),
    "llama_tied": LlamaConfig(**SMALL, tie_word_embeddings=True, rope_theta=1e6, rms_norm_eps=1e-5),
    "llama_wide_heads": LlamaConfig(**SMALL, head_dim=16, eos_token_id=[2, 5, 7], pad_token_id=0),
    "llama_all_heads": LlamaConfig(**{**SMALL, "num_key_value_heads": None}, bos_token_id=None, eos_token_id=None),
    "llama_defaults": LlamaConfig(),
    "llama_3_8b": LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                              num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=8192,
                              rope_theta=500000.0, rms_norm_eps=1e-5, bos_token_id=128000, eos_token_id=128001),
    "mistral_small_24b": MistralConfig(vocab_size=131072, hidden_size=5120, intermediate_size=32768,
                                       num_hidden_layers=40, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                                       max_position_embeddings=32768, rope_theta=1e8, rms_norm_eps=1e-5,
                                       sliding_window=None),
    "mistral_window_as_long_as_context": MistralConfig(**SMALL, sliding_window=64),
    "mistral_default_window": MistralConfig(**SMALL),
    "mistral_odd_hidden": MistralConfig(**{**SMALL, "hidden_size": 40, "num_attention_heads": 6}, head_dim=10,
                                        sliding_window=None, tie_word_embeddings=True),
}

BASE_4 = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu", initializer_range=0.02,
              rms_norm_eps=1e-5, torch_dtype="bfloat16", transformers_version="4.41.0", use_cache=True, **SMALL)

VERSION_4 = {
    "v4_llama": dict(**BASE_4, attention_bias=False, attention_dropout=0.0, mlp_bias=False, pretraining_tp=1,
                     rope_scaling=None, rope_theta=500000.0, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2),
    "v4_first_llama": {k: v for k, v in dict(**BASE_4, pad_token_id=None).items() if k != "num_key_value_heads"},
    "v4_null_head_dim": dict(**BASE_4, head_dim=None, tie_word_embeddings=True, rope_theta=10000),
    "v4_default_scaling": dict(**BASE_4, rope_theta=20000.0, rope_scaling={"rope_type": "default"}),
    "v4_old_scaling_name": dict(**BASE_4, rope_theta=20000.0, rope_scaling={"type": "default"}),
    "v4_mistral": dict(BASE_4, architectures=["MistralForCausalLM"], model_type="mistral", rope_theta=1e6,
                       sliding_window=None, attention_dropout=0.0, tie_word_embeddings=False, bos_token_id=1,
                       eos_token_id=2),
    "v4_mistral_without_kv_heads": {k: v for k, v in dict(BASE_4, architectures=["MistralForCausalLM"],
                                    model_type="mistral", num_attention_heads=8, sliding_window=4096).items()
                                    if k != "num_key_value_heads"},
}

MODELS = {
    "llama_untied": (LlamaForCausalLM, LlamaConfig(**SMALL), torch.float32, "1GB"),
    "llama_tied_bf16": (LlamaForCausalLM, LlamaConfig(**SMALL, tie_word_embeddings=True), torch.bfloat16, "1GB"),
    "mistral_sharded_f16": (MistralForCausalLM, MistralConfig(**SMALL, head_dim=24, sliding_window=None),
                            torch.float16, "20KB"),
}


def ids(value):
    return [] if value is None else value if isinstance(value, list) else [value]


def expected(config):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        model.tie_weights()
    heads = config.num_attention_heads
    return dict(architecture=type(model).__name__, vocab_size=config.vocab_size, hidden_size=config.hidden_size,
                width=config.intermediate_size, blocks=config.num_hidden_layers, heads=heads,
                kv_heads=config.num_key_value_heads, head_dim=config.head_dim,
                context=config.max_position_embeddings, window=getattr(config, "sliding_window", None), eps=config.rms_norm_eps,
                theta=config.rope_parameters["rope_theta"], tied=config.tie_word_embeddings,
                bos=ids(config.bos_token_id), eos=ids(config.eos_token_id), pad=config.pad_token_id,
                parameters=sum(p.numel() for p in model.parameters()))


def write_cases(folder):
    for name, config in VERSION_5.items():
        if name.startswith("llama"):
            config.architectures = ["LlamaForCausalLM"]
        config.save_pretrained(folder / name)
    for name, config in VERSION_4.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text(json.dumps(config, indent=2))
    for case in folder.iterdir():
        (case / "expected.json").write_text(json.dumps(expected(AutoConfig.from_pretrained(case))))


def write_models(folder):
    torch.manual_seed(11)
    for name, (kind, config, dtype, shard_size) in MODELS.items():
        model = kind(config).to(dtype)
        model.save_pretrained(folder / name, max_shard_size=shard_size)
        shapes = {key: list(value.shape) for key, value in model.state_dict().items()}
        if config.tie_word_embeddings:
            shapes.pop("lm_head.weight")
        described = dict(shapes=shapes, parameters=sum(p.numel() for p in model.parameters()))
        (folder / name / "expected.json").write_text(json.dumps(described))


def write_heads(folder):
    """Files that say of tied weights what config.json does not; transformers decides what is tied."""
    torch.manual_seed(12)
    config = LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                         tie_word_embeddings=True)
    weights = {name: value.clone() for name, value in LlamaForCausalLM(config).state_dict().items()}
    other = torch.randn_like(weights["lm_head.weight"])
    cases = {"same_head": weights, "other_head": {**weights, "lm_head.weight": other},
             "no_head": {name: value for name, value in weights.items() if name != "lm_head.weight"},
             "head_alone": {name: value for name, value in weights.items() if name != "model.embed_tokens.weight"},
             "one_word_too_many": {f"model.{name}": value for name, value in {**weights, "lm_head.weight": other}.items()}}
    for name, tensors in cases.items():
        config.architectures = ["LlamaForCausalLM"]
        config.save_pretrained(folder / name)
        save_file(tensors, folder / name / "model.safetensors", metadata={"format": "pt"})
        model, report = LlamaForCausalLM.from_pretrained(folder / name, output_loading_info=True)
        assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
        described = dict(tied=model.lm_head.weight is model.model.embed_tokens.weight,
                         parameters=sum(p.numel() for p in model.parameters()))
        (folder / name / "expected.json").write_text(json.dumps(described))


def write(out_dir: Path, shared: Path | None) -> None:
    folder = out_dir / "architecture"
    (folder / "cases").mkdir()
    write_cases(folder / "cases")
    write_models(folder / "models")
    write_heads(folder / "heads")
