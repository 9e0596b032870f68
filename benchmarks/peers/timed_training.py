"""Times training steps of a PyTorch model, one case per process, so that runs of two programs can alternate.

    time_training({"tiny": lambda: Case(model, optimizer, vocab=8192, shape=(16, 256))})

Prints one JSON line: case, params, tokens_per_s (median over the steps after the first two), first_step_s (includes
compilation), peak_rss_mb.
"""
import argparse
import json
import resource
import statistics
import time
from dataclasses import dataclass

import torch


@dataclass
class Case:
    model: torch.nn.Module  # (tokens, labels) -> loss
    optimizer: torch.optim.Optimizer
    vocab: int
    shape: tuple  # (sequences, tokens per sequence)
    clip: float = 0  # largest gradient norm; 0: no clipping
    classes: int = 0  # number of classes, one label a sequence; 0: the labels are tokens


def seconds_of_step(case, step, x, y, bf16):
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        loss = step(x, y)
    loss.backward()
    if case.clip:
        torch.nn.utils.clip_grad_norm_(case.model.parameters(), case.clip)
    case.optimizer.step()
    case.optimizer.zero_grad()
    return time.perf_counter() - start


def time_training(cases):
    """Times the case that --case names. `cases` maps names to functions that make a Case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=cases, default=next(iter(cases)))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    case = cases[args.case]()
    step = torch.compile(case.model) if args.compile else case.model
    x = torch.randint(0, case.vocab, case.shape)
    y = torch.randint(0, case.classes, case.shape[:1]) if case.classes else torch.randint(0, case.vocab, case.shape)
    seconds = [seconds_of_step(case, step, x, y, args.bf16) for _ in range(args.steps)]
    print(json.dumps({
        "case": args.case, "compile": args.compile, "bf16": args.bf16,
        "params": sum(p.numel() for p in case.model.parameters()),
        "tokens_per_s": round(x.numel() / statistics.median(seconds[2:]), 1), "first_step_s": round(seconds[0], 1),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))
