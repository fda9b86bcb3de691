"""Small random models as GGUF files, written by the package gguf with the changes that llama.cpp's converter makes."""

import gguf
import numpy
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

# Heads of Qwen 3 and Gemma are as wide as transformers assumes for files of these architectures.
SHAPE = dict(vocab_size=131, hidden_size=48, intermediate_size=80, num_hidden_layers=7, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=96, initializer_range=0.12, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, pad_token_id=None)
GEMMA = {**SHAPE, "head_dim": 256, "sliding_window": 11, "bos_token_id": 2, "eos_token_id": 1}
MODELS = {
    "llama": ("llama", "Llama", SHAPE),
    "llama-tied": ("llama", "Llama", {**SHAPE, "tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
    "qwen2": ("qwen2", "Qwen2", SHAPE),
    "qwen3": ("qwen3", "Qwen3", {**SHAPE, "head_dim": 128}),
    "phi3": ("phi3", "Phi3", SHAPE),
    "gemma2": ("gemma2", "Gemma2", GEMMA),
    "gemma3": ("gemma3", "Gemma3", GEMMA),
}


def reordered(rows, heads):
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def stored(name, values, architecture, config):
    if architecture == "llama" and name.endswith("q_proj.weight"):
        return reordered(values, config.num_attention_heads)
    if architecture == "llama" and name.endswith("k_proj.weight"):
        return reordered(values, config.num_key_value_heads)
    return values + 1 if architecture.startswith("gemma") and name.endswith("norm.weight") else values


def add_metadata(writer, architecture, config):
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    parameters = config.rope_parameters
    writer.add_rope_freq_base(parameters.get("full_attention", parameters)["rope_theta"])
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_vocab_size(config.vocab_size)
    if architecture in ("llama", "phi3"):
        writer.add_rope_dimension_count(head_dim)
    if architecture.startswith("gemma"):
        writer.add_sliding_window(config.sliding_window)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def write_model(path, model, architecture):
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    add_metadata(writer, architecture, config)
    kind = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = stored(name, tensor.float().numpy(), architecture, config)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), numpy.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_model(path, model_class, config_class):
    """As from_pretrained(gguf_file=...) does, which wants one package more to place the weights."""
    said = load_gguf_checkpoint(str(path), return_tensors=False)["config"]
    model = model_class(config_class.from_dict({**said, "pad_token_id": None})).eval()
    tensors = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    missing = set(model.load_state_dict(tensors, strict=False).missing_keys)
    assert missing <= {"lm_head.weight"} and (not missing or model.config.tie_word_embeddings), missing
    model.tie_weights()
    return model
