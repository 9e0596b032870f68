#!/usr/bin/env python3
"""Measures how fast prism trains while other processes keep the cores busy, and whether an idle machine loses speed.

    benchmarks/busy_cores.py build/release/bin/prism [--rounds 5]

Runs `prism bench training tiny` in turn in four ways: as prism is, without OpenMP spinning on 1 thread, without
spinning on all threads, and with OpenMP's default spinning. First one busy process per core runs beside it; then prism
runs alone, as it is and with OpenMP's default. Prints medians of tokens/s and their ratios. Exit status 1 if prism
as it is reaches less than 0.9 of the faster way without spinning (busy cores), or less than 0.99 of OpenMP's default
(alone).
"""
import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys

AS_IT_IS, ONE, ALL, DEFAULT = "as it is", "1 thread, no spinning", "all threads, no spinning", "all threads, OpenMP's default"
ARMS = {AS_IT_IS: ({}, 0), ONE: ({"GOMP_SPINCOUNT": "0"}, 1), ALL: ({"GOMP_SPINCOUNT": "0"}, 0),
        DEFAULT: ({"GOMP_SPINCOUNT": "300000"}, 0)}  # libgomp's default


@contextlib.contextmanager
def busy_processes(count):
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def tokens_per_s(program, arm):
    variables, threads = ARMS[arm]
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")}
    environment.update(variables)
    out = subprocess.run([program, "bench", "training", "tiny", "--peer", "none", "--steps", "4", "--json",
                          "--threads", str(threads)], check=True, capture_output=True, text=True, env=environment).stdout
    return json.loads(out.splitlines()[0])["tokens_per_s"]


def medians(program, arms, rounds):
    found = {arm: [] for arm in arms}
    for _ in range(rounds):
        for arm in arms:
            found[arm].append(tokens_per_s(program, arm))
    for arm in arms:
        print(f"  {arm:32} {statistics.median(found[arm]):8.0f} tokens/s  {min(found[arm]):.0f}-{max(found[arm]):.0f}")
    return {arm: statistics.median(values) for arm, values in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the prism program")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each arm (default 5)")
    words = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    print(f"{datetime.date.today()}, {cpu}, {cores} cores, {words.rounds} rounds")
    print(f"{cores} other processes keep the cores busy:")
    with busy_processes(cores):
        busy = medians(words.program, (AS_IT_IS, ONE, ALL, DEFAULT), words.rounds)
    busy_ratio = busy[AS_IT_IS] / max(busy[ONE], busy[ALL])
    print(f"  ratio to the best without spinning: {busy_ratio:.3f}; to OpenMP's default: {busy[AS_IT_IS] / busy[DEFAULT]:.2f}")
    print("alone:")
    idle = medians(words.program, (AS_IT_IS, DEFAULT), 2 * words.rounds)
    idle_ratio = idle[AS_IT_IS] / idle[DEFAULT]
    print(f"  ratio to OpenMP's default: {idle_ratio:.3f}")
    return 0 if busy_ratio >= 0.9 and idle_ratio >= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
