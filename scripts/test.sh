#!/usr/bin/env bash
# Runs scripts/setup.sh, then the tests. The last line is "N passed, N failed, N skipped".
#
#   scripts/test.sh                 all but the slow tests
#   scripts/test.sh -R Tokenizer    passes the arguments to ctest
#   scripts/test.sh --all           also the slow tests, and the tests of the folders without torch under the sanitizers
#
# Tests on large data look for it in PRISM_DATA and are listed as skipped if it is missing. Each test runs on one thread
# unless you set OMP_NUM_THREADS; as many tests run at once as there are cores.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

all=
case "${1:-}" in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/test.sh; exit 0 ;;
  --all) all=1; shift ;;
esac

began=$(now)
scripts/setup.sh

if [ -z "${PRISM_DATA:-}" ] && [ -d ../shared/data ]; then
  PRISM_DATA=$(cd ../shared/data && pwd)
  export PRISM_DATA
fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
jobs=$(env -u OMP_NUM_THREADS nproc)
status=0

run_tests() {  # PRESET CTEST_ARGUMENT...: writes the results to build/PRESET/tests.xml
  local run=(ctest --test-dir "build/$1" --output-on-failure -j "$jobs" --output-junit tests.xml "${@:2}")
  rm -f "build/$1/tests.xml"
  if [ -t 1 ]; then
    "${run[@]}" --progress  # one line, rewritten
  else
    "${run[@]}" | sed -E '/^ +Start +[0-9]+: /d; /^ *[0-9]+\/[0-9]+ Test .* Passed +[0-9.]+ sec$/d'
  fi < /dev/null || status=1
}

echo "$(seconds_since "$began") s before the first test"
if [ -n "$all" ]; then
  start_log test_tools
  ensure_packages "${browser_packages[@]}"
  ensure_tensorboard
  exec 9>&-
  run_tests release --no-tests=error "$@"
  start_log asan
  configure asan
  build asan
  exec 9>&-
  run_tests asan -LE slow "$@"
  reports=(build/release/tests.xml build/asan/tests.xml)
else
  run_tests release --no-tests=error -LE slow "$@"
  reports=(build/release/tests.xml)
fi
echo "$(seconds_since "$began") s in all"
/usr/bin/env python3 scripts/count_tests.py --status $status "${reports[@]}"
