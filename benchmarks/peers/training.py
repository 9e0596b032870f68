"""Compares the training speed of prism with PyTorch in eager mode and, with --compile, compiled.

    python training.py --prism build/release/bin/prism --python PEER_PYTHON --cases tiny small --repeats 3

Each run is its own process; prism and the peers alternate. Prints one line per case and peer: medians of tokens/s,
their ratio (prism / peer), and peak memory of both. The peer is train_gpt.py, for the case ladder train_ladder.py, run
by the Python that --python names. Both sides run in --dtype on --threads threads. The ladder's vocabulary is that of
runs/ladder/data (scripts/study.sh ladder_small).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# prism's argument and the peer's script for cases where they are not the case's name and train_gpt.py.
OURS = {"ladder": "configs/ladder/four_blocks_norm.json", "mirrored": "benchmarks/mirrored_5layers.json"}
THEIRS = {"ladder": "train_ladder.py"}


def run(command, threads):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        sys.exit(f"[check_peers] expected {command[0]} to run; found: {result.stderr.strip().splitlines()[-1:]}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def words_of_prism(program, case, steps, threads, dtype):
    return [program, "bench", "training", OURS.get(case, case), "--peer", "none", "--dtypes", dtype, "--json", "--steps",
            str(steps - 2), "--threads", str(threads)]


def words_of_peer(python, file, case, steps, threads, dtype):
    return [python, str(HERE / file), "--case", case, "--steps", str(steps), "--threads", str(threads),
            *(["--bf16"] if dtype == "bfloat16" else [])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prism", required=True, help="the prism program")
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--cases", nargs="+", default=["tiny", "small"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="at least 3; the first two are not counted")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16", help="of matrix products")
    parser.add_argument("--compile", action="store_true", help="also run the compiled peer")
    args = parser.parse_args()

    modes = {"eager": []} | ({"compiled": ["--compile"]} if args.compile else {})
    print(f"{'case':<14} {'peer':<9} {'prism tok/s':>11} {'peer tok/s':>11} {'ratio':>6} {'prism MiB':>10} {'peer MiB':>9}")
    for case in args.cases:
        ours_words = words_of_prism(args.prism, case, args.steps, args.threads, args.dtype)
        theirs_words = words_of_peer(args.python, THEIRS.get(case, "train_gpt.py"), case, args.steps, args.threads, args.dtype)
        prism = []
        peers = {mode: [] for mode in modes}
        for _ in range(args.repeats):
            prism.append(run(ours_words, args.threads))
            for mode, flags in modes.items():
                peers[mode].append(run([*theirs_words, *flags], args.threads))
        ours = statistics.median(r["tokens_per_s"] for r in prism)
        for mode, results in peers.items():
            theirs = statistics.median(r["tokens_per_s"] for r in results)
            print(f"{case:<14} {mode:<9} {ours:>11.1f} {theirs:>11.1f} {ours / theirs:>6.2f} "
                  f"{max(r['peak_memory_bytes'] for r in prism) >> 20:>10} {min(r['peak_rss_mb'] for r in results):>9}", flush=True)


if __name__ == "__main__":
    main()
