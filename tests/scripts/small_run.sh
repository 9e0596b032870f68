# shellcheck shell=bash
# Sourced by script tests. Changes to a temporary folder, removed at the end, and defines how to make a small run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
prism=$root/build/release/bin/prism
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

prepare_small_run() {  # its data and recipe.json
  cp "$root"/docs/*.md .
  $prism tokenizer train ./*.md --vocab-size 300 --out tokenizer --format txt
  $prism tokenize ./*.md --tokenizer tokenizer --format txt --separator '\n\n' --valid-share 0.1 --out data
  cat > recipe.json <<'RECIPE'
{"model": {"d_model": 16, "context": 32, "schedule": "2x2", "ffn_width": 32}, "data": {"folder": "data"},
 "train": {"tokens": 38400, "batch_rows": 4, "diagnose_steps": 50, "log_steps": 10, "eval_every_tokens": 6400, "eval_tokens": 512,
           "sample_prompts": ["prism", "the "], "sample_temperature": [0.5, 1.0], "checkpoint_every_tokens": 6400}}
RECIPE
}

train_small_run() {
  prepare_small_run
  $prism train --recipe recipe.json --out run
}
