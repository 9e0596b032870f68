"""Runs OpenVINO GenAI on the CPU for inference.py, which keeps this process while other programs take their turns.

    python openvino_server.py MODEL THREADS PRECISION

MODEL is a .gguf file or a folder of OpenVINO's own format; of a file, that format is saved beside it. Reads one request a
line, {"mode": "dense" or "xattention", "ids": [...], "new_tokens": N}, and answers {"seconds": until the first token,
"tokens_per_s": of those after it}. The first line it prints is {"version": ...}. The first request of a mode and a length
is run twice, and the first of these runs is a warm-up.
"""
import json
import os
import sys
import time

import numpy
import openvino
import openvino_genai


def make_pipeline(model, threads, precision, mode):
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = 2  # GB
    scheduler.max_num_batched_tokens = 65536
    scheduler.enable_prefix_caching = False
    if mode == "xattention":
        scheduler.use_sparse_attention = True
        sparse = openvino_genai.SparseAttentionMode.XATTENTION
        scheduler.sparse_attention_config = openvino_genai.SparseAttentionConfig(mode=sparse)
    options = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": precision}
    if model.endswith(".gguf"):
        options["enable_save_ov_model"] = True
    return openvino_genai.LLMPipeline(model, "CPU", scheduler_config=scheduler, **options)


def main():
    model, threads, precision = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    # OpenVINO prints notes to standard output, which belongs to the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"version": openvino_genai.__version__.split("-")[0]}), file=answers, flush=True)
    pipelines, warm = {}, set()
    for line in sys.stdin:
        request = json.loads(line)
        mode, ids, new_tokens = request["mode"], request["ids"], request["new_tokens"]
        if mode not in pipelines:
            pipelines[mode] = make_pipeline(model, threads, precision, mode)
        prompt = openvino.Tensor(numpy.array([ids], dtype=numpy.int64))
        for _ in range(1 if (mode, len(ids)) in warm else 2):
            began = time.perf_counter()
            result = pipelines[mode].generate(prompt, max_new_tokens=new_tokens, ignore_eos=True, do_sample=False)
            seconds = time.perf_counter() - began
        warm.add((mode, len(ids)))
        answer = {"seconds": seconds}
        if new_tokens > 1:
            answer = {"seconds": result.perf_metrics.get_ttft().mean / 1e3,
                      "tokens_per_s": 1e3 / result.perf_metrics.get_tpot().mean}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
