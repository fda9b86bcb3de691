#!/usr/bin/env python3
"""Tokens a second of llama.cpp over GGUF files in turn, and what each answers to three questions in its chat form.

  benchmarks/interop/llama_cpp_speed.py ROUNDS FILE.gguf ...

One text at a time: a prompt of 128 ids, then 64 new tokens on two threads; loading and the prompt do not count.  Every round runs
all files, each in a process of its own; the order changes from round to round.  Needs xllamacpp (llama_cpp.txt).
"""

import multiprocessing
import statistics
import sys
import time

PROMPT = list(range(1000, 1128))
NEW_TOKENS = 64
QUESTIONS = ["What is the capital of France?", "How do I list the files of a directory?", "Name three animals."]


def server_of(path):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel, params.n_gpu_layers, params.verbosity = 512, 1, 0, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.cache_prompt = False
    return xllamacpp.Server(params)


def tokens_per_second(path, results):
    server = server_of(path)

    def seconds(new_tokens):
        start = time.perf_counter()
        server.handle_completions({"prompt": PROMPT, "n_predict": new_tokens, "temperature": 0, "top_k": 1, "samplers": ["top_k"],
                                   "cache_prompt": False, "ignore_eos": True})
        return time.perf_counter() - start

    seconds(4)  # to warm up
    first = seconds(1)
    results.put(NEW_TOKENS / (seconds(1 + NEW_TOKENS) - first))


def answers(path, results):
    server = server_of(path)
    results.put([server.handle_chat_completions({"messages": [{"role": "user", "content": question}], "max_tokens": 40,
                                                 "temperature": 0})["choices"][0]["message"]["content"] for question in QUESTIONS])


def in_a_process(act, path):
    results = multiprocessing.Queue()
    process = multiprocessing.Process(target=act, args=(path, results))
    process.start()
    found = results.get()
    process.join()
    return found


def main():
    rounds, files = int(sys.argv[1]), sys.argv[2:]
    rates = {file: [] for file in files}
    for number in range(rounds):
        for file in files if number % 2 == 0 else reversed(files):
            rates[file].append(in_a_process(tokens_per_second, file))
    for file in files:
        print(f"{file}: {statistics.median(rates[file]):.1f} tokens/s, {min(rates[file]):.1f} to {max(rates[file]):.1f}")
        for question, answer in zip(QUESTIONS, in_a_process(answers, file)):
            print(f"  {question} {answer!r}")


if __name__ == "__main__":
    main()
