#!/usr/bin/env bash
# Measures the quality lost by sparse prefill, for every selector and for ablations of the spectral one: perplexity over
# density of a model trained here, and recall on synthetic heads. Records and figures: docs/results/prefill/.
#
#   scripts/study_prefill.sh                     measures what is not recorded yet; half an hour on two cores
#   scripts/study_prefill.sh --model MODEL NAME  the same perplexities of a pretrained model, under the name NAME, in
#                                                windows of 4096 and 8192 tokens and, with YaRN, 16384 and 32768; hours
#   scripts/study_prefill.sh --mixes             recall on the five mixes of heads that benchmarks/draw_mixes.py drew, of
#                                                8192 and 32768 tokens, and on two of 131072; hours
#   scripts/study_prefill.sh --answers [SEED...] answers of a model that is trained to look back, and its perplexity, for
#                                                every selector and other bands; seeds 1 to 3 by default, two
#                                                hours each on two cores
#   scripts/study_prefill.sh --results           only writes tables and figures of the records
#
# Texts come from PRISM_DATA (../shared/data by default). Trains or resumes the model runs/prefill/long (20 minutes).
# PRISM_DEVICE names a device for perplexities (cuda, say); their seconds are then that device's.
given=${2:+$(realpath -ms -- "$2")}  # a model's path, from the folder of the call; links stay, since records hold its name
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
shopt -s inherit_errexit  # a measurement that fails is not recorded

usage() { echo "[study_prefill] $1; see study_prefill.sh --help." >&2; exit 2; }
case "${1:-}" in
  -h | --help) sed -n '2,16s/^# \{0,1\}//p' scripts/study_prefill.sh; exit 0 ;;
  --model) [[ $# == 3 && $3 =~ ^[a-z0-9_]+$ ]] || usage "expected a model and a name in lower case after --model; found \"${*:2}\"" ;;
  --answers)
    for seed in "${@:2}"; do [[ $seed =~ ^[1-9][0-9]*$ ]] || usage "expected seeds, numbers from 1, after --answers; found \"$seed\""; done
    ;;
  --mixes | --results | "") [ $# -le 1 ] || usage "expected nothing after $1; found \"${*:2}\"" ;;
  *) usage "expected --model, --mixes, --answers, --results or nothing; found \"$1\"" ;;
esac

runs=runs/prefill
records=docs/results/prefill

# Selectors with the setting that controls how much they keep, in ascending order of density.
read -rd '' -a kept <<'EOF' || true
dense
oracle:p=0.5 oracle:p=0.7 oracle:p=0.8 oracle:p=0.9 oracle:p=0.95 oracle:p=0.99
spectral:recent=1,p=0.3 spectral:recent=1,p=0.5 spectral:recent=1,p=0.7 spectral:recent=1,p=0.8 spectral:recent=1,p=0.9
spectral:recent=1,p=0.95
mean_pooling:p=0.3 mean_pooling:p=0.5 mean_pooling:p=0.7 mean_pooling:p=0.8 mean_pooling:p=0.9 mean_pooling:p=0.95
spectral:p=0.3 spectral:p=0.5 spectral:p=0.7 spectral:p=0.9
mean_pooling:recent=4,p=0.3 mean_pooling:recent=4,p=0.5 mean_pooling:recent=4,p=0.7 mean_pooling:recent=4,p=0.9
random:share=0.05 random:share=0.15 random:share=0.3 random:share=0.5 random:share=0.7
sink_window:window=1 sink_window:window=2 sink_window:window=4 sink_window:window=8 sink_window:window=16
xattention:threshold=0.5 xattention:threshold=0.7 xattention:threshold=0.8 xattention:threshold=0.9 xattention:threshold=0.95
flash_prefill:alpha=0.5 flash_prefill:alpha=0.3 flash_prefill:alpha=0.18 flash_prefill:alpha=0.12
flex_prefill:gamma=0.5,min_budget=0 flex_prefill:gamma=0.7,min_budget=0 flex_prefill:gamma=0.9,min_budget=0
vertical_slash:vertical=50,slash=100 vertical_slash:vertical=100,slash=400 vertical_slash:vertical=200,slash=1000
EOF
# For the drawn mixes also amounts that make the densities at which they are compared lie between two.
read -rd '' -a mixes_kept <<EOF || true
${kept[@]}
oracle:p=0.3 oracle:p=0.999 spectral:recent=1,p=0.05 spectral:recent=1,p=0.15 spectral:recent=1,p=0.99 spectral:p=0.95
mean_pooling:p=0.05 mean_pooling:p=0.15 mean_pooling:p=0.99 mean_pooling:recent=4,p=0.95 random:share=0.02
xattention:threshold=0.2 xattention:threshold=0.3 xattention:threshold=0.99 flex_prefill:gamma=0.99,min_budget=0
EOF
read -rd '' -a longest_kept <<'EOF' || true
dense oracle:p=0.8 oracle:p=0.95 spectral:recent=1,p=0.5 spectral:recent=1,p=0.9 mean_pooling:p=0.5 mean_pooling:p=0.9
xattention:threshold=0.7 xattention:threshold=0.9
EOF
# Ablations of the spectral selector as in the paper, where a row always keeps only its own block (recent=1), each at several
# shares.
ablations=(calibration=causal_running calibration=all_blocks calibration=off bands=auto tail=padded block_size=32 block_size=64
  block_size=256)
shares=(0.3 0.5 0.7 0.9)

# The same for pretrained models, which take minutes a row.
read -rd '' -a model_kept <<'EOF' || true
dense
oracle:p=0.5 oracle:p=0.7 oracle:p=0.8 oracle:p=0.9 oracle:p=0.95
spectral:recent=1,p=0.5 spectral:recent=1,p=0.7 spectral:recent=1,p=0.8 spectral:recent=1,p=0.9 spectral:recent=1,p=0.95
mean_pooling:p=0.7 mean_pooling:p=0.8 mean_pooling:p=0.9 mean_pooling:p=0.95
spectral:p=0.7 spectral:p=0.9 spectral:p=0.95
mean_pooling:recent=4,p=0.7 mean_pooling:recent=4,p=0.9 mean_pooling:recent=4,p=0.95
random:share=0.05 random:share=0.15 random:share=0.3 random:share=0.5
sink_window:window=2 sink_window:window=4 sink_window:window=8 sink_window:window=16
xattention:threshold=0.5 xattention:threshold=0.7 xattention:threshold=0.8 xattention:threshold=0.9 xattention:threshold=0.95
flash_prefill:alpha=0.3 flash_prefill:alpha=0.12
flex_prefill:gamma=0.7,min_budget=0 flex_prefill:gamma=0.9,min_budget=0
vertical_slash:vertical=50,slash=100 vertical_slash:vertical=200,slash=1000
EOF
# Their ablations: the bands (by features of the head, d of them), of which one alone has nearly no share of the other;
# calibration; and blocks of 64, which always keep the same tokens as blocks of 128.
read -rd '' -a model_ablations <<'EOF' || true
recent=1,bands=auto recent=1,p_high=0.000001 recent=1,p_low=0.000001 recent=1,high_dims=d/4,low_dims=d/2
recent=1,calibration=all_blocks recent=1,calibration=off recent=8,block_size=64
EOF
model_shares=(0.9 0.95)
# XAttention as OpenVINO GenAI 2026.4 runs it unless told otherwise.
openvino=xattention:threshold=0.8,block_size=64,stride=8
# Methods of the study of answers. Fixed after seed 1 and before seeds 2 and 3 were trained: the primary measure is the share
# of right answers at 2049 to 3800 tokens with spectral:recent=1 minus that with mean pooling at the density 0.5, each on the
# line between the two amounts around it, paired by seed; the same at 0.35, and at 0.65 with four recent blocks, is secondary.
# last_dense was added when answers of seed 1 were known: it keeps all blocks for the queries at the end, where questions are.
# The last line was added when answers of all seeds were known: other draws of random blocks, and FlashPrefill without last_dense.
read -rd '' -a answers_kept <<EOF || true
dense sink_window:window=4
spectral:recent=1,p=0.7 mean_pooling:p=0.7 xattention:threshold=0.7 spectral:p=0.95 random:share=0.5
spectral:recent=1,p=0.95 mean_pooling:p=0.95 xattention:threshold=0.9 spectral:recent=1,p=0.3 mean_pooling:p=0.3
mean_pooling:recent=4,p=0.95 spectral:p=0.5 mean_pooling:recent=4,p=0.5 xattention:threshold=0.5 random:share=0.15
sink_window:window=16 flash_prefill:alpha=0.3 flex_prefill:gamma=0.9,min_budget=0 vertical_slash:vertical=100,slash=400
spectral:p=0.95,last_dense=2 spectral:recent=1,p=0.3,last_dense=2 mean_pooling:p=0.3,last_dense=2
random:share=0.7 oracle:p=0.5 oracle:p=0.8 oracle:p=0.95
random:share=0.5,seed=2 random:share=0.5,seed=3 flash_prefill:alpha=0.3,last_dense=0
EOF
# Of the same models the perplexity with other bands of 64 features, of which the defaults are high_dims=32, low_dims=48.
read -rd '' -a bands <<EOF || true
high_dims=0 p_low=0.000001 p_high=0.000001
high_dims=16 high_dims=24 high_dims=40 high_dims=48 high_dims=56 high_dims=64
low_dims=16 low_dims=24 low_dims=32 low_dims=40 low_dims=56 low_dims=64
EOF
# Methods for windows beyond the context that the model was trained with.
read -rd '' -a long_kept <<EOF || true
dense $openvino
spectral:p=0.9 spectral:p=0.95 spectral:recent=1,p=0.9 mean_pooling:recent=4,p=0.9 xattention:threshold=0.9 sink_window:window=8
EOF

list_ablations() {
  for change in "${ablations[@]}"; do
    for share in "${shares[@]}"; do echo "spectral:recent=1,p=$share,$change"; done
  done
  for share in "${shares[@]}"; do echo "spectral:recent=2,p=$share"; done
}

is_recorded() { grep -qF "{\"method\":\"$2\"," "$1" 2> /dev/null; }  # FILE METHOD

record() {  # FILE METHOD COMMAND...: appends the command's line to the file, with the method's name
  local file=$1 method=$2 line
  shift 2
  if is_recorded "$file" "$method"; then return; fi
  echo "$(basename "$file" .jsonl): $method"
  line=$("$@")
  line="{\"method\":\"$method\",${line#\{}"
  python3 -c 'import json, sys; json.load(sys.stdin)' <<< "$line"
  echo "$line" >> "$file"
}

with_settings() {  # METHOD: with what names of spectral leave out, that no row is dense
  if [[ $1 == spectral:* && $1 != *last_dense=* ]]; then echo "$1,last_dense=0"; else echo "$1"; fi
}

select_words() {  # METHOD: sets $words to the options of the selector
  local settings=() setting method
  method=$(with_settings "$1")
  words=(--prefill "${method%%:*}")
  if [[ $method == *:* ]]; then
    IFS=, read -ra settings <<< "${method#*:}"
    for setting in "${settings[@]}"; do words+=(--prefill-set "$setting"); done
  fi
}

measure_words() {  # METHOD: the same, and that of its recall
  select_words "$1"
  [ "$1" == dense ] || words+=(--prefill-recall 2)
}

record_perplexity() {  # FILE METHOD MODEL_AND_TEXT...
  local words
  measure_words "$2"
  record "$1" "$2" "$prism" eval "${@:3}" --json --device "${PRISM_DEVICE:-cpu}" "${words[@]}"
}

record_difference() {  # FILE METHOD MODEL_AND_TEXT...: from dense attention, by document
  local words
  select_words "$2"
  record "$1" "$2" last_line "$prism" eval "${@:3}" --json --device "${PRISM_DEVICE:-cpu}" "${words[@]}" --against-prefill dense
}

last_line() { "$@" | tail -n 1; }

head_width() {  # MODEL: the width that the heads of all layers have
  local info
  info=$("$prism" info "$1" --json)
  python3 -c 'import json, sys
widths = {layer["head_dim"] for layer in json.load(sys.stdin)["layers"]}
if len(widths) > 1:
    sys.exit("[study_prefill] expected heads of one width, of which the bands are shares; found %s; use another model." % sorted(widths))
print(*widths)' <<< "$info"
}

study_model() {  # MODEL NAME
  local model width text
  model=$runs/models/$(basename "$1")  # the path that records hold
  width=$(head_width "$1")
  mkdir -p "$runs/models"
  ln -sfn "$(realpath "$1")" "$model"
  cut_novels 60000 "$runs/novels_short"
  cut_novels 130000 "$runs/novels_long"  # about one window of 32768 each
  for window in 4096 8192; do
    text=("$model" "$runs/novels_short" --window "$window")
    record_difference "$records/paired/$2_$window.jsonl" spectral:p=0.95 "${text[@]}"
    for method in "${model_kept[@]}" "$openvino"; do record_perplexity "$records/$2_$window.jsonl" "$method" "${text[@]}"; done
    is_recorded "$records/$2_${window}_parts.jsonl" dense ||
      grep -F '{"method":"dense",' "$records/$2_$window.jsonl" >> "$records/$2_${window}_parts.jsonl"
    for change in "${model_ablations[@]}"; do
      change=${change//d\/4/$((width / 4))}
      change=${change//d\/2/$((width / 2))}
      for share in "${model_shares[@]}"; do
        record_perplexity "$records/$2_${window}_parts.jsonl" "spectral:${change/,/,p=$share,}" "${text[@]}"
      done
    done
  done
  for window in 16384 32768; do
    text=("$model" "$runs/novels_long" --window "$window" --context "$window" --rope-scaling yarn)
    record_difference "$records/paired/$2_$window.jsonl" spectral:p=0.95 "${text[@]}"
    for method in "${long_kept[@]}"; do record_perplexity "$records/$2_$window.jsonl" "$method" "${text[@]}"; done
  done
}

record_recalls() {  # FILE MIX TOKENS METHOD...: of those that the file lacks
  local file=$1 missing=() selectors=() method lines
  for method in "${@:4}"; do
    is_recorded "$file" "$method" && continue
    missing+=("$method")
    selectors+=("$(with_settings "$method")")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "$(basename "$file" .jsonl): ${missing[*]}"
  lines=$("$prism" bench prefill --tokens "$3" --mix "benchmarks/mixes/$2.json" --selector "${selectors[@]}" --untimed \
    --recall-rows 64 --json)
  paste -d '' <(printf '{"method":"%s",\n' "${missing[@]}") <(cut -c 2- <<< "$lines") >> "$file"
}

# Fixed before the runs: recall is compared at the densities 0.1 and 0.2 (8192 tokens), 0.05 and 0.1 (32768), of each
# selector on the line between the two amounts around it. The primary measure is the recall of spectral:recent=1 minus that
# of mean pooling, paired by mix, with its interval over the five mixes.
study_mixes() {
  local tokens number
  mkdir -p $records/mixes
  for tokens in 8192 32768; do
    for number in 1 2 3 4 5; do record_recalls $records/mixes/${number}_$tokens.jsonl drawn_$number $tokens "${mixes_kept[@]}"; done
  done
  for number in 1 2; do record_recalls $records/mixes/${number}_131072.jsonl drawn_$number 131072 "${longest_kept[@]}"; done
}

train_once() {  # RECIPE OUT [OVERRIDE...]: trains, or goes on with a stopped run
  if grep -q '"kind":"end"' "$2/records.jsonl" 2> /dev/null; then
    echo "$2: trained"
  elif [ -d "$2" ]; then
    "$prism" train --resume --out "$2"
  else
    "$prism" train --recipe "$1" --out "$2" "${@:3}"
  fi
}

make_recall() {  # NAME ROWS OPTION...: data of facts and their questions; held-out pairs for validation
  local folder=$runs/answers/$1 rows=$2 novels=${PRISM_DATA:-../shared/data}/gutenberg_novels form=()
  [ ! -f "$folder/data.json" ] || return 0
  [[ " $* " != *" --answers "* ]] || form=(--chat --chat-template configs/prefill/answers.jinja)
  PRISM_PROGRAM=$prism python3 benchmarks/make_recall.py --tokenizer runs/study/tokenizer --prose "$novels/train.txt.xz" \
    --windows "$rows" "${@:3}" --out "$folder.jsonl"
  PRISM_PROGRAM=$prism python3 benchmarks/make_recall.py --tokenizer runs/study/tokenizer --prose "$novels/valid.txt.xz" \
    --windows 20 --held-out "${@:3}" --out "$folder.valid.jsonl" --questions "$folder.questions.jsonl"
  "$prism" tokenize "$folder.jsonl" --valid "$folder.valid.jsonl" "${form[@]}" --tokenizer runs/study/tokenizer --out "$folder"
}

ask() {  # MODEL OPTION...: perplexity of the validation prose with its facts, and which of the questions are answered rightly
  local out
  out=$(mktemp -d)
  "$prism" eval "$1" $runs/answers/far.valid.jsonl --json --quiet --device "${PRISM_DEVICE:-cpu}" "${@:2}" | head -c -2
  "$prism" eval "$1" --task lambada_openai --data $runs/answers/far.questions.jsonl --limit 320 --json --quiet --out "$out" \
    --device "${PRISM_DEVICE:-cpu}" "${@:2}" > /dev/null
  python3 - "$out/samples_lambada_openai_prism.jsonl" <<'END'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    rows = [json.loads(line) for line in file]
print(',"answers":' + json.dumps([[row["doc"]["distance"], int(row["acc"])] for row in rows], separators=(",", ":")) + "}")
END
  rm -r "$out"
}

study_answers() {  # SEED...
  local seed model run method words band share
  mkdir -p "$runs/answers" $records/answers $records/bands
  make_recall prose 6000 --tokens 512 --facts 16 --distances 16 128
  make_recall near 6000 --tokens 512 --facts 16 --distances 16 128 --seed 2 --answers
  make_recall far 2000 --tokens 4096 --facts 64 --distances 16 3800
  for seed in "$@"; do
    model=$runs/answers/seed$seed
    train_once configs/prefill/recall_prose.json "$model/prose" --seed "$seed"
    train_once configs/prefill/recall_near.json "$model/near" --seed "$seed" --init "$model/prose"
    train_once configs/prefill/recall.json "$model/far" --seed "$seed" --init "$model/near"
    for run in prose near far; do
      mkdir -p "$records/answers/$seed/$run"
      cp "$model/$run/recipe.json" "$records/answers/$seed/$run"
      grep -v '"kind":"diagnostics"' "$model/$run/records.jsonl" > "$records/answers/$seed/$run/records.jsonl"
    done
    for method in "${answers_kept[@]}"; do
      measure_words "$method"
      record $records/answers/"$seed".jsonl "$method" ask "$model/far" "${words[@]}"
    done
    record_perplexity $records/bands/"$seed".jsonl dense "$model/far" $runs/answers/far.valid.jsonl
    for band in "${bands[@]}"; do
      for share in "${shares[@]}"; do
        record_perplexity $records/bands/"$seed".jsonl "spectral:recent=1,p=$share,$band" "$model/far" $runs/answers/far.valid.jsonl
      done
    done
  done
}

average_seeds() {  # FOLDER OUT: of the files of seeds, the methods that all have, perplexities averaged and answers collected
  python3 - "$@" <<'END'
import glob, json, math, sys
files = sorted(glob.glob(sys.argv[1] + "/*.jsonl"))
rows = {}
for path in files:
    with open(path, encoding="utf-8") as file:
        for row in map(json.loads, file):
            rows.setdefault(row["method"], []).append(row)
with open(sys.argv[2], "w", encoding="utf-8") as out:
    for method, seeds in rows.items():
        if len(seeds) < len(files):
            print(f"[study_prefill] {sys.argv[1]}: left out {method}, which {len(seeds)} of {len(files)} seeds have.", file=sys.stderr)
            continue
        mean = lambda figure: sum(map(figure, seeds)) / len(seeds)
        row = seeds[0] | {"model": f"the mean of {len(seeds)} seeds"}
        row["token_perplexity"] = math.exp(mean(lambda one: math.log(one["token_perplexity"])))
        row["prefill"] |= {name: mean(lambda one: one["prefill"][name]) for name in ("density", "recall")
                           if all(name in one["prefill"] for one in seeds)}
        if "answers" in row:
            row["answers"] = [answer for one in seeds for answer in one["answers"]]
        out.write(json.dumps(row) + "\n")
END
}

write_results() {
  local name
  for name in answers bands; do average_seeds $records/$name $runs/$name.jsonl; done
  cat "$records"/mixes/*_{8192,32768}.jsonl > $runs/mixes.jsonl
  for file in "$records"/*.jsonl $runs/{answers,bands,mixes}.jsonl; do
    [ -s "$file" ] || continue
    name=$(basename "$file" .jsonl)
    $prism report --prefill "$file" --title "Sparse prefill: ${name//_/, }" --out "$runs/$name.html" \
      --markdown "$records/$name.md" --figures "$records/$name" > "$runs/$name.txt"
  done
}

find_program study_prefill
mkdir -p $runs $records/paired
if [ "${1:-}" == --model ]; then
  study_model "$given" "$3"
elif [ "${1:-}" == --mixes ]; then
  study_mixes
elif [ "${1:-}" == --answers ]; then
  scripts/study.sh --prepare
  [ $# -gt 1 ] || set -- --answers 1 2 3
  study_answers "${@:2}"
elif [ "${1:-}" != --results ]; then
  scripts/study.sh --prepare
  xz -dc "${PRISM_DATA:-../shared/data}/gutenberg_novels/long/Eliot_Daniel_1876.txt.xz" > $runs/whole_book.txt
  head -c 600000 $runs/whole_book.txt > $runs/book.txt
  train_once configs/prefill/long.json $runs/long
  for method in "${kept[@]}"; do
    record_perplexity $records/perplexity.jsonl "$method" $runs/long $runs/book.txt
  done
  for mix in structured unstructured; do record_recalls $records/recall_$mix.jsonl $mix 8192 "${kept[@]}"; done
  record_perplexity $records/perplexity_ablations.jsonl dense $runs/long $runs/book.txt
  mapfile -t changed < <(list_ablations)
  for method in "${changed[@]}"; do
    record_perplexity $records/perplexity_ablations.jsonl "$method" $runs/long $runs/book.txt
  done
  record_recalls $records/recall_ablations.jsonl structured 8192 "${changed[@]}"
fi
write_results
