"""Summarises the records of scripts/bench_prefill.sh: ratios of times, and a line fitted to time over density. Exit
status 1 if a limit is exceeded.

    python3 prefill_summary.py runs/prefill/speed.jsonl [--part density]
"""
import argparse
import collections
import json
import sys


def fit(points):
    """Slope, intercept and R^2 of the least-squares line through (x, y)."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    if count < 3 or xx == 0:
        return 0, mean_y, float("nan")
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    slope = xy / xx
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return slope, mean_y - slope * mean_x, 1 - rest / sum((y - mean_y) ** 2 for _, y in points)


def verdict(held):
    return "held" if held else "NOT held"


def density(rows):
    print("random masks: time of attention / time of dense attention; limit: density + 0.10 "
          "(1.05 at density 1), R2 above 0.98")
    by_tokens = collections.defaultdict(list)
    for row in rows:
        by_tokens[row["tokens"]].append((row["density"], row["attend_ms"] / row["dense_ms"]))
    held = []
    for tokens, points in by_tokens.items():
        slope, intercept, r2 = fit(points)
        ratios = "  ".join(f"{x:.3f}: {y:.3f}" for x, y in points)
        held.append(r2 > 0.98 and all(y <= (x + 0.10 if x < 1 else 1.05) for x, y in points))
        print(f"{tokens:>7} tokens  {ratios}  line {intercept:.3f} + {slope:.3f} density, R2 {r2:.4f}  {verdict(held[-1])}")
    return all(held)


def selection(rows):
    print("selection: share of dense attention's time, and peak memory; limit for spectral: 2 % at 8,192 and 0.5 % at "
          "65,536 tokens")
    held = []
    for row in rows:
        share = row["select_ms"] / row["dense_ms"]
        limit = {8192: 0.02, 65536: 0.005}.get(row["tokens"]) if row["selector"] == "spectral" else None
        if limit is not None:
            held.append(share <= limit)
        print(f"{row['selector']:<14} {row['tokens']:>7} tokens  {100 * share:6.2f} %  {row['extra_bytes'] >> 10} KiB"
              f"  {'' if limit is None else verdict(held[-1])}".rstrip())
    return all(held)


def structured(rows):
    print("end to end; goal for one selector on the structured mix: 4 x dense and 16 x SDPA at a recall of 0.95")
    held = []
    for row in rows:
        over_sdpa = row["sdpa_ms"] / (row["select_ms"] + row["attend_ms"])
        if row["mix"] == "structured":
            held.append(row["speedup"] >= 4 and over_sdpa >= 16 and row["recall"] >= 0.95)
        sdpa = f"{over_sdpa:.2f}" if row["sdpa_ms"] else "-"
        name = f"{row['selector']} {row['settings'].get('p', '')}".rstrip()
        print(f"{row['mix']:<13} {name:<13} {row['tokens']:>7} tokens  density {row['density']:.3f} (oracle "
              f"{row['oracle_density']:.3f})  recall {row['recall']:.4f} (p5 {row['recall_p5']:.4f})  "
              f"{row['speedup']:.2f} x dense  {sdpa} x SDPA  {verdict(held[-1]) if row['mix'] == 'structured' else ''}".rstrip())
    return any(held)


def auto(rows):
    print("auto: time minus that of dense attention; limit: 3 % or 0.03 ms")
    held = []
    for row in rows:
        more = row["select_ms"] + row["attend_ms"] - row["dense_ms"]
        held.append(more <= max(0.03 * row["dense_ms"], 0.03))
        print(f"{row['mix']:<13} {row['tokens']:>7} tokens  density {row['density']:.3f}  {more:>+10.3f} ms  "
              f"{100 * more / row['dense_ms']:>+7.2f} %  {verdict(held[-1])}")
    return all(held)


def lengths(rows):
    print("by length: choosing the blocks (ms, peak memory in MiB), attention over them, dense attention, LibTorch's (ms)")
    for row in sorted(rows, key=lambda row: (row["selector"], row["tokens"])):
        sdpa = f"{row['sdpa_ms']:.1f}" if row["sdpa_ms"] else "-"
        print(f"{row['selector']:<15} {row['tokens']:>7} tokens  density {row['density']:.3f}  choose {row['select_ms']:.2f} ms, "
              f"{row['extra_bytes'] / 2**20:.1f} MiB  attend {row['attend_ms']:.1f} ms  dense {row['dense_ms']:.1f} ms  "
              f"LibTorch {sdpa} ms")
    return True


PARTS = {"density": density, "selection": selection, "structured": structured, "auto": auto, "lengths": lengths}


NUMBERS = ("tokens", "density", "recall", "recall_p5", "oracle_density", "select_ms", "attend_ms", "dense_ms", "sdpa_ms",
           "speedup", "extra_bytes")


def read(path):
    """The timed rows of a file, each with the fields that the parts use."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = json.loads(line)
            if not isinstance(row, dict) or row.get("part") not in PARTS:
                raise ValueError(f"line {number} is of no part")
            wrong = [name for name in NUMBERS if not isinstance(row.get(name), (int, float))]
            if wrong or not isinstance(row.get("selector"), str) or not isinstance(row.get("settings"), dict) or "mix" not in row:
                raise ValueError(f"line {number} lacks {', '.join(wrong) or 'selector, settings or mix'}")
            if row["dense_ms"] <= 0 or row["attend_ms"] <= 0:
                raise ValueError(f"line {number} was not timed")
            rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", help="records of scripts/bench_prefill.sh, JSON lines")
    parser.add_argument("--part", choices=PARTS, help="summarise only this part")
    args = parser.parse_args()
    try:
        rows = read(args.file)
    except (OSError, ValueError) as error:
        print(f"[prefill_summary] expected the records of scripts/bench_prefill.sh in {args.file}; found: {error}; name another "
              "file.", file=sys.stderr)
        return 2
    held = True
    for name, show in PARTS.items():
        chosen = [row for row in rows if row["part"] == name]
        if not chosen or args.part not in (None, name):
            continue
        held = show(chosen) and held
        print(flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
