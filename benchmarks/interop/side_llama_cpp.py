"""llama.cpp's answers about GGUF files, through its server; see sides.py.

The server says probabilities of tokens that it makes, not of those of a prompt: it makes one after each beginning of the prompt.
Keys, values and products of attention are float32: the flash attention that it takes by default for them rounds to 16 bits, which
moves log-probabilities of such models by 0.01.
"""

import json
import os
import re
import tempfile
import urllib.error
import urllib.request

import sides
import xllamacpp


def parameters(request):
    params = xllamacpp.CommonParams()
    params.model.path = request["model"]
    params.n_ctx, params.n_parallel, params.n_gpu_layers = len(request["ids"]) + request["new_tokens"] + 32, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.warmup, params.verbosity = False, 1  # errors are said
    return params


def server_of(request):
    """llama.cpp says on standard error why it does not load a file."""
    before = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            return xllamacpp.Server(parameters(request))
        except RuntimeError as error:
            log.seek(0)
            reasons = re.findall(r"error loading model: (.*)", log.read().decode(errors="replace"))
            raise RuntimeError(reasons[0] if reasons else str(error)) from error
        finally:
            os.dup2(before, 2)
            os.close(before)


def post(server, route, asked):
    call = urllib.request.Request(server.listening_address + route, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(call) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        raise RuntimeError(json.load(error)["error"]["message"]) from error


def made(server, ids, count, probabilities, **more):
    return post(server, "/completion", {"prompt": ids, "n_predict": count, "temperature": 0, "top_k": 1, "samplers": ["top_k"],
                                        "n_probs": probabilities, "cache_prompt": True, "return_tokens": True, **more})


def log_probability(server, ids, at, vocabulary):
    """The token that is made has to end a letter, or the server says nothing of it.  Probabilities are those before the bias."""
    top = made(server, ids[:at], 1, vocabulary, logit_bias=[[ids[-1], 1e4]])["completion_probabilities"][0]["top_logprobs"]
    return next(token["logprob"] for token in top if token["id"] == ids[at])


def answer(request):
    server, ids = server_of(request), request["ids"]
    greedy = made(server, ids, request["new_tokens"], 2)
    best = [[token["logprob"] for token in step["top_logprobs"]] for step in greedy["completion_probabilities"]]
    if any(value is None for pair in best for value in pair):
        raise ValueError("its log-probabilities are no numbers")
    return {"log_probabilities": [log_probability(server, ids, at, request["vocabulary"]) for at in request["positions"]],
            "greedy": greedy["tokens"], "margins": [max(pair) - min(pair) for pair in best],
            "tokens": [post(server, "/tokenize", {"content": text, "add_special": True, "parse_special": False})["tokens"]
                       for text in request["texts"]]}


sides.answer_all(answer)
