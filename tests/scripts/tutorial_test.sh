#!/usr/bin/env bash
# Runs every block of docs/tutorial.md in order in one shell, then the example commands of README.md, as a newcomer would.
#
#   tests/scripts/tutorial_test.sh     PRISM_HOME is the repository and needs build/release/bin/prism
set -euo pipefail
PRISM_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PRISM_HOME
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0; print "" } inside' "$PRISM_HOME/docs/tutorial.md" > commands.sh
[ "$(grep -c '^prism ' commands.sh)" -ge 15 ] || { echo "expected the tutorial's commands; found $(cat commands.sh)"; exit 1; }
bash -euxo pipefail commands.sh
for file in report.html maps/map-layer0-head0.svg captured/layer2.safetensors looked.jsonl; do
  [ -s "prism-tutorial/$file" ] || { echo "expected $file; found none."; exit 1; }
done

# README's example commands too, in a folder that holds what a clone holds after scripts/demo.sh.
mkdir -p readme/build/release readme/demo
ln -s "$PRISM_HOME/build/release/bin" readme/build/release/bin
ln -s "$PRISM_HOME/configs" readme/configs
ln -s "$PWD/prism-tutorial/text.txt" readme/demo/bible.txt
awk '/^## Commands$/ { here = 1 } here && /^```$/ { inside = !inside; next } inside && here' "$PRISM_HOME/README.md" > readme/commands.sh
[ "$(grep -c '^prism ' readme/commands.sh)" -ge 4 ] || { echo "expected README's commands; found $(cat readme/commands.sh)"; exit 1; }
cd readme
bash -euxo pipefail commands.sh
