#!/usr/bin/env bash
# The first comparison of head schedules: 8 layers, d_model 256, 8x8 against 2x2,4x2,8x4, 4M tokens of English novels, three seeds.
#
#   scripts/compare_schedules.sh            every run that is not yet recorded, then docs/results/head-schedules.md
#   scripts/compare_schedules.sh prism 2    one run: schedule and seed
#
# Texts come from PRISM_DATA (../shared/data by default). A run takes about 20 minutes on two cores; one that was stopped goes on
# where it was. What a finished run recorded is copied to docs/results/head-schedules/ and not run again. Runs of the two schedules
# alternate, so that a machine that slows down slows both.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/compare_schedules.sh; exit 0 ;;
esac
if [ -z "${PRISM_DATA:-}" ] && [ -d ../shared/data ]; then PRISM_DATA=$(cd ../shared/data && pwd); fi
novels=${PRISM_DATA:-}/gutenberg_novels
[ -d "$novels" ] ||
  fail compare_schedules "expected the folder of large data with gutenberg_novels; found ${PRISM_DATA:-none}; name it in PRISM_DATA."

scripts/setup.sh
prism=build/release/bin/prism
runs=runs/novels
records=docs/results/head-schedules
mkdir -p $runs $records
[ -f $runs/tokenizer/tokenizer.json ] || $prism tokenizer train "$novels/train.txt.xz" --vocab-size 8192 --out $runs/tokenizer
[ -f $runs/data/data.json ] || $prism tokenize "$novels/train.txt.xz" --valid "$novels/valid.txt.xz" --separator '\n\n\n\n' \
  --tokenizer $runs/tokenizer --out $runs/data

train() {  # SCHEDULE SEED
  local run=$runs/$1-seed$2 record=$records/$1-seed$2
  if grep -qs '"kind":"end"' "$record/records.jsonl"; then
    echo "$1, seed $2: recorded"
    return
  fi
  if [ -f "$run/recipe.json" ]; then
    $prism train --out "$run" --resume
  else
    $prism train --recipe "configs/head_schedules/novels_$1.json" --seed "$2" --out "$run"
  fi
  mkdir -p "$record"
  cp "$run/recipe.json" "$run/records.jsonl" "$record/"
}

if [ $# -gt 0 ]; then
  train "$1" "${2:-1}"
else
  for seed in 1 2 3; do
    train uniform $seed
    train prism $seed
  done
fi
finished=()
for schedule in uniform prism; do
  for record in "$records/$schedule"-seed*; do
    if grep -qs '"kind":"end"' "$record/records.jsonl"; then finished+=("$record"); fi
  done
done
$prism report "${finished[@]}" --title "Head schedules on English novels, 4M tokens" --out $runs/report.html --markdown $runs/report.md
{ cat $runs/report.md; echo; cat $records/notes.md; } > $records.md
