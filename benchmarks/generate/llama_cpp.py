#!/usr/bin/env python3
"""Many texts by `retort generate --prompts` and by llama.cpp's server, in turn: tokens a second at several batch sizes.

Writes an unquantised copy of a GGUF file, which both read, and prompts of 32 to 512 tokens cut from TEXT.  Both go on greedily for
at most the same number of tokens; what each really made counts.  Loading counts for neither; reading the prompts counts for both.
llama.cpp has as many slots as the batch, and gets all prompts at once.  Each round runs both, the order changes from round to
round.  Prints a JSON object for each batch size: tokens/s of all rounds, the ratio of the medians, and how many answers are equal.

Needs xllamacpp (llama.cpp's server as a Python module), gguf and tokenizers.
"""

import argparse
import json
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path

import sides


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a GGUF file")
    sides.add_arguments(parser)
    return parser.parse_args()


def write_unquantised(source, target, dtype):
    import gguf
    import numpy

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    known = ("general.architecture", "general.file_type", "general.quantization_version")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in known:
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind,
                             sub_type=field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32 if dtype == "fp32" else gguf.LlamaFileType.MOSTLY_BF16)
    bf16 = gguf.GGMLQuantizationType.BF16
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        if dtype == "bf16" and values.ndim > 1:
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, bf16), raw_dtype=bf16)
        else:
            writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def by_llama_cpp(arguments, model, prompts, batch):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.n_parallel = batch
    params.n_ctx = batch * (512 + arguments.new_tokens + 64)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.threads
    params.n_gpu_layers = 0
    params.cache_prompt = False
    if arguments.dtype == "fp32":
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.verbosity = -1
    server = xllamacpp.Server(params)
    results = [None] * len(prompts)

    def one(which, new_tokens):
        results[which] = server.handle_completions({"prompt": prompts[which], "n_predict": new_tokens, "temperature": 0, "top_k": 1,
                                                    "samplers": ["top_k"], "cache_prompt": False})

    one(0, 4)  # to warm up
    threads = [threading.Thread(target=one, args=(which, arguments.new_tokens)) for which in range(len(prompts))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    tokens = sum(result["usage"]["completion_tokens"] for result in results)
    return tokens / seconds, [result["choices"][0]["text"] for result in results]


def alone(function, *values):
    """In a process of its own: the threads of a server that waits would take time from the other side."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, values)


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        model = work / "model.gguf"
        write_unquantised(arguments.model, model, arguments.dtype)
        for batch, count in zip(arguments.batch, arguments.texts):
            prompts, answers = sides.make_prompts(arguments, count), {}

            def by_retort():
                tokens, seconds, answers["retort"] = sides.by_retort(arguments, model, prompts, batch, work)
                return tokens / seconds

            def by_other():
                rate, answers["llama.cpp"] = alone(by_llama_cpp, arguments, model, prompts, batch)
                return rate

            found = sides.in_turn(arguments, batch, count, {"retort": by_retort, "llama.cpp": by_other})
            found["equal_answers"] = sum(a == b for a, b in zip(answers["retort"], answers["llama.cpp"]))
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
