#!/usr/bin/env bash
# Runs a sweep of 50 runs twice: once without interruption and once interrupted 10 times at random, by SIGKILL and
# SIGTERM alternately. The resulting tables must be equal line by line.
#
#   scripts/interrupted_sweep.sh             an hour: two runs at a time, about a minute each on one thread
#   scripts/interrupted_sweep.sh TOKENS      tokens of each run, a multiple of 1,024; 20480 is quick
#
# The text is this repository's documentation. The script deletes runs/interrupted_sweep and writes its runs there.
# PRISM_PROGRAM names a built prism; if it is unset, scripts/setup.sh builds one.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  -h | --help) sed -n '2,10s/^# \{0,1\}//p' scripts/interrupted_sweep.sh; exit 0 ;;
  "" | [1-9]*) ;;
  *) fail interrupted_sweep "expected a number of tokens; found \"$1\"; see scripts/interrupted_sweep.sh --help." ;;
esac
tokens=${1:-1500160}
interruptions=10
folder=runs/interrupted_sweep
find_program interrupted_sweep

rm -rf $folder
mkdir -p $folder/text
for file in README.md docs/*.md; do cp "$file" "$folder/text/$(basename "$file" .md).txt"; done
$prism tokenizer train $folder/text --vocab-size 512 --out $folder/tokenizer
$prism tokenize $folder/text --tokenizer $folder/tokenizer --valid-share 0.2 --out $folder/data
rates=$(seq -s, 0.0005 0.0005 0.0125)  # 25 arms, 2 seeds
cat > $folder/sweep.json <<EOF
{"recipe": {"model": {"d_model": 64, "context": 128, "schedule": "2x1,4x3", "ffn_width": 128},
            "data": {"folder": "$folder/data"},
            "train": {"tokens": $tokens, "batch_rows": 8, "checkpoint_every_tokens": $((tokens / 8)),
                      "eval_every_tokens": $((tokens / 4))}},
 "seeds": [1, 2], "grid": {"train.learning_rate": [$rates]}}
EOF
sweep() { $prism sweep $folder/sweep.json --jobs 2 --json --out "$folder/$1"; }

began=$(now)
sweep whole > $folder/whole.jsonl
lasted=$(seconds_since "$began")
printf 'whole: %s s\n' "$lasted"
RANDOM=7
for i in $(seq $interruptions); do
  sweep cut > /dev/null 2>&1 &
  child=$!
  # Half a second to a fifth of the whole time more, so that ten interruptions spread over most of it.
  sleep "$(awk -v r=$RANDOM -v t="$lasted" 'BEGIN {printf "%.2f", 0.5 + r / 32768 * t / 5}')"
  [ $((i % 2)) = 0 ] && signal=TERM || signal=KILL
  # Signals the sweep, not the shell around it.
  pkill -"$signal" -P "$child" 2> /dev/null || kill -"$signal" "$child" 2> /dev/null || true
  wait $child 2> /dev/null || true
  printf 'interrupted by SIG%s: %s of 50 runs were done\n' "$signal" \
    "$(grep -l '"kind":"end"' $folder/cut/*/records.jsonl 2> /dev/null | wc -l)"
done
sweep cut > $folder/cut.jsonl
diff $folder/whole.jsonl $folder/cut.jsonl || fail interrupted_sweep "expected the same table; found the differences above; see $folder."
printf '%s arms, the same table\n' "$(wc -l < $folder/cut.jsonl)"
