#!/usr/bin/env bash
# Measures, on the beginnings of five novels, what averaging over blocks of 128 tokens leaves of a model's queries and
# keys, by rotary pair and zone, and how far back and how evenly its layers attend. Records and figures:
# docs/results/spectrum/.
#
#   scripts/study_spectrum.sh MODEL NAME   4,096 tokens of each novel; minutes for 135M parameters
#
# MODEL is anything that prism analyse reads; NAME names its records. Texts come from PRISM_DATA (../shared/data by
# default). PRISM_PROGRAM names a built prism.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  -h | --help) sed -n '2,10s/^# \{0,1\}//p' scripts/study_spectrum.sh; exit 0 ;;
esac
[[ $# == 2 && $2 =~ ^[a-z0-9_-]+$ ]] ||
  { echo "[study_spectrum] expected MODEL and a NAME in lower case; found \"$*\"; see study_spectrum.sh --help." >&2; exit 2; }
find_program study_spectrum
runs=runs/spectrum records=docs/results/spectrum
mkdir -p $runs/models "$records/$2"
model=$runs/models/$2  # the path that records hold
[[ $1 != *.gguf ]] || model=$model.gguf
ln -sfn "$(realpath "$1")" "$model"
cut_novels 60000 $runs/novels
for novel in "$runs"/novels/*.txt; do
  name=$(basename "$novel" .txt)
  echo "$name"
  mkdir -p "$runs/$name"
  "$prism" tokenize "$novel" --valid-share 0 --tokenizer "$model" --out "$runs/$name/data" --force > /dev/null
  "$prism" analyse spectrum "$model" "$novel" --tokens 4096 --json --quiet > "$runs/$name/spectrum.jsonl"
  "$prism" analyse entropy "$model" "$novel" --tokens 4096 --json --quiet > "$runs/$name/entropy.jsonl"
  "$prism" analyse attention-distance "$model" --data "$runs/$name/data" --split train --sequences 1 --tokens 4096 --json --quiet \
    > "$runs/$name/distance.jsonl"
done
shown=Dickens_Bleak_1853
"$prism" analyse spectrum "$model" "$runs/novels/$shown.txt" --tokens 4096 --quiet --layer 15 --head 0 \
  --figures "$records/$2" > "$records/$2.txt"
"$prism" report --analysis "$runs/$shown/distance.jsonl" "$runs/$shown/entropy.jsonl" --out "$runs/report.html" \
  --figures "$records/$2" > /dev/null

# Means over novels and their deviations (_sd). By pair and zone, in percent: the root mean square over heads, layers and
# blocks of averaged vectors over that of single ones (q, k), and what the rotation alone would leave of the latter
# (q_turned, k_turned): the root mean square of each pair's times its factor. By third of the layers: distance in tokens,
# entropy in nats.
python3 - $runs/*_*/ > "$records/$2.jsonl" <<'END'
import json, math, statistics, sys

def rms(values):
    return math.sqrt(statistics.fmean(value * value for value in values))

def read(name):
    """The rows of a file of each novel."""
    return [[json.loads(line) for line in open(folder + name, encoding="utf-8")] for folder in sys.argv[1:]]

heads = read("spectrum.jsonl")
first = heads[0][0]
parts = [(zone["zone"], "zones", i) for i, zone in enumerate(first["zones"])]
parts += [(f"pair {pair['pair']}", "pairs", i) for i, pair in enumerate(first["pairs"])]
begin = 0
for name, kind, i in parts:
    row, pairs = {"method": name}, [i]
    if kind == "zones":
        pairs = range(len(first["pairs"])) if name == "full" else range(begin, begin + first["zones"][i]["pairs"])
        begin += len(pairs)
        row["pairs"] = len(pairs)
    for side in ("q", "k"):
        def shares(novel):
            """What is left of each pair and head together, and what the rotation would leave."""
            single = rms(head["pairs"][j][side] for head in novel for j in pairs)
            pooled = rms(head["pairs"][j][side + "_pooled"] for head in novel for j in pairs)
            turned = rms(head["pairs"][j][side] * head["pairs"][j]["gain"] for head in novel for j in pairs)
            return 100 * pooled / single, 100 * turned / single
        left, turned = zip(*map(shares, heads))
        row |= {side: statistics.fmean(left), side + "_sd": statistics.stdev(left), side + "_turned": statistics.fmean(turned)}
        if kind == "zones":
            each = [100 * head[kind][i][side + "_pooled"] / head[kind][i][side] for novel in heads for head in novel]
            row |= {side + "_least": min(each), side + "_most": max(each)}
    print(json.dumps(row))

distances = [[layer["distance"] for layer in novel[0]["layers"]] for novel in read("distance.jsonl")]
entropies = [[layer["entropy"] for layer in novel] for novel in read("entropy.jsonl")]
count = len(distances[0])
for name, begin, end in zip(("first", "middle", "last"), (0, count // 3, count - count // 3), (count // 3, count - count // 3, count)):
    row = {"method": f"{name} third", "begin": begin, "end": end}
    for key, novels in (("distance", distances), ("entropy", entropies)):
        means = [statistics.fmean(novel[begin:end]) for novel in novels]
        row |= {key: statistics.fmean(means), key + "_sd": statistics.stdev(means)}
    print(json.dumps(row))
END
