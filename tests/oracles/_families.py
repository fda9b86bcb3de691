"""Small random models of every family, drawn from a seed over all that its configuration may say.

Each becomes a case of tests/oracles/model.py, with what the gradients of a text's loss are:
gradients.safetensors   of the mean cross-entropy of the next tokens of all documents, by the file's names of tensors
bfloat16.safetensors    "logits" of the same documents, computed in bfloat16
bfloat16_gradients.safetensors  the same gradients, computed in bfloat16
"""

import itertools
import random

import torch
import transformers
from safetensors.torch import save_file

VOCABULARY = 131
CONTEXT = 96
WINDOW = 11


def shape(draw):
    kv_heads = draw.choice([1, 2, 3])
    return dict(vocab_size=VOCABULARY, hidden_size=draw.choice([32, 48, 40]), intermediate_size=draw.choice([56, 80]),
                num_hidden_layers=draw.choice([3, 4, 5]), num_attention_heads=kv_heads * draw.choice([1, 2]),
                num_key_value_heads=kv_heads, max_position_embeddings=CONTEXT, initializer_range=0.12, bos_token_id=1,
                eos_token_id=2, pad_token_id=None, rms_norm_eps=draw.choice([1e-5, 1e-6]),
                tie_word_embeddings=draw.random() < 0.5)


def divisible(values):
    """Some classes want hidden_size to be a multiple of the heads."""
    heads = values["num_attention_heads"]
    return {**values, "hidden_size": heads * max(1, values["hidden_size"] // heads)}


def ropes(draw, theta=None, by_type=False):
    """`by_type`: one of several, where transformers does not read `truncate`."""
    theta = theta or draw.choice([100.0, 10000.0, 500000.0])
    plain = dict(rope_type="default", rope_theta=theta)
    factor = draw.choice([2.0, 4.0, 8.0])
    return draw.choice([
        plain,
        dict(rope_type="linear", factor=factor, rope_theta=theta),
        dict(rope_type="dynamic", factor=factor, rope_theta=theta),
        dict(rope_type="llama3", factor=factor, low_freq_factor=1.0, high_freq_factor=4.0,
             original_max_position_embeddings=40, rope_theta=theta),
        dict(rope_type="yarn", factor=factor, original_max_position_embeddings=draw.choice([24, 48]), rope_theta=theta,
             **draw.choice([{}, dict(beta_fast=16.0, beta_slow=2.0), dict(mscale=0.7, mscale_all_dim=1.3),
                            dict(attention_factor=1.25), dict(truncate=by_type)])),
    ])


def layer_types(draw, layers):
    return [draw.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]


def llama(draw):
    values = divisible(shape(draw))
    return "Llama", {**values, "rope_parameters": ropes(draw), "attention_bias": draw.random() < 0.4,
                     "mlp_bias": draw.random() < 0.4, "head_dim": draw.choice([None, 8, 18])}


def even_head_dim(values):
    """A head as wide as hidden_size / heads has to have pairs of channels."""
    if values.get("head_dim") is None and (values["hidden_size"] // values["num_attention_heads"]) % 2:
        return {**values, "head_dim": 12}
    return values


def mistral(draw):
    return "Mistral", {**shape(draw), "rope_parameters": ropes(draw), "head_dim": 14,
                       "sliding_window": draw.choice([None, WINDOW])}


def ministral(draw):
    values = shape(draw)
    return "Ministral", {**values, "rope_parameters": ropes(draw), "head_dim": 14, "sliding_window": WINDOW,
                         "layer_types": draw.choice([None, layer_types(draw, values["num_hidden_layers"])])}


def ministral3(draw):
    rope = dict(rope_type="yarn", factor=draw.choice([1.0, 16.0]), original_max_position_embeddings=20, rope_theta=1e4,
                beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0,
                llama_4_scaling_beta=draw.choice([0.1, 0.4]))
    return "Ministral3", {**shape(draw), "head_dim": 16, "rope_parameters": rope,
                          "sliding_window": draw.choice([None, WINDOW])}


def windows_of_qwen(draw, layers):
    return draw.choice([dict(use_sliding_window=False, sliding_window=WINDOW),
                        dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=draw.choice([0, 2])),
                        dict(use_sliding_window=True, sliding_window=WINDOW, layer_types=layer_types(draw, layers))])


def qwen2(draw):
    values = shape(draw)
    return "Qwen2", {**values, "head_dim": 10, "rope_parameters": ropes(draw),
                     **windows_of_qwen(draw, values["num_hidden_layers"])}


def qwen3(draw):
    values = shape(draw)
    return "Qwen3", {**values, "head_dim": draw.choice([10, 16]), "rope_parameters": ropes(draw),
                     "attention_bias": draw.random() < 0.4, **windows_of_qwen(draw, values["num_hidden_layers"])}


def smollm3(draw):
    values = shape(draw)
    layers = values["num_hidden_layers"]
    positions = draw.choice([{}, dict(no_rope_layer_interval=2),
                             dict(no_rope_layers=[draw.choice([0, 1]) for _ in range(layers)])])
    window = draw.choice([{}, dict(use_sliding_window=True, sliding_window=WINDOW)])
    return "SmolLM3", {**values, "head_dim": 12, "rope_parameters": ropes(draw), "attention_bias": draw.random() < 0.4,
                       "mlp_bias": draw.random() < 0.4, **positions, **window}


def phi3(draw):
    values = shape(draw)
    heads, head_dim = values["num_attention_heads"], 16
    share = draw.choice([1.0, 0.75, 0.5])
    pairs = int(head_dim * share) // 2
    rope = draw.choice([
        dict(rope_type="default", rope_theta=10000.0),
        dict(rope_type="longrope", rope_theta=10000.0,
             short_factor=[1 + draw.random() for _ in range(pairs)],
             long_factor=[1 + 4 * draw.random() for _ in range(pairs)])])
    return "Phi3", {**values, "hidden_size": heads * head_dim, "original_max_position_embeddings": 40,
                    "rope_parameters": {**rope, "partial_rotary_factor": share},
                    "partial_rotary_factor": share, "sliding_window": draw.choice([None, WINDOW])}


def olmo2(draw):
    return "Olmo2", {**divisible(shape(draw)), "head_dim": 14, "rope_parameters": ropes(draw),
                     "attention_bias": draw.random() < 0.4}


def olmo3(draw):
    values = divisible(shape(draw))
    by_type = dict(full_attention=ropes(draw, 1e4, by_type=True), sliding_attention=dict(rope_type="default", rope_theta=1e3))
    return "Olmo3", {**values, "head_dim": 14, "rope_parameters": by_type, "attention_bias": draw.random() < 0.4,
                     "sliding_window": WINDOW,
                     "layer_types": draw.choice([None, layer_types(draw, values["num_hidden_layers"])])}


def gemma2(draw):
    values = divisible(shape(draw))
    return "Gemma2", {**values, "head_dim": 16, "rope_parameters": ropes(draw), "attention_bias": draw.random() < 0.4,
                      "query_pre_attn_scalar": draw.choice([16, 24]), "sliding_window": WINDOW,
                      "attn_logit_softcapping": draw.choice([None, 3.0]),
                      "final_logit_softcapping": draw.choice([None, 5.0])}


def gemma3(draw):
    values = divisible(shape(draw))
    by_type = dict(full_attention=ropes(draw, 1e5, by_type=True), sliding_attention=dict(rope_type="default", rope_theta=1e3))
    return "Gemma3Text", {**values, "head_dim": 16, "rope_parameters": by_type, "attention_bias": draw.random() < 0.4,
                          "query_pre_attn_scalar": draw.choice([16, 24]), "sliding_window": WINDOW,
                          "layer_types": draw.choice([None, layer_types(draw, values["num_hidden_layers"])]),
                          "attn_logit_softcapping": draw.choice([None, 3.0]),  # which Gemma 3 does not read
                          "final_logit_softcapping": draw.choice([None, 5.0])}


def granite(draw):
    return "Granite", {**shape(draw), "head_dim": 12, "rope_parameters": ropes(draw), "attention_bias": draw.random() < 0.4,
                       "mlp_bias": draw.random() < 0.4, "embedding_multiplier": draw.choice([1.0, 3.0]),
                       "residual_multiplier": draw.choice([1.0, 0.4]), "attention_multiplier": draw.choice([0.1, 0.4]),
                       "logits_scaling": draw.choice([1.0, 2.0])}


FAMILIES = [llama, mistral, ministral, ministral3, qwen2, qwen3, smollm3, phi3, olmo2, olmo3, gemma2, gemma3, granite]
EACH = 6


def random_parameters(model, scale):
    """Biases and norms begin as constants: here they matter as they do in a trained model."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * scale)


def drawn():
    """(name, config, type of the weights) of each case."""
    for family in FAMILIES:
        for number in range(EACH):
            draw = random.Random(f"{family.__name__} {number}")
            name, values = family(draw)
            activation = random.Random(f"activation {family.__name__} {number}").choice(["silu", "silu", "gelu_pytorch_tanh"])
            values["hidden_activation" if name.startswith("Gemma") else "hidden_act"] = activation
            config = getattr(transformers, name + "Config")(**even_head_dim(values))
            yield f"{family.__name__}_{number}", config, draw.choice([torch.float32, torch.float32, torch.bfloat16])


def documents_of(config):
    """The last one is longer than three windows, and than what the model was made for."""
    return [torch.randint(3, config.vocab_size, (length,)).tolist() for length in (1, 37, 5, 2 * CONTEXT + 3)]


def gradients(load, documents, dtype=torch.float32):
    """Of the mean over the next tokens of all documents, each read on its own, by a fresh model; added up in float32."""
    targets = sum(len(ids) - 1 for ids in documents)
    total = {}
    for ids in documents:
        if len(ids) == 1:
            continue
        model = load(dtype)
        logits = model(torch.tensor([ids])).logits[0, :-1].float()
        (torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum") / targets).backward()
        for name, parameter in model.named_parameters():
            total[name] = total.get(name, 0) + parameter.grad.float()
    return {name: gradient.contiguous() for name, gradient in total.items()}


def make(config, dtype, folder):
    """Saves a model, and returns it as it was saved, in float32."""
    kind = getattr(transformers, type(config).__name__.removesuffix("Config").removesuffix("Text") + "ForCausalLM")
    model = kind(config)
    random_parameters(model, 0.2)
    model.to(dtype).save_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def write_more(folder, documents):
    """What a case of this module has beside those of the module `model`; a fresh model for each long document."""
    load = lambda dtype: transformers.AutoModelForCausalLM.from_pretrained(folder / "model", dtype=dtype).eval()
    save_file(gradients(load, documents), folder / "gradients.safetensors")
    save_file(gradients(load, documents, torch.bfloat16), folder / "bfloat16_gradients.safetensors")
    coarse = load(torch.bfloat16)
    with torch.no_grad():
        logits = torch.cat([coarse(torch.tensor([ids])).logits[0] for ids in documents])
    save_file({"logits": logits.float().contiguous()}, folder / "bfloat16.safetensors")


VISION = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14)


def mistral3(text):
    vision = transformers.PixtralVisionConfig(head_dim=8, **VISION)
    return transformers.Mistral3ForConditionalGeneration(
        transformers.Mistral3Config(text_config=text, vision_config=vision, tie_word_embeddings=text.tie_word_embeddings))


def gemma3_of(text):
    config = transformers.Gemma3Config(text_config=text, vision_config=transformers.SiglipVisionConfig(**VISION),
                                       mm_tokens_per_image=4, boi_token_index=3, eoi_token_index=4, image_token_index=5)
    return transformers.Gemma3ForConditionalGeneration(config)


def wrapped():
    """(name, whole model, whether its files have the tensor names of transformers 4) of models that also see."""
    kinds = [(mistral, mistral3), (ministral3, mistral3), (gemma3, gemma3_of)]
    for (family, whole), old_names in itertools.product(kinds, (False, True)):
        name, values = family(random.Random(f"wrapped {family.__name__}"))
        layers = ["sliding_attention", "full_attention", "sliding_attention"]
        told = {"num_hidden_layers": 3, "layer_types": layers} if family is gemma3 else {"tie_word_embeddings": False}
        text = getattr(transformers, name + "Config")(**even_head_dim({**values, **told}))
        model = whole(text)
        random_parameters(model, 0.2)
        wrapper = "gemma3" if family is gemma3 else "mistral3"
        yield f"{wrapper}_of_{family.__name__}{'_4' if old_names else ''}", model.eval(), old_names


def save_wrapped(model, folder, old_names):
    model.save_pretrained(folder)
    from safetensors.torch import load_file
    file = folder / "model.safetensors"
    tensors = load_file(file)
    four, five = "language_model.model.", "model.language_model."
    if old_names != any(name.startswith(four) for name in tensors):
        before, after = (five, four) if old_names else (four, five)
        head = {"lm_head.weight": "language_model.lm_head.weight"}
        head = head if old_names else {value: key for key, value in head.items()}
        tensors = {head.get(name, name.replace(before, after)): value for name, value in tensors.items()}
    save_file(tensors, file, metadata={"format": "pt"})
