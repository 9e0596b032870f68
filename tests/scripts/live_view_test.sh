#!/usr/bin/env bash
# Trains a few steps and checks the run's live view in headless Chromium.
#
#   tests/scripts/live_view_test.sh     with Chromium and its driver (scripts/test.sh --all installs them)
source "$(dirname "${BASH_SOURCE[0]}")/small_run.sh"
command -v chromedriver > /dev/null || { echo "expected chromedriver; found none; run scripts/test.sh --all."; exit 1; }
train_small_run
python3 "$root/tests/scripts/live_view.py" --prism "$prism" --run run
