"""Lets transformers load a model whose blocks differ; Retort writes this file beside its config.json.

    AutoModelForCausalLM.from_pretrained(directory, trust_remote_code=True)

The numbers of heads and channels in config.json are lists with one for each layer; 0: it lacks the attention or MLP.
"""

import copy

import torch
from transformers import MistralConfig, MistralForCausalLM
from transformers.models.mistral.modeling_mistral import MistralDecoderLayer

SIZES = ("num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size")


class RetortConfig(MistralConfig):
    """Mistral without a window computes what Llama does, and sets no rule for the number of heads."""

    model_type = "retort"

    def __init__(self, **kwargs):
        layers = kwargs.pop("layer_sizes", None) or {size: kwargs.pop(size) for size in SIZES if size in kwargs}
        kwargs.update({size: max(sizes) for size, sizes in layers.items()})
        super().__init__(**{**kwargs, "sliding_window": None})
        self.layer_sizes = layers

    def of_layer(self, layer):
        config = copy.copy(self)
        for size, sizes in self.layer_sizes.items():
            setattr(config, size, sizes[layer])
        return config

    def to_dict(self):
        values = super().to_dict()
        values.update(values.pop("layer_sizes", {}))
        return values

    def to_diff_dict(self):
        values = super().to_diff_dict()
        values.pop("layer_sizes", None)
        return {**values, **self.layer_sizes}


class NoAttention(torch.nn.Module):
    def forward(self, hidden_states, **kwargs):
        return torch.zeros_like(hidden_states), None


class NoMlp(torch.nn.Module):
    def forward(self, hidden_states):
        return torch.zeros_like(hidden_states)


def make_layer(config, layer, attentions_before):
    sizes = config.of_layer(layer)
    attends, transforms = sizes.num_attention_heads > 0, sizes.intermediate_size > 0
    if not attends:  # any size: what is built from it goes
        for size in ("num_attention_heads", "num_key_value_heads", "head_dim"):
            setattr(sizes, size, getattr(config, size))
    # The cache has a place for each attention that exists, the first one's tells its length.
    made = MistralDecoderLayer(sizes, attentions_before)
    if not attends:
        made.self_attn, made.input_layernorm = NoAttention(), torch.nn.Identity()
    if not transforms:
        made.mlp, made.post_attention_layernorm = NoMlp(), torch.nn.Identity()
    return made


class RetortForCausalLM(MistralForCausalLM):
    config_class = RetortConfig

    def __init__(self, config):
        super().__init__(config)
        heads = config.layer_sizes["num_attention_heads"]
        self.model.layers = torch.nn.ModuleList(
            make_layer(config, layer, sum(count > 0 for count in heads[:layer])) for layer in range(len(heads)))
        self.post_init()
