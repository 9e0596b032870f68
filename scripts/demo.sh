#!/usr/bin/env bash
# Trains two small language models that differ only in their head schedule, compares them, times a long prompt with dense
# and with block-sparse attention, and writes a report page.
#
#   scripts/demo.sh                 uses the King James Bible from the Debian package bible-kjv
#   scripts/demo.sh TEXT...         uses your own .txt or .jsonl files (plain, .gz, .xz or .zst) or folders of them
#
# Runs scripts/setup.sh first. Writes everything into demo/, replacing an earlier one. The page is demo/report.html.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' scripts/demo.sh; exit 0 ;;
esac

# Checked before the set-up, which takes minutes. Paths are relative to the caller's folder.
inputs=()
for path in "$@"; do
  [ -e "$OLDPWD/$path" ] && path=$OLDPWD/$path
  if [ ! -r "$path" ]; then
    echo "[demo] expected a readable file or folder; found none at $path; name .txt or .jsonl files." >&2
    exit 2
  fi
  if [[ $(realpath "$path")/ == "$PWD"/demo/* ]]; then
    echo "[demo] expected files outside demo/, which is replaced; found $path; move it." >&2
    exit 2
  fi
  inputs+=("$path")
done
if [ -e demo ] && [ ! -e demo/.made-by-demo ]; then
  echo "[demo] expected demo/ to be absent or made by this script; found something else there; move it." >&2
  exit 2
fi

began=$(now)
scripts/setup.sh
ready=$(now)
prism=build/release/bin/prism

rm -rf demo
mkdir demo
touch demo/.made-by-demo
if [ ${#inputs[@]} -eq 0 ]; then
  # One verse per line, without its reference; three empty lines before each chapter, so that it becomes a document.
  bible -f gen1:1-rev22:21 |
    awk '{ chapter = $1; sub(/:.*/, "", chapter); if (NR > 1 && chapter != last) printf "\n\n\n"; last = chapter
           sub(/^[^ ]+ /, ""); print }' > demo/bible.txt
  inputs=(demo/bible.txt)
fi

$prism tokenizer train "${inputs[@]}" --vocab-size 4096 --out demo/tokenizer
# Validation needs at least two documents. A text without three empty lines is split at one, or at every line.
for separator in '\n\n\n\n' '\n\n' '\n'; do
  $prism tokenize "${inputs[@]}" --tokenizer demo/tokenizer --separator "$separator" --valid-share 0.05 --out demo/data --force
  # A validation window is 256 tokens and the token after them.
  valid=$(sed -n 's/.*"valid_tokens": *\([0-9]*\).*/\1/p' demo/data/data.json)
  [ "$valid" -le 256 ] || break
done
if [ "$valid" -le 256 ]; then
  echo "[demo] expected enough text for training and validation; found $valid validation tokens; name more text." >&2
  exit 2
fi
for schedule in uniform progressive; do
  $prism train --recipe configs/demo/$schedule.json --out demo/$schedule
done
$prism bench prefill --mix benchmarks/mixes/structured.json --tokens 8192 --selector dense spectral --rounds 3 --json \
  > demo/prefill.jsonl
$prism report demo/uniform demo/progressive --prefill demo/prefill.jsonl --title "One size, two head schedules" \
  --out demo/report.html
$prism generate demo/progressive "In the beginning" --max-new-tokens 60 --seed 2
echo
echo "set-up $(seconds_since "$began" | awk -v demo="$(seconds_since "$ready")" '{ printf "%.0f", $1 - demo }') s, demo $(seconds_since "$ready") s; the page: demo/report.html"
