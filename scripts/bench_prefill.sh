#!/usr/bin/env bash
# Times dense and block-sparse attention over prompts and prints a summary.
#
#   scripts/bench_prefill.sh [--out FILE.jsonl] [PART...]      all parts: hours on two idle cores
#
#   density      random masks against dense attention, 8,192 to 32,768 tokens
#   selection    cost of selecting the blocks, 8,192 and 65,536 tokens
#   structured   131,072 tokens: heads with sinks, slashes and needles against dense and LibTorch's attention; noise
#   auto         the cost model's choice against dense attention, 64 to 65,536 tokens
#   lengths      each selector's time and memory, and the time of attention, over 4,096 to 131,072 tokens
#
# Writes records to FILE.jsonl, runs/prefill/speed.jsonl by default; new records of a part replace its old ones. If a
# part fails, what it measured until then stays in FILE.jsonl.PART. Times the prism that PRISM_PROGRAM names; if it is
# unset, scripts/setup.sh builds one.
folder=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

parts=(density selection structured auto lengths)
out=runs/prefill/speed.jsonl
asked=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' scripts/bench_prefill.sh; exit 0 ;;
    --out)
      [ $# -gt 1 ] || { echo "[bench_prefill] expected a file after --out; found none; give its name." >&2; exit 2; }
      case "$2" in /*) out=$2 ;; *) out=$folder/$2 ;; esac
      shift
      ;;
    *)
      [[ " ${parts[*]} " == *" $1 "* ]] ||
        { echo "[bench_prefill] expected one of: ${parts[*]}; found \"$1\"; see bench_prefill.sh --help." >&2; exit 2; }
      asked+=("$1")
      ;;
  esac
  shift
done
[ ${#asked[@]} -gt 0 ] || asked=("${parts[@]}")
find_program bench_prefill
mixes=benchmarks/mixes

bench() { "$prism" bench prefill --json "$@"; }

part_density() {
  bench --tokens 8192 16384 32768 --recall-rows 0 --sdpa-tokens 0 --rounds 7 \
    --selector random:share=0.05 random:share=0.2 random:share=0.35 random:share=0.5 random:share=0.75 random:share=1
}
# Spectral selection as in the paper, where a row always keeps only its own block.
part_selection() {
  bench --tokens 8192 --mix $mixes/unstructured.json --sdpa-tokens 0 \
    --selector spectral:recent=1,last_dense=0 mean_pooling xattention flash_prefill
  bench --tokens 65536 --mix $mixes/unstructured.json --sdpa-tokens 0 --selector spectral:recent=1,last_dense=0
}
part_structured() {
  bench --tokens 131072 --mix $mixes/structured.json --sdpa-tokens 131072 \
    --selector spectral:p=0.67,recent=1,last_dense=0 spectral:recent=1,last_dense=0 auto
  bench --tokens 131072 --mix $mixes/unstructured.json --sdpa-tokens 0 --recall-rows 0 --selector auto
}
part_auto() {
  for mix in structured unstructured; do
    bench --tokens 64 128 256 512 1024 2048 4096 8192 16384 32768 65536 --mix $mixes/$mix.json --sdpa-tokens 0 \
      --recall-rows 0 --selector auto
  done
}
part_lengths() {
  local selectors=("spectral:recent=1,last_dense=0" mean_pooling xattention flash_prefill flex_prefill vertical_slash sink_window)
  bench --tokens 4096 8192 16384 32768 --mix $mixes/structured.json --recall-rows 0 --sdpa-tokens 32768 --rounds 3 \
    --selector "${selectors[@]}"
  bench --tokens 65536 131072 --mix $mixes/structured.json --recall-rows 0 --sdpa-tokens 0 --rounds 1 --selector "${selectors[@]}"
}

held=yes
{ [ ! -d "$out" ] && mkdir -p "$(dirname "$out")" && touch "$out"; } 2> /dev/null ||
  { echo "[bench_prefill] expected a file to write after --out; found $out, which cannot be written; name another." >&2; exit 2; }
for part in "${asked[@]}"; do
  new=$out.$part
  "part_$part" | sed "s/^{/{\"part\":\"$part\",/" > "$new"
  grep -v "^{\"part\":\"$part\"," "$out" >> "$new" || true
  mv "$new" "$out"
  python3 benchmarks/prefill_summary.py "$out" --part "$part" || held=no
done
[ "$held" = yes ]
