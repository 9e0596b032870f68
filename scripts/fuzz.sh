#!/usr/bin/env bash
# Feeds a reader of files with mutated input until it crashes, leaks, hangs or time is over. READER is the name of a
# source tests/fuzz/READER_fuzz.cpp. Begins with tests/fuzz/corpus/READER; inputs that reach new code are kept in
# build/fuzz/corpus/READER for the next run, and an input that crashes in build/fuzz/READER-crash-*.
#
#   scripts/fuzz.sh READER             60 seconds
#   scripts/fuzz.sh READER SECONDS
#
# Installs clang 14 and libFuzzer first. Exit status: 0 nothing found, 1 an input fails, 2 wrong arguments. To add a
# reader, write the source, a small corpus and a line in tests/CMakeLists.txt. After a fix, copy the input that failed to
# the corpus: a test reads all of it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

readers=$(cd tests/fuzz && ls -- *_fuzz.cpp)
readers=${readers//_fuzz.cpp/}
readers=${readers//$'\n'/, }
wrong() { echo "[fuzz] $1" >&2; exit 2; }

case "${1:-}" in
  -h | --help) sed -n '2,12s/^# \{0,1\}//p' scripts/fuzz.sh; exit 0 ;;
  "") wrong "expected a reader that is one of $readers; found none; name one." ;;
esac
reader=$1 seconds=${2:-60}
[[ $reader =~ ^[a-z_]+$ && -f tests/fuzz/${reader}_fuzz.cpp ]] ||
  wrong "expected a reader that is one of $readers; found \"$reader\"; name one of them."
[[ $# -le 2 && $seconds =~ ^[1-9][0-9]*$ ]] ||
  wrong "expected a number of seconds from 1; found \"${*:2}\"; write e.g. 60."

start_log fuzz
ensure_packages "${build_packages[@]}" "${fuzz_packages[@]}"
configure fuzz
build fuzz "fuzz_$reader"
exec 9>&-

kept=build/fuzz/corpus/$reader
mkdir -p "$kept"
UBSAN_OPTIONS=print_stacktrace=1 "build/fuzz/tests/fuzz_$reader" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
  -max_len=65536 -print_final_stats=1 -artifact_prefix="build/fuzz/$reader-" "$kept" "tests/fuzz/corpus/$reader" 2> >(tee -a "$log" |
  grep --line-buffered -vE '^(#[0-9]+\s+(NEW|REDUCE)|\s+NEW_FUNC)' >&2) ||
  fail fuzz "expected $reader to read or refuse any input; found one that fails; see $log and run build/fuzz/tests/fuzz_$reader on the file in build/fuzz."
