#!/usr/bin/env bash
# Measures the build time of several revisions: a clean build without ccache, then rebuilds after touching a header.
#   benchmarks/build_time.sh REVISION... (e.g. ca38622 HEAD)    in a checkout whose .venv holds torch (scripts/setup.sh)
# Prints one line per build: revision, what was built, CPU seconds (user + system), wall seconds. Leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "usage: benchmarks/build_time.sh REVISION..." >&2; exit 2; }
[ -x .venv/bin/python ] || { echo "[build_time] expected .venv; found none; run scripts/setup.sh first." >&2; exit 1; }

place=$(mktemp -d)
trap 'rm -rf "$place"; git worktree prune' EXIT
export CCACHE_DISABLE=1
# Builds the tree $1 and prints its seconds as "CPU wall".
build() {
  { TIMEFORMAT='%U %S %R'; time cmake --build "$1/build" > "$place/log" 2>&1 || { tail -20 "$place/log" >&2; exit 1; }; } 2>&1 |
    awk '{ printf "%.0f %.0f", $1 + $2, $3 }'
}

lscpu | sed -n 's/^Model name: *//p'
printf '%s cores, %s, %s\n' "$(nproc)" "$(g++ --version | head -1)" "$(date -u +%F)"
printf '%-10s %-28s %8s %8s\n' revision built 'CPU s' 'wall s'
for revision in "$@"; do
  git worktree add --quiet --detach "$place/$revision" "$revision"
done
for revision in "$@"; do
  cmake --preset release -S "$place/$revision" -B "$place/$revision/build" -DPRISM_PYTHON="$PWD/.venv/bin/python" > /dev/null
  printf '%-10s %-28s %8s %8s\n' "$revision" everything $(build "$place/$revision")
done
for header in fields.h attend.h decoder.h; do  # by their names: revisions differ in their folders
  for revision in "$@"; do
    find "$place/$revision/prism" -name "$header" -exec touch {} +
    printf '%-10s %-28s %8s %8s\n' "$revision" "after $header" $(build "$place/$revision")
  done
done
