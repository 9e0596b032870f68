#!/usr/bin/env bash
# Trains a few steps and reads the event files back with the tensorboard package: what stock TensorBoard shows.
#
#   tests/scripts/tensorboard_test.sh     with the package in .venv-tensorboard (scripts/test.sh --all puts it there)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
prism=$root/build/release/bin/prism
python=$root/.venv-tensorboard/bin/python
[ -x "$python" ] || { echo "expected the tensorboard package in .venv-tensorboard; found none; run scripts/test.sh --all."; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cp "$root"/docs/*.md .
$prism tokenizer train ./*.md --vocab-size 300 --out tokenizer --format txt
$prism tokenize ./*.md --tokenizer tokenizer --format txt --separator '\n\n' --valid-share 0.1 --out data
words=(--model.d_model 16 --model.context 32 --model.schedule 2x2 --model.ffn_width 32 --data.folder data
  --train.batch_rows 4 --train.diagnose_steps 50 --train.log_steps 10 --train.eval_tokens 512 --train.sample_prompts '["prism"]'
  --train.checkpoint_every_tokens 6400)
echo '{}' > recipe.json
# Stopped behind its first checkpoint, it goes on in a second file, which takes the place of the first from there on.
$prism train --recipe recipe.json --out run "${words[@]}" --train.tokens 38400 &
while kill -0 $! 2> /dev/null && ! ls run/checkpoints/step-* > /dev/null 2>&1; do sleep 0.05; done
kill -TERM $!
wait $! || true
$prism train --out run --resume
[ "$(find run -maxdepth 1 -name 'events.out.tfevents.*' | wc -l)" -eq 2 ] || { echo "expected two event files; found $(ls run)"; exit 1; }
$python "$root/tests/scripts/read_events.py" run
