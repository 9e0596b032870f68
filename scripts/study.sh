#!/usr/bin/env bash
# The study of head schedules: its texts, its tokenizer, its token shards, and the sweeps of configs/sweeps.
#
#   scripts/study.sh                 every sweep; the report of each is runs/study/SWEEP/report.html
#   scripts/study.sh ablation        one sweep
#   scripts/study.sh --prepare       the data alone
#
# Texts come from PRISM_DATA (../shared/data by default). What a finished run recorded is kept in docs/results/study/ and not run
# again; a run that was stopped goes on where it was. One run takes 10 to 20 minutes on two cores.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

sweeps=(learning_rates ablation muon ablation_rest)
case "${1:-}" in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/study.sh; exit 0 ;;
  --prepare) sweeps=() ;;
  "") ;;
  *)
    [ -f "configs/sweeps/$1.json" ] || fail study "expected a sweep of configs/sweeps; found \"$1\"; see scripts/study.sh --help."
    sweeps=("$1")
    ;;
esac
if [ -z "${PRISM_DATA:-}" ] && [ -d ../shared/data ]; then PRISM_DATA=$(cd ../shared/data && pwd); fi
novels=${PRISM_DATA:-}/gutenberg_novels
[ -d "$novels" ] ||
  fail study "expected the folder of large data with gutenberg_novels; found ${PRISM_DATA:-none}; name it in PRISM_DATA."

scripts/setup.sh
prism=build/release/bin/prism
study=runs/study
mkdir -p $study
cp -u "$novels/valid.txt.xz" $study/novels_valid.txt.xz
# An article begins with its title between single equals signs.
[ -f $study/wikitext_test.txt ] ||
  { xz -dc "$PRISM_DATA/wikitext-103/wiki.test.tokens.xz" |
    awk '/^ = [^=].*[^=] = $/ && NR > 2 {print "\n\n\n"} {print}' > $study/wikitext_test.txt.tmp &&
    mv $study/wikitext_test.txt.tmp $study/wikitext_test.txt; }
[ -f $study/tokenizer/tokenizer.json ] || $prism tokenizer train "$novels/train.txt.xz" --vocab-size 4096 --out $study/tokenizer
[ -f $study/data/data.json ] || $prism tokenize "$novels/train.txt.xz" --valid "$novels/valid.txt.xz" --separator '\n\n\n\n' \
  --tokenizer $study/tokenizer --out $study/data

for sweep in "${sweeps[@]}"; do
  echo "$sweep"
  # Sweeps of one recipe and budget share their baseline's runs.
  records=docs/results/study/${sweep%_rest}
  $prism sweep "configs/sweeps/$sweep.json" --out "$study/$sweep" --records "$records" --jobs 2
done
