#!/usr/bin/env bash
# Trains two small language models that differ in their head schedule alone, compares them, times a long prompt with dense and
# with block-sparse attention, and writes one page about it.
#
#   scripts/demo.sh                 on the King James Bible, which the Debian package bible-kjv provides
#   scripts/demo.sh TEXT...         on your own .txt or .jsonl files (plain, .gz, .xz or .zst) or folders of them
#
# Sets prism up first (scripts/setup.sh). Everything it makes lies in demo/, which it replaces: the page is demo/report.html.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' scripts/demo.sh; exit 0 ;;
esac

# Before the set-up, which takes minutes. Paths are the caller's.
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
  # One verse a line, its reference cut off; three empty lines before each chapter, which is a document.
  bible -f gen1:1-rev22:21 |
    awk '{ chapter = $1; sub(/:.*/, "", chapter); if (NR > 1 && chapter != last) printf "\n\n\n"; last = chapter
           sub(/^[^ ]+ /, ""); print }' > demo/bible.txt
  inputs=(demo/bible.txt)
fi

$prism tokenizer train "${inputs[@]}" --vocab-size 4096 --out demo/tokenizer
# Validation needs two documents at least: what three empty lines do not split is split at one, or at every line.
for separator in '\n\n\n\n' '\n\n' '\n'; do
  $prism tokenize "${inputs[@]}" --tokenizer demo/tokenizer --separator "$separator" --valid-share 0.05 --out demo/data --force
  # Validation takes windows of 256 tokens and the one that follows.
  valid=$(sed -n 's/.*"valid_tokens": *\([0-9]*\).*/\1/p' demo/data/data.json)
  [ "$valid" -le 256 ] || break
done
if [ "$valid" -le 256 ]; then
  echo "[demo] expected text enough for training and validation; found $valid tokens for validation; name more text." >&2
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
