"""vLLM's answers about model directories, on processors; see sides.py."""

import gc
import os

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", VLLM_NO_USAGE_STATS="1",
                  VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_LOGGING_LEVEL="ERROR", VLLM_CPU_KVCACHE_SPACE="1",
                  TORCHDYNAMO_DISABLE="1")

import sides  # noqa: E402
import vllm  # noqa: E402


def answered(model, request):
    ids = request["ids"]
    asked = vllm.SamplingParams(temperature=0, max_tokens=request["new_tokens"], logprobs=2, prompt_logprobs=0)
    found = model.generate({"prompt_token_ids": ids}, asked, use_tqdm=False)[0]
    best = [sorted(token.logprob for token in step.values()) for step in found.outputs[0].logprobs]
    tokenizer = model.get_tokenizer()
    return {"log_probabilities": [found.prompt_logprobs[i][ids[i]].logprob for i in request["positions"]],
            "greedy": list(found.outputs[0].token_ids), "margins": [pair[-1] - pair[-2] for pair in best],
            "tokens": [tokenizer.encode(text) for text in request["texts"]]}


def answer(request):
    model = vllm.LLM(request["model"], dtype="float32", enforce_eager=True, max_num_seqs=1, enable_prefix_caching=False,
                     max_model_len=len(request["ids"]) + request["new_tokens"] + 32)
    try:
        return answered(model, request)
    finally:
        del model
        gc.collect()


sides.answer_all(answer, again=True)  # what a model that failed leaves is in the way of the next
