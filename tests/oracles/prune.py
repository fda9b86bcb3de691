"""SparseGPT 2:4 in plain float64 PyTorch, written from the description of the algorithm, on layers and on a whole model.

sparse_gpt.json   three random layers: inputs of several sequences, Hessian, weight, result
model/            a random Llama; sequences.json: what it is calibrated on
sparsified/       the same model after every linear layer of its blocks was made 2:4 in turn, each layer group with the
                  inputs that the whole model, as sparse as it is by then, feeds it
"""

import json

import torch
from transformers import LlamaConfig, LlamaForCausalLM

DAMPENING = 0.01
GROUPS = [["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], ["self_attn.o_proj"],
          ["mlp.gate_proj", "mlp.up_proj"], ["mlp.down_proj"]]


def hessian_of(inputs):
    """Running form: the mean over sequences of 2 X X^T, one sequence after the other."""
    hessian = torch.zeros(inputs[0].shape[1], inputs[0].shape[1], dtype=torch.float64)
    for count, tokens in enumerate(inputs, start=1):
        hessian *= (count - 1) / count
        scaled = (2 / count) ** 0.5 * tokens.T
        hessian += scaled @ scaled.T
    return hessian


def sparsify(weight, hessian):
    """One column after the other; every removed weight's error is moved at once to all later columns of its row."""
    weight, damped = weight.clone(), hessian.clone()
    dead = damped.diagonal() == 0
    damped[dead, dead] = 1
    weight[:, dead] = 0
    damped += DAMPENING * damped.diagonal().mean() * torch.eye(len(damped), dtype=torch.float64)
    upper = torch.linalg.cholesky(torch.linalg.inv(damped), upper=True)
    kept = torch.ones_like(weight, dtype=torch.bool)
    loss = 0.0
    for j in range(weight.shape[1]):
        if j % 4 == 0:
            for row in range(weight.shape[0]):
                scores = [(weight[row, k].item() ** 2 / upper[k, k].item() ** 2, k) for k in range(j, j + 4)]
                for _, k in sorted(scores)[:2]:
                    kept[row, k] = False
        removed = torch.where(kept[:, j], 0.0, weight[:, j])
        error = removed / upper[j, j]
        loss += (error**2).sum().item() / 2
        weight[:, j:] -= error[:, None] * upper[j, j:][None, :]
        weight[~kept[:, j], j] = 0
    return weight, kept, loss


def random_layer(rows, columns, generator):
    def random(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    mix = random(columns // 2, columns)
    inputs = [random(20, columns // 2) @ mix + 0.3 * random(20, columns) for _ in range(4)]
    if rows == 12:
        for tokens in inputs:
            tokens[:, 9] = 0
    weight = random(rows, columns)
    hessian = hessian_of(inputs)
    sparse, kept, loss = sparsify(weight, hessian)
    outputs = [tokens @ weight.T for tokens in inputs]
    changes = [tokens @ torch.where(torch.diagonal(hessian) == 0, 0, weight - sparse).T for tokens in inputs]
    error = sum((c**2).sum() for c in changes) / sum((o**2).sum() for o in outputs)
    return {"weight": weight.tolist(), "inputs": [tokens.tolist() for tokens in inputs], "hessian": hessian.tolist(),
            "sparse": sparse.tolist(), "kept": kept.int().tolist(), "loss": loss, "relative_error": error.item() ** 0.5}


def inputs_of(model, module, sequences):
    """What the module is fed when the model reads each sequence."""
    caught = []
    handle = module.register_forward_pre_hook(lambda _, arguments: caught.append(arguments[0][0].detach().clone()))
    with torch.no_grad():
        for sequence in sequences:
            model(input_ids=torch.tensor([sequence]))
    handle.remove()
    return caught


def sparsify_model(model, sequences):
    for block in model.model.layers:
        for group in GROUPS:
            modules = [block.get_submodule(name) for name in group]
            hessian = hessian_of(inputs_of(model, modules[0], sequences))
            for module in modules:
                sparse, _, _ = sparsify(module.weight.detach(), hessian)
                module.weight.data = sparse.float().double()


def write(out_dir, shared):
    out = out_dir / "prune"
    out.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(20)
    layers = [random_layer(rows, columns, generator) for rows, columns in ((8, 32), (12, 64), (5, 48))]
    (out / "sparse_gpt.json").write_text(json.dumps(layers))

    torch.manual_seed(21)
    config = LlamaConfig(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.15,
                         attn_implementation="eager")
    model = LlamaForCausalLM(config).eval()
    model.save_pretrained(out / "model")
    sequences = torch.randint(0, config.vocab_size, (6, 40), generator=generator).tolist()
    (out / "sequences.json").write_text(json.dumps(sequences))
    model.double()
    sparsify_model(model, sequences)
    model.float().save_pretrained(out / "sparsified")
