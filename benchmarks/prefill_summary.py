"""What records of `scripts/bench_prefill.sh` come to: ratios, and the line through times over density.

    python3 prefill_summary.py runs/prefill/speed.jsonl [--part density]
"""
import argparse
import collections
import json
import sys


def fit(points):
    """Slope, intercept and R^2 of a line through (x, y)."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    slope = xy / xx
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return slope, mean_y - slope * mean_x, 1 - rest / sum((y - mean_y) ** 2 for _, y in points)


def density(rows):
    print("random masks: time of attention over that of dense attention; density + 0.10 is the limit, 1.05 at 1")
    by_tokens = collections.defaultdict(list)
    for row in rows:
        by_tokens[row["tokens"]].append((row["density"], row["attend_ms"] / row["dense_ms"]))
    for tokens, points in by_tokens.items():
        slope, intercept, r2 = fit(points)
        ratios = "  ".join(f"{x:.3f}: {y:.3f}" for x, y in points)
        held = all(y <= (x + 0.10 if x < 1 else 1.05) for x, y in points)
        print(f"{tokens:>7} tokens  {ratios}  line {intercept:.3f} + {slope:.3f} density, R2 {r2:.4f}  "
              f"{'held' if held else 'NOT held'}")


def selection(rows):
    print("choosing: share of dense attention's time, and memory at its peak")
    for row in rows:
        print(f"{row['selector']:<14} {row['tokens']:>7} tokens  {100 * row['select_ms'] / row['dense_ms']:6.2f} %  "
              f"{row['extra_bytes'] >> 10} KiB")


def structured(rows):
    print("end to end")
    for row in rows:
        sdpa = f"{row['sdpa_ms'] / (row['select_ms'] + row['attend_ms']):.2f}" if row["sdpa_ms"] else "-"
        print(f"{row['mix']:<13} {row['selector']:<9} {row['tokens']:>7} tokens  density {row['density']:.3f} (oracle "
              f"{row['oracle_density']:.3f})  recall {row['recall']:.4f} (p5 {row['recall_p5']:.4f})  "
              f"{row['speedup']:.2f} x dense  {sdpa} x SDPA")


def auto(rows):
    print("auto: time above dense attention's; 3 % or 0.03 ms is the limit")
    for row in rows:
        more = row["select_ms"] + row["attend_ms"] - row["dense_ms"]
        held = more <= max(0.03 * row["dense_ms"], 0.03)
        print(f"{row['mix']:<13} {row['tokens']:>7} tokens  density {row['density']:.3f}  {more:>+10.3f} ms  "
              f"{100 * more / row['dense_ms']:>+7.2f} %  {'held' if held else 'NOT held'}")


PARTS = {"density": density, "selection": selection, "structured": structured, "auto": auto}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", help="JSON lines")
    parser.add_argument("--part", choices=PARTS, help="one part alone")
    args = parser.parse_args()
    with open(args.file) as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    for name, show in PARTS.items():
        chosen = [row for row in rows if row.get("part") == name]
        if not chosen or args.part not in (None, name):
            continue
        show(chosen)
        print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
