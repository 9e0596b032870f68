#!/usr/bin/env bash
# Trains a few steps and reads the event files back with the tensorboard package, as stock TensorBoard does.
#
#   tests/scripts/tensorboard_test.sh     with the package in .venv-tensorboard (scripts/test.sh --all installs it)
source "$(dirname "${BASH_SOURCE[0]}")/small_run.sh"
python=$root/.venv-tensorboard/bin/python
[ -x "$python" ] || { echo "expected the tensorboard package in .venv-tensorboard; found none; run scripts/test.sh --all."; exit 1; }
prepare_small_run
# A run stopped after its first checkpoint resumes in a second file, which replaces the first from that step on.
$prism train --recipe recipe.json --out run &
while kill -0 $! 2> /dev/null && ! ls run/checkpoints/step-* > /dev/null 2>&1; do sleep 0.05; done
kill -TERM $!
wait $! || true
$prism train --out run --resume
[ "$(find run -maxdepth 1 -name 'events.out.tfevents.*' | wc -l)" -eq 2 ] || { echo "expected two event files; found $(ls run)"; exit 1; }
$python "$root/tests/scripts/read_events.py" run
