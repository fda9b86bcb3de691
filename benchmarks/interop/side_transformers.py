"""transformers' answers about model directories; see sides.py."""

import os

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import sides  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


def gaps_of(report):
    """Weights that a class fills with random numbers, or leaves out."""
    return {key: sorted(map(str, report[key])) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") if report[key]}


def answer(request):
    model, report = transformers.AutoModelForCausalLM.from_pretrained(request["model"], dtype=torch.float32, output_loading_info=True)
    if gaps_of(report):
        raise ValueError(f"tensors do not fit: {gaps_of(report)}")
    ids = torch.tensor([request["ids"]])
    with torch.no_grad():
        logits = model.eval()(ids).logits[0].double().log_softmax(-1)
        made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=request["new_tokens"],
                              output_logits=True, return_dict_in_generate=True, pad_token_id=0)
    best = [step[0].double().log_softmax(-1).topk(2).values.tolist() for step in made.logits]
    tokenizer = transformers.AutoTokenizer.from_pretrained(request["model"])
    return {"log_probabilities": [logits[i - 1, request["ids"][i]].item() for i in request["positions"]],
            "greedy": made.sequences[0, ids.shape[1]:].tolist(), "margins": [first - second for first, second in best],
            "tokens": [tokenizer(text)["input_ids"] for text in request["texts"]]}


torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
sides.answer_all(answer)
