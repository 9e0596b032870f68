#!/usr/bin/env python3
"""Measures how long prism takes to read the header of a safetensors file, which must be linear in the number of
tensors.

    benchmarks/safetensors_header.py build/release/bin/prism [--rounds 3]

Writes files of 10, 20, 40 and 80 thousand tensors and one whose header is 98 MB (the format allows 100). Times `prism
attend` on each, whose own work is tiny, and subtracts the time for a file that holds only q, k and v. Exit status 1 if
the time grows by more than 2 x 1.3 when the number of tensors doubles, or the largest file takes over 5 s.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

LARGEST_BYTES = 98_000_000


def write(path, tensors=0, header_bytes=0):
    """Writes a file with q, k and v to attend over and many empty tensors. Returns the number of empty tensors."""
    parts = []
    for i, name in enumerate("qkv"):
        parts.append(f'"{name}":{{"dtype":"F32","shape":[1,1,2,2],"data_offsets":[{16 * i},{16 * i + 16}]}}')
    size = sum(map(len, parts))
    while len(parts) - 3 < tensors or size < header_bytes:
        parts.append(f'"model.layers.{len(parts):07}.weight":{{"dtype":"U8","shape":[0],"data_offsets":[48,48]}}')
        size += len(parts[-1]) + 1
    header = ("{" + ",".join(parts) + "}").encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<12f", *range(12)))
    return len(parts) - 3


def seconds(program, path, rounds):
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run([program, "attend", str(path), "--threads", "1"], check=True, capture_output=True)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the prism program")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each file (default 3)")
    words = parser.parse_args()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    print(f"{datetime.date.today()}, {cpu}, {words.rounds} rounds")
    print(f"{'tensors':>10} {'header MB':>10} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "q.safetensors"
        write(path)
        start = seconds(words.program, path, 3 * words.rounds)
        found = []
        for tensors, size in ((10_000, 0), (20_000, 0), (40_000, 0), (80_000, 0), (0, LARGEST_BYTES)):
            count = write(path, tensors, size)
            found.append(seconds(words.program, path, words.rounds) - start)
            print(f"{count:10} {path.stat().st_size / 1e6:10.1f} {found[-1]:8.3f}", flush=True)
    doubled = [later / earlier for earlier, later in zip(found[:3], found[1:4])]
    print("twice the tensors take " + ", ".join(f"{ratio:.2f}" for ratio in doubled) + " times as long")
    return 0 if max(doubled) <= 2 * 1.3 and found[-1] < 5 else 1


if __name__ == "__main__":
    sys.exit(main())
