"""The models that are tried: a small one of every family, with its tokenizer, and settings that some of a family have."""

SHAPE = dict(hidden_size=256, intermediate_size=192, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, head_dim=32,
             max_position_embeddings=256, initializer_range=0.12, rms_norm_eps=1e-5, pad_token_id=None)
WINDOW = 32

# Heads that together are wider than the hidden state.
NARROW = dict(hidden_size=128)
HALF_WINDOWS = dict(sliding_window=WINDOW, layer_types=["sliding_attention", "full_attention"] * 3)
FAMILIES = {
    "Llama": ("llama3", {}),
    "Mistral": ("pieces", dict(sliding_window=None)),
    "Ministral": ("tekken", HALF_WINDOWS),
    "Ministral3": ("tekken", dict(**NARROW, rope_parameters=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=64, rope_theta=1e4, beta_fast=32.0, beta_slow=1.0,
        mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1))),
    "Qwen2": ("qwen2", {}),
    "Qwen3": ("qwen2", NARROW),
    "SmolLM3": ("llama3", dict(no_rope_layer_interval=3)),
    "Phi3": ("pieces", dict(sliding_window=None, original_max_position_embeddings=256)),
    "Olmo2": ("gpt2", {}),
    "Olmo3": ("gpt2", HALF_WINDOWS),
    "Gemma2": ("gemma", dict(**NARROW, num_key_value_heads=2, sliding_window=WINDOW, query_pre_attn_scalar=32)),
    "Gemma3": ("gemma", dict(**NARROW, sliding_window=WINDOW, query_pre_attn_scalar=32)),
    "Granite": ("digits", dict(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.1, logits_scaling=2.0)),
}


def rope(kind, theta=10000.0, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **more))


def yarn(**more):
    return rope("yarn", factor=4.0, original_max_position_embeddings=64, **more)


def rising(first, last):
    """A factor for each pair of channels."""
    return [first + (last - first) * pair / 15 for pair in range(16)]


TIED, UNTIED = dict(tie_word_embeddings=True), dict(tie_word_embeddings=False)
LINEAR, YARN = rope("linear", factor=4.0), yarn()
LLAMA3 = dict(max_position_embeddings=65536, **rope("llama3", 500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                    original_max_position_embeddings=8192))
LONGROPE = dict(original_max_position_embeddings=64,
                **rope("longrope", short_factor=rising(1.0, 1.5), long_factor=rising(1.0, 5.0)))
LATE_WINDOWS = dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2)
OTHER_WINDOWS = dict(layer_types=["full_attention"] * 2 + ["sliding_attention"] * 4)
# What configurations say beside the usual settings of their family, and GGUF may have no words for.
SETTINGS = {
    "Llama": {"tied": TIED, "linear": LINEAR, "dynamic": rope("dynamic", factor=4.0), "llama3": LLAMA3, "yarn": YARN,
              "yarn_betas": yarn(beta_fast=16.0, beta_slow=2.0), "yarn_mscale": yarn(mscale=0.7, mscale_all_dim=1.3),
              "yarn_attention_factor": yarn(attention_factor=1.25), "yarn_truncate": yarn(truncate=False),
              "attention_bias": dict(attention_bias=True), "mlp_bias": dict(mlp_bias=True),
              "gelu": dict(hidden_act="gelu_pytorch_tanh"), "narrow_heads": dict(head_dim=16)},
    "Mistral": {"window": dict(sliding_window=WINDOW), "window_of_context": dict(sliding_window=256), "yarn": YARN,
                "wide_heads": dict(head_dim=64)},
    "Qwen2": {"tied": TIED, "yarn": YARN, "linear": LINEAR, "windows": LATE_WINDOWS, "wide_heads": dict(head_dim=64)},
    "Qwen3": {"tied": TIED, "yarn": YARN, "linear": LINEAR, "windows": LATE_WINDOWS, "attention_bias": dict(attention_bias=True)},
    "Phi3": {"tied": TIED, "window": dict(sliding_window=WINDOW), "window_of_context": dict(sliding_window=256),
             "partial": dict(partial_rotary_factor=0.75), "longrope": LONGROPE},
    "Gemma2": {"untied": UNTIED, "no_caps": dict(attn_logit_softcapping=None, final_logit_softcapping=None),
               "scale": dict(query_pre_attn_scalar=24), "other_windows": OTHER_WINDOWS},
    "Gemma3": {"untied": UNTIED, "final_cap": dict(final_logit_softcapping=5.0), "scale": dict(query_pre_attn_scalar=24),
               "other_windows": OTHER_WINDOWS,
               "linear": dict(rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                                                   sliding_attention=dict(rope_type="default", rope_theta=1e4)))},
}
