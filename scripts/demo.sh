#!/usr/bin/env bash
# Trains two small language models that differ in their head schedule alone, compares them and writes one page about it.
#
#   scripts/demo.sh                 on the King James Bible, which the Debian package bible-kjv provides
#   scripts/demo.sh TEXT...         on your own .txt or .jsonl files (plain, .gz, .xz or .zst) or folders of them
#
# Sets prism up first (scripts/setup.sh). Everything it makes lies in demo/, which it replaces: the page is demo/report.html.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' scripts/demo.sh; exit 0 ;;
esac

# Before the set-up, which takes minutes. Paths are the caller's.
inputs=()
for path in "$@"; do
  [ -e "$OLDPWD/$path" ] && path=$OLDPWD/$path
  if [ ! -r "$path" ]; then
    echo "[demo] expected a readable file or folder; found none at $path; name .txt or .jsonl files." >&2
    exit 2
  fi
  inputs+=("$path")
done

began=$(now)
scripts/setup.sh
ready=$(now)
prism=build/release/bin/prism

rm -rf demo
mkdir demo
if [ ${#inputs[@]} -eq 0 ]; then
  # One verse a line, its reference cut off; three empty lines before each chapter, which is a document.
  bible -f gen1:1-rev22:21 |
    awk '{ chapter = $1; sub(/:.*/, "", chapter); if (NR > 1 && chapter != last) printf "\n\n\n"; last = chapter
           sub(/^[^ ]+ /, ""); print }' > demo/bible.txt
  inputs=(demo/bible.txt)
fi

$prism tokenizer train "${inputs[@]}" --vocab-size 4096 --out demo/tokenizer
$prism tokenize "${inputs[@]}" --tokenizer demo/tokenizer --separator '\n\n\n\n' --valid-share 0.05 --out demo/data
for schedule in uniform progressive; do
  $prism train --recipe configs/demo/$schedule.json --out demo/$schedule
done
$prism report demo/uniform demo/progressive --title "One size, two head schedules" --out demo/report.html
$prism generate demo/progressive "In the beginning" --max-new-tokens 60 --seed 2
echo
echo "set-up $(seconds_since "$began" | awk -v demo="$(seconds_since "$ready")" '{ printf "%.0f", $1 - demo }') s, demo $(seconds_since "$ready") s; the page: demo/report.html"
