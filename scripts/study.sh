#!/usr/bin/env bash
# Studies head schedules, the ladder, head budgets and mirrored layers: prepares the data, runs the sweeps in
# configs/sweeps and writes their results.
#
#   scripts/study.sh                 every sweep but ladder and search; the report of each is runs/study/SWEEP/report.html
#   scripts/study.sh ablation        one sweep; ladder (hours a run) and search run only if named
#   scripts/study.sh --results       tables and figures of the records so far, in folders of docs/results/; of some
#                                    sweeps if they are named
#   scripts/study.sh --prepare       only the data
#
# Texts come from PRISM_DATA (../shared/data by default); prepared data in runs/study need none. Runs with records in
# docs/results/study/ are not repeated; stopped runs continue. Most runs take 10 to 20 minutes on two cores, those of
# long_training and small one to four hours. PRISM_PROGRAM names a built prism, PRISM_DEVICE a device (cuda, say) and
# PRISM_JOBS the number of runs at once.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

study=runs/study
records=docs/results/study
sweeps=(learning_rates ablation ablation_rest muon_rates muon muon_rest muon_seeds muon_slow order_rates order order_rest order_cpu wide_heads_rates wide_heads muon_ablation long_training_rates long_training small_rates small novels ladder_small ladder_rates ladder_batch ladder_own_rates ladder_own_rates_rest ladder_finer_rates ladder_flops ladder_norm
  budgets_rates_snli budgets_rates_ag_news budgets_snli budgets_snli_rest budgets_ag_news budgets_ag_news_rest budgets_ag_news_cpu budgets_dbpedia14 budgets_dbpedia14_rest
  budgets_dbpedia14_cpu budgets_yelp_full budgets_yelp_full_rest budgets_imdb budgets_imdb_rest
  budgets_lookups budgets_controls budgets_controls_rest budgets_data budgets_shapes
  mirrored_rates mirrored_rates_rest mirrored mirrored_rest mirrored_cpu mirrored_memory mirrored_memory_rest mirrored_donor mirrored_graft mirrored_fixed_rates mirrored_fixed mirrored_deep)

# Sweeps with the same recipe and budget share the runs of their baseline.
records_of() { echo "$records/${1%_rest}"; }
results_of() {
  case "$1" in
    ladder*) echo docs/results/ladder ;;
    budgets*) echo docs/results/head-budgets ;;
    mirrored*) echo docs/results/mirrored ;;
    *) echo docs/results/head-schedules ;;
  esac
}

find_texts() {
  [ -z "${novels:-}" ] || return 0
  if [ -z "${PRISM_DATA:-}" ] && [ -d ../shared/data ]; then PRISM_DATA=$(cd ../shared/data && pwd); fi
  novels=${PRISM_DATA:-}/gutenberg_novels
  [ -d "$novels" ] ||
    fail study "expected the folder of large data with gutenberg_novels; found ${PRISM_DATA:-none}; set PRISM_DATA to it."
}

prepare_texts() {  # texts on which trained models are evaluated
  mkdir -p $study
  [ -f $study/novels_valid.txt.xz ] || { find_texts && cp "$novels/valid.txt.xz" $study/novels_valid.txt.xz; }
  # The title of an article stands between single equals signs.
  [ -f $study/wikitext_test.txt ] ||
    { find_texts && xz -dc "$PRISM_DATA/wikitext-103/wiki.test.tokens.xz" |
      awk '/^ = [^=].*[^=] = $/ && NR > 2 {print "\n\n\n"} {print}' > $study/wikitext_test.txt.tmp &&
      mv $study/wikitext_test.txt.tmp $study/wikitext_test.txt; }
}

prepare_tokens() {  # FOLDER VOCABULARY
  mkdir -p "$1"
  if [ -f "$1/data/data.json" ]; then return; fi
  find_texts
  [ -f "$1/tokenizer/tokenizer.json" ] ||
    $prism tokenizer train "$novels/train.txt.xz" --vocab-size "$2" --out "$1/tokenizer"
  $prism tokenize "$novels/train.txt.xz" --valid "$novels/valid.txt.xz" \
    --separator '\n\n\n\n' --tokenizer "$1/tokenizer" --out "$1/data"
}

prepare_memory() {  # a text of 250k tokens, the beginning of the novels
  local out=$study/data_250k
  if [ -f $out/data.json ]; then return; fi
  find_texts
  xz -dc "$novels/train.txt.xz" | python3 -c "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[:879000])" > $study/text_250k.txt
  $prism tokenize $study/text_250k.txt --valid "$novels/valid.txt.xz" --separator '\n\n\n\n' --tokenizer $study/tokenizer --out $out
}

prepare_graft() {  # the model of mirrored_donor with a gate in each gate
  local donor=$study/mirrored_donor
  [ -d $donor/standard_swiglu-seed11/checkpoints ] || fail study "expected the model of the sweep mirrored_donor; found none; run scripts/study.sh mirrored_donor."
  [ -d $donor/grafted ] || $prism convert $donor/standard_swiglu-seed11 $donor/grafted --graft g2lu
}

prepare_budgets() {  # labelled texts, all with one tokenizer
  local out=$study/budgets name
  mkdir -p $out
  for name in snli ag_news dbpedia14 yelp_full imdb; do [ -f "$out/$name/data.json" ] || find_texts; done
  [ -n "${novels:-}" ] || return 0
  [ -f $out/texts.txt ] || { budget_texts > $out/texts.txt.tmp && mv $out/texts.txt.tmp $out/texts.txt; }
  [ -f $out/tokenizer/tokenizer.json ] || $prism tokenizer train $out/texts.txt --vocab-size 8192 --out $out/tokenizer
  for name in snli ag_news dbpedia14 yelp_full imdb; do
    [ -f "$out/$name/data.json" ] || tokenize_labelled $name "$out/$name"
  done
}

budget_texts() {  # the training texts of all data sets, a text a line
  python3 - "$PRISM_DATA" << 'END'
import csv, json, lzma, sys

def rows(path):
    with lzma.open(f"{sys.argv[1]}/{path}", "rt", encoding="utf-8", newline="") as file:
        yield from csv.reader(file) if ".csv" in path else map(json.loads, file)

texts = [(row["premise"], row["hypothesis"]) for row in rows("snli/train_subset.jsonl.xz")]
for path in ["ag_news/train_subset", "dbpedia14/train_subset", "yelp_full/train_subset", "imdb/train"]:
    texts += [row[1:] for row in rows(f"{path}.csv.xz")]
for fields in texts:
    print(" ".join(" ".join(fields).replace("\\n", " ").split()))
END
}

prepare_lookups() {  # a made task, in which each example asks 1, 2 or 4 questions about its facts
  local out=$study/budgets/lookups count
  if [ -f "$out/data.json" ]; then return; fi
  mkdir -p "${out}_texts"
  python3 - "${out}_texts" << 'END'
import json, random, sys

random.seed(1)
CONSONANTS, VOWELS = "bcdfghjklmnpqrst", "aeio"

def lookup(count):
    """Which is the largest value of the keys that are asked for, among 16 pairs of a key and a value?"""
    largest = random.randrange(len(VOWELS))  # equally many examples of each class, whatever the count
    values = {key: random.randrange(len(VOWELS)) for key in CONSONANTS}
    asked = random.sample(CONSONANTS, count)
    for key in asked:
        values[key] = random.randint(0, largest)
    values[random.choice(asked)] = largest
    facts = [key + VOWELS[value] for key, value in values.items()]  # bu asks for the value of b
    return facts, [key + "u" for key in asked], VOWELS[largest]

def example(count):
    facts, questions, label = lookup(count)
    questions += ["zu"] * (4 - count)  # asks nothing; as long for every count
    random.shuffle(facts)
    random.shuffle(questions)
    return {"facts": " ".join(facts), "questions": " ".join(questions), "label": label}

for name, rows in [("train", 24000), ("test", 3000)]:
    examples = {count: [example(count) for _ in range(rows // 3)] for count in (1, 2, 4)}
    mixed = [row for rows_of_count in zip(*examples.values()) for row in rows_of_count]
    for file, of in [(name, mixed)] + [(f"{name}_{count}", examples[count]) for count in examples]:
        with open(f"{sys.argv[1]}/{file}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in of)
END
  # Each word becomes one token, after a space and at the start of a field.
  grep -oE ' ?[a-z]{2}\b' "${out}_texts/train.jsonl" > "${out}_texts/train.txt"
  $prism tokenizer train "${out}_texts/train.txt" --vocab-size 512 --out "${out}_texts/tokenizer"
  for count in _1 _2 _4 ""; do  # prism analyse budgets reads the tests of one count
    $prism tokenize "${out}_texts/train.jsonl" --test "${out}_texts/test$count.jsonl" --valid-share 0.05 --label label \
      --text-fields facts,questions --tokenizer "${out}_texts/tokenizer" --out "$out$count"
  done
}

tokenize_labelled() {  # NAME OUT
  local data=$PRISM_DATA/$1 words=()
  case "$1" in
    snli) words=("$data/train_subset.jsonl.xz" --label label --text-fields "premise,hypothesis"
      --test "$data/test_subset.jsonl.xz" --valid-share 0.05) ;;
    ag_news) words=("$data/train_subset.csv.xz" --label 1 --text-fields "2,3" --classes "$data/classes.txt"
      --test "$data/test.csv.xz" --valid-share 0.05) ;;
    # Titles are in the test file alone.
    dbpedia14) words=("$data/train_subset.csv.xz" --label 1 --text-fields 3 --classes "$data/classes.txt" --words
      --test "$data/test_subset.csv.xz" --valid-share 0.05) ;;
    yelp_full) words=("$data/train_subset.csv.xz" --label 1 --text-fields 2 --valid "$data/valid_subset.csv.xz"
      --test "$data/test_subset.csv.xz") ;;
    imdb) words=("$data/train.csv.xz" --label label --text-fields text --test "$data/test.csv.xz" --valid-share 0.05) ;;
  esac
  $prism tokenize "${words[@]}" --tokenizer $study/budgets/tokenizer --out "$2"
}

run_sweep() {
  echo "$1"
  local jobs=${PRISM_JOBS:-2} kind=()
  case "$1" in
    novels) prepare_tokens runs/novels 8192 ;;
    ladder*) prepare_tokens runs/ladder 2048 ;;
    budgets_lookups) prepare_lookups ;;
    budgets*) prepare_budgets ;;
    mirrored_memory*) prepare_memory ;;
    mirrored_graft) prepare_graft ;;
    small*) jobs=${PRISM_JOBS:-1} ;;  # one model of this size keeps two cores busy
    search) kind=(--search schedules) ;;
  esac
  $prism sweep "configs/sweeps/$1.json" "${kind[@]}" --out "$study/$1" --records "$(records_of "$1")" --jobs "$jobs" \
    --device "${PRISM_DEVICE:-cpu}"
  case "$1" in
    ladder_small | ladder_own_rates*) measure_heads "$1" ;;
    budgets_*_cpu) measure_changes "$1" ;;
  esac
}

measure_heads() {  # measures what each head of the finished ladder runs attends to on validation text
  local heads=docs/results/ladder/heads run out
  mkdir -p $heads
  for run in "$study/$1"/*-seed*; do
    out=$heads/$(basename "$run").jsonl
    if [ -f "$out" ] || [ ! -d "$run/checkpoints" ] || [ ! -d "$(records_of "$1")/$(basename "$run")" ]; then continue; fi
    for kind in entropy heads; do $prism analyse $kind "$run" --data runs/ladder/data --sequences 1024 --json; done > "$out.tmp"
    mv "$out.tmp" "$out"
  done
}

measure_changes() {  # evaluates finished runs with head budgets as they are, and with parts of their decisions changed
  local name=${1#budgets_} run out change
  name=${name%_cpu}
  for run in "$study/$1"/budget-seed*; do
    out=docs/results/head-budgets/changed/$name-${run##*-}.jsonl
    if [ -f "$out" ] || [ ! -d "$run/checkpoints" ] || [ ! -d "$(records_of "$1")/$(basename "$run")" ]; then continue; fi
    for change in "own own" "all own" "own mean" "shuffled own" "random own"; do
      $prism eval "$run" "$study/budgets/$name" --task classification --budget-heads "${change% *}" \
        --budget-gain "${change#* }" --json
    done | with_wrong_items "$study/budgets/$name/test.safetensors" > "$out.tmp"
    mv "$out.tmp" "$out"
  done
}

with_wrong_items() {  # TEST_FILE: replaces the classes predicted for all texts by the numbers of those that are wrong
  python3 -c '
import json, struct, sys

with open(sys.argv[1], "rb") as file:
    size, = struct.unpack("<Q", file.read(8))
    first, end = json.loads(file.read(size))["labels"]["data_offsets"]
    file.seek(8 + size + first)
    labels = struct.unpack(f"<{(end - first) // 4}i", file.read(end - first))
for line in sys.stdin:
    row = json.loads(line)
    predicted = row.pop("predicted")
    for field in ("confusion", "recall", "precision", "f1"):
        del row[field]
    row["wrong"] = [item for item, pair in enumerate(zip(labels, predicted, strict=True)) if pair[0] != pair[1]]
    print(json.dumps(row))
' "$1"
}

runs_of() {  # SWEEP: folders of its records, and of SWEEP_rest's, in the order of the sweeps' arms
  python3 - "$(records_of "$1")" "configs/sweeps/$1.json" "configs/sweeps/$1_rest.json" << 'END'
import json, os, re, sys

folder, sweeps = sys.argv[1], [path for path in sys.argv[2:] if os.path.exists(path)]
arms = list(dict.fromkeys(arm for path in sweeps for arm in json.load(open(path))["arms"]))

def place(run):
    matching = [arm for arm in arms if run.startswith(arm)]
    numbers_as_numbers = [(float(part), "") if re.match(r"\d", part) else (-1, part) for part in re.split(r"(\d+\.?\d*)", run)]
    return arms.index(max(matching, key=len)) if matching else len(arms), numbers_as_numbers

runs = [run for run in os.listdir(folder) if "-seed" in run] if os.path.isdir(folder) else []
for run in sorted(runs, key=place):
    print(os.path.join(folder, run))
END
}

baseline_of() {  # SWEEP: the name that the runs of its baseline have in their recipes
  local arm
  arm=$(sed -n 's/.*"baseline": "\(.*\)".*/\1/p' "configs/sweeps/$1.json")
  sed -n 's/^  "name": "\(.*\)",$/\1/p' "$(records_of "$1")/$arm-seed"*/recipe.json | head -n 1
}

write_report() {  # NAME SWEEP...: one report of the runs of these sweeps, against the baseline of the first
  local name=$1 sweep runs=() title results
  results=$(results_of "$name")
  title=$(basename "$results" | tr - ' ')
  shift
  for sweep in "$@"; do
    while read -r run; do
      [[ -n ${left_out:-} && ${run##*/} == "$left_out"* ]] || runs+=("$run")
    done < <(runs_of "$sweep")
  done
  [ ${#runs[@]} -gt 0 ] || return 0
  $prism report "${runs[@]}" --baseline "$(baseline_of "$1")" --title "${title^}: $name" \
    --out "$study/$name.html" --markdown "$results/$name.md" --figures "$results/$name"
}

write_results() {
  for sweep in "${sweeps[@]}"; do
    # The records of NAME_rest are among those of NAME.
    [ "$sweep" != "${sweep%_rest}" ] || write_report "$sweep" "$sweep"
  done
  # More seeds of one comparison: apart from the first ones above, here together with them.
  [[ " ${sweeps[*]} " != *" muon_seeds "* ]] || write_report muon_all muon muon_seeds
  # Main and its controls beside 12x12. Each seed of shuffled has a schedule of its own; a figure would show five arms.
  [[ " ${sweeps[*]} " != *" order "* ]] || left_out=shuffled write_report muon_order muon muon_seeds order
}

usage() { echo "[study] $1; see scripts/study.sh --help." >&2; exit 2; }
check_sweep() {  # NAME
  [ -f "configs/sweeps/$1.json" ] || usage "expected a sweep of configs/sweeps; found \"$1\""
}
case "${1:-}" in
  -h | --help) sed -n '2,15s/^# \{0,1\}//p' scripts/study.sh; exit 0 ;;
  --results)
    for name in "${@:2}"; do
      check_sweep "$name"
      [[ $name != *_rest && $name != search ]] || usage "expected a sweep with results of its own; found \"$name\""
    done
    [ $# -eq 1 ] || sweeps=("${@:2}")
    ;;
  *)
    [ $# -le 1 ] || usage "expected one sweep, or nothing after --prepare; found \"${*:2}\" more"
    [[ ${1:-} == --prepare || -z ${1:-} ]] || { check_sweep "$1" && sweeps=("$1"); }
    ;;
esac
find_program study
if [ "${1:-}" != --results ]; then
  prepare_texts
  prepare_tokens $study 4096
  [ "${1:-}" = --prepare ] || for sweep in "${sweeps[@]}"; do run_sweep "$sweep"; done
fi
[[ ${1:-} == --prepare || ${1:-} == search ]] || write_results
