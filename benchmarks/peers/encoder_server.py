"""Runs the encoder on the CPU for encoder.py, which keeps this process while other programs take their turns.

    python encoder_server.py FOLDER THREADS PRECISION compiled|frozen|openvino

FOLDER is a model folder of prism; encoder_model.py reads its weights. PRECISION is bf16 or f32. compiled: torch.compile,
with parameters in that precision. frozen: the same with Inductor's freezing, which packs the weights. openvino: OpenVINO.
Reads one request a line, {"texts": B, "tokens": T, "passes": N}, and answers {"seconds": the median of N passes,
"logits": of the first text}. The first line it prints is {"version": ...}. Models are compiled for one shape each; the
first request of a shape compiles, and each begins with a pass that is not counted.
"""
import json
import os
import statistics
import sys
import time

import torch
from encoder_model import load, random_texts


def compiled_by_torch(encoder, precision, freezes):
    import torch._dynamo
    import torch._inductor.config

    torch._dynamo.config.recompile_limit = 64  # a compilation for each shape
    torch._inductor.config.freezing = freezes
    model = torch.compile(encoder.to(torch.bfloat16 if precision == "bf16" else torch.float32), dynamic=False)
    return f"PyTorch {torch.__version__}", lambda shape: lambda tokens: model(tokens).float()


def compiled_by_openvino(encoder, precision, threads):
    import openvino

    options = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"}
    converted = openvino.convert_model(encoder, example_input=torch.zeros(2, 16, dtype=torch.long))
    core, models = openvino.Core(), {}

    def of_shape(shape):
        if shape not in models:
            converted.reshape(shape)
            models[shape] = core.compile_model(converted, "CPU", options)
        return lambda tokens: torch.from_numpy(models[shape](tokens.numpy())[0])

    return f"OpenVINO {openvino.__version__.split('-')[0]}", of_shape


def main():
    folder, threads, precision, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    # Compilers print notes to standard output, which belongs to the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(threads)
    encoder = load(folder)
    vocab = encoder.embedding.num_embeddings
    if kind == "openvino":
        version, of_shape = compiled_by_openvino(encoder, precision, threads)
    else:
        version, of_shape = compiled_by_torch(encoder, precision, kind == "frozen")
    print(json.dumps({"version": version}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        tokens = random_texts(request["texts"], request["tokens"], vocab)
        seconds = []
        with torch.inference_mode():
            model = of_shape(tuple(tokens.shape))
            for _ in range(1 + request["passes"]):
                began = time.perf_counter()
                logits = model(tokens)
                seconds.append(time.perf_counter() - began)
        answer = {"seconds": statistics.median(seconds[1:]), "logits": logits[0].tolist()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
