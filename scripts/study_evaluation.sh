#!/usr/bin/env bash
# Evaluates a model on zero-shot tasks, or on long texts densely and under selectors, and keeps the figures in
# docs/results/zero-shot/ and docs/results/long-context/.
#
#   scripts/study_evaluation.sh zero-shot MODEL NAME      nine tasks: the first 1,000 items of each, 100 of each part of BLiMP,
#                                                         20 documents of WikiText-2; an hour for 135M parameters on two cores
#   scripts/study_evaluation.sh long-context MODEL NAME [LENGTH...]
#                                                         RULER, needles and five novels at 2048, 4096 and 8192 tokens, and
#                                                         needles and novels at 16384 with YaRN, or at the lengths given: 5, 3,
#                                                         1 and 1 prompts of each task; for 135M parameters about an hour a
#                                                         length on two cores
#
# MODEL is anything that prism eval reads; NAME names its figures. Data come from PRISM_DATA (../shared/data by default).
# The answers to each item are in runs/evaluation; what is there is not asked again. PRISM_PROGRAM names a built prism.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { echo "[study_evaluation] $1; see study_evaluation.sh --help." >&2; exit 2; }
case "${1:-}" in
  -h | --help) sed -n '2,14s/^# \{0,1\}//p' scripts/study_evaluation.sh; exit 0 ;;
  zero-shot | long-context) ;;
  *) usage "expected zero-shot or long-context; found \"${1:-}\"" ;;
esac
[[ $# -ge 3 && $3 =~ ^[a-z0-9_-]+$ ]] || usage "expected MODEL and a NAME in lower case; found \"${*:2}\""
declare -A samples=([2048]=5 [4096]=3 [8192]=1 [16384]=1)
lengths=("${@:4}")
if [ "$1" == zero-shot ]; then
  [ $# == 3 ] || usage "expected no length for zero-shot; found \"${*:4}\""
elif [ $# == 3 ]; then
  lengths=(2048 4096 8192 16384)
fi
for length in "${lengths[@]}"; do
  [ -n "${samples[$length]:-}" ] || usage "expected a length of 2048, 4096, 8192 or 16384; found \"$length\""
done
study=$1 name=$3 runs=runs/evaluation
PRISM_DATA=${PRISM_DATA:-../shared/data}
[ -d "$PRISM_DATA/zero_shot" ] ||
  fail study_evaluation "expected the folder of large data with zero_shot; found $PRISM_DATA; set PRISM_DATA to it."
find_program study_evaluation
mkdir -p $runs/models "docs/results/$study/$name"
model=$runs/models/$name  # the path that figures hold
[[ $2 != *.gguf ]] || model=$model.gguf
ln -sfn "$(realpath "$2")" "$model"

ask() {  # NAME OPTION...: keeps the figures under this name
  local out=$runs/$name/$study/$1
  "$prism" eval "$model" --out "$out" "${@:2}"
  cp "$out/results_prism.json" "docs/results/$study/$name/$1.json"
  [ "$study" == zero-shot ] || keep_scores "$out" > "docs/results/$study/$name/$1.jsonl"
}

keep_scores() {  # FOLDER: a line for each item with its scores; without its prompt, which is long
  python3 - "$1" <<'END'
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("samples_*_prism.jsonl")):
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        print(json.dumps({"task": path.stem.removeprefix("samples_").removesuffix("_prism"), "doc": row["doc"]}
                         | {name: row[name] for name in row["metrics"]}))
END
}

ask_zero_shot() {
  local blimp=$runs/blimp
  if [ ! -d $blimp ]; then
    mkdir -p $blimp.tmp
    tar -xJf "$PRISM_DATA/zero_shot/blimp/blimp.tar.xz" -C $blimp.tmp && mv $blimp.tmp $blimp
  fi
  ask questions --data "$PRISM_DATA/zero_shot" --limit 1000 \
    --task piqa winogrande arc_challenge arc_easy lambada_openai hellaswag boolq
  ask blimp --data $blimp --limit 100 --task blimp
  ask wikitext --data "$PRISM_DATA" --limit 20 --task wikitext
}

ask_long_context() {
  local length method words tasks
  cut_novels 60000 $runs/novels
  for length in "${lengths[@]}"; do
    tasks=(ruler needle_grid)
    [ "$length" -le 8192 ] || tasks=(needle_grid)
    for method in dense spectral mean_pooling xattention sink_window; do
      words=(--prefill "$method")
      [ "$method" != spectral ] || words+=(--prefill-set recent=1 --prefill-set last_dense=0)  # as in the records
      [ "$method" == dense ] || words+=(--prefill-recall 2)
      [ "$length" -le 8192 ] || words+=(--rope-scaling yarn)
      ask "${method}_${length}" --context "$length" "${words[@]}" \
        --data "$PRISM_DATA/long_context" --task "${tasks[@]}" --lengths "$length" --samples "${samples[$length]}"
      ask "${method}_${length}_books" --context "$length" "${words[@]}" --data $runs/novels --task books
    done
  done
}

if [ "$study" == zero-shot ]; then ask_zero_shot; else ask_long_context; fi
