#!/usr/bin/env python3
"""Checks that a later build of prism is as fast as an earlier one.

    benchmarks/versions.py BEFORE/bin/prism AFTER/bin/prism [--rounds 10] [--only training|attention|prefill]

Runs `prism bench` training, attention and prefill with both builds alternately. Prints, for each case, the medians
over the rounds and their ratio before / after; above 1 the later build is faster. Exit status 1 if a ratio is below
0.97. Nothing else may run on the machine meanwhile.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

COMMANDS = (
    ("training", "tiny", "small", "--peer", "none", "--steps", "4"),
    ("attention",),
    ("prefill",),
)
LEAST_RATIO = 0.97


def measured(program, words):
    """Runs a benchmark once and returns {case: milliseconds}."""
    out = subprocess.run([program, "bench", *words, "--json"], check=True, capture_output=True, text=True).stdout
    figures = {}
    for line in out.splitlines():
        row = json.loads(line)
        if row["bench"] == "training":
            figures[f"training {row['case']}"] = row["prism_ms"]
        elif row["bench"] == "attention":
            figures[f"attention {row['tokens']} tokens, head width {row['head_dim']}"] = row["prism_ms"]
        elif row["bench"] == "prefill":
            name = f"prefill {row['tokens']} tokens, {row['selector']}"
            figures[name] = row["select_ms"] + row["attend_ms"]
            figures[f"prefill {row['tokens']} tokens, dense"] = row["dense_ms"]
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the program of the earlier version")
    parser.add_argument("after", help="the program of the later version")
    parser.add_argument("--rounds", type=int, default=10, help="runs of each build, alternating (default 10)")
    parser.add_argument("--only", choices=[command[0] for command in COMMANDS], help="run only this benchmark")
    words = parser.parse_args()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    print(f"{datetime.date.today()}, {cpu}, {len(os.sched_getaffinity(0))} cores, {words.rounds} rounds")
    print(f"{'case':44} {'before ms':>10} {'after ms':>10} {'ratio':>6}  {'range of after':>17}")
    slower = False
    for command in COMMANDS:
        if words.only not in (None, command[0]):
            continue
        before, after = {}, {}
        for _ in range(words.rounds):
            for program, times in ((words.before, before), (words.after, after)):
                for case, milliseconds in measured(program, command).items():
                    times.setdefault(case, []).append(milliseconds)
        for case in before:
            medians = statistics.median(before[case]), statistics.median(after[case])
            ratio = medians[0] / medians[1]
            slower |= ratio < LEAST_RATIO
            print(f"{case:44} {medians[0]:10.2f} {medians[1]:10.2f} {ratio:6.3f}  "
                  f"{min(after[case]):8.2f}-{max(after[case]):8.2f}", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
