"""Lets transformers load a model whose blocks differ; Retort writes this file beside its config.json.

    AutoModelForCausalLM.from_pretrained(directory, trust_remote_code=True)

The numbers of heads and channels in config.json are lists with one for each layer; 0: it lacks the attention or MLP.
"""

import copy

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

BASE_MODEL_TYPE = "of_config_json"  # the class of transformers that computes the same with blocks that are alike
SIZES = ("num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size")

BaseConfig = CONFIG_MAPPING[BASE_MODEL_TYPE]
BaseForCausalLM = MODEL_FOR_CAUSAL_LM_MAPPING[BaseConfig]


class RetortConfig(BaseConfig):
    model_type = "retort"

    def __init__(self, **kwargs):
        layers = kwargs.pop("layer_sizes", None) or {size: kwargs.pop(size) for size in SIZES if size in kwargs}
        largest = {size: max(sizes) for size, sizes in layers.items()}
        super().__init__(**{**kwargs, **largest, **self.heads_for_rules(kwargs, largest)})
        for size, value in largest.items():
            setattr(self, size, value)
        self.layer_sizes = layers

    @staticmethod
    def heads_for_rules(kwargs, largest):
        """Numbers that the rules of classes take: heads divide hidden_size, or hidden_size by them is head_dim, by which
        longrope's factors are counted.  Such rules are not of a class below: its base looks at them when it is made."""
        rope = kwargs.get("rope_parameters") or kwargs.get("rope_scaling") or {}
        if not largest:
            return {}
        heads = kwargs["hidden_size"] // max(1, largest["head_dim"]) if rope.get("rope_type") == "longrope" else 1
        return {"num_attention_heads": max(1, heads), "num_key_value_heads": 1}

    def validate(self):
        """Nothing is left to check when it is saved: each layer has numbers of its own."""

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


def norms_of_halves(layer):
    """Names of the norms around attention, and around the MLP."""
    if hasattr(layer, "post_feedforward_layernorm"):
        return (("input_layernorm", "post_attention_layernorm"),
                ("pre_feedforward_layernorm", "post_feedforward_layernorm"))
    return ("input_layernorm",), ("post_attention_layernorm",)


def make_layer(kind, config, layer, place_in_cache):
    sizes = config.of_layer(layer)
    attends, transforms = sizes.num_attention_heads > 0, sizes.intermediate_size > 0
    if not attends:  # any size: what is built from it goes
        for size in ("num_attention_heads", "num_key_value_heads", "head_dim"):
            setattr(sizes, size, getattr(config, size))
    made = kind(sizes, layer)
    made.self_attn.layer_idx = place_in_cache
    around_attention, around_mlp = norms_of_halves(made)
    for there, module, empty, norms in ((attends, "self_attn", NoAttention(), around_attention),
                                        (transforms, "mlp", NoMlp(), around_mlp)):
        if there:
            continue
        setattr(made, module, empty)
        for norm in norms:
            if hasattr(made, norm):
                setattr(made, norm, torch.nn.Identity())
    return made


class RetortForCausalLM(BaseForCausalLM):
    config_class = RetortConfig

    def __init__(self, config):
        super().__init__(config)
        kind = type(self.model.layers[0])
        heads = config.layer_sizes["num_attention_heads"]
        # The cache has a place for each attention that exists, the first one's tells its length; where windows
        # differ by layer, a place for each layer.
        differ = len(set(getattr(config, "layer_types", None) or ["full_attention"])) > 1
        places = [layer if differ else sum(count > 0 for count in heads[:layer]) for layer in range(len(heads))]
        self.model.layers = torch.nn.ModuleList(
            make_layer(kind, config, layer, place) for layer, place in enumerate(places))
        self.post_init()
