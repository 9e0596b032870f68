#!/usr/bin/env bash
# The scripts on machines that lack something: each case ends with exit status 1 and one sentence, or copes.
#
#   tests/scripts/scripts_test.sh CASE     one of the functions below
#   tests/scripts/scripts_test.sh --list
#
# A case runs on a copy of scripts/ in a temporary folder and replaces the functions that query the machine.
# shellcheck disable=SC2016  # code for run() is quoted on purpose
set -euo pipefail
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$source_folder/scripts" "$folder"

run() {  # CODE: with common.sh sourced, in the folder; sets status, output, errors
  status=0
  bash -c "source '$folder/scripts/common.sh'; start_log setup; free_disk_mb() { echo 9999; }; $1" > "$folder/output" 2> "$folder/errors" || status=$?
  output=$(cat "$folder/output")
  errors=$(cat "$folder/errors")
}

expect() {  # WHAT CONDITION...
  if ! "${@:2}"; then
    printf 'expected %s\nstatus: %s\noutput: %s\nerrors: %s\n' "$1" "$status" "$output" "$errors"
    exit 1
  fi
}

expect_sentence() {  # PATTERN: the run failed with one line that fits
  expect "exit status 1" [ "$status" -eq 1 ]
  expect "one line of errors" [ "$(wc -l < "$folder/errors")" -eq 1 ]
  expect "a sentence with: $1" grep -qE "$1" "$folder/errors"
}

without_root_names_the_packages_to_ask_for() {
  run 'root_prefix() { return 1; }
       missing_packages() { printf "cmake\nninja-build\n"; }
       ensure_packages cmake ninja-build zstd'
  expect_sentence '^\[setup\] .*found neither; ask for: apt-get install cmake ninja-build$'
}

packages_without_network_say_so() {
  run 'root_prefix() { :; }
       missing_packages() { echo cmake; }
       apt_get() { echo "E: Failed to fetch http://x/  Could not resolve host"; return 100; }
       ensure_packages cmake'
  expect_sentence 'expected to download packages .*; found no network .*run again\.$'
}

a_package_that_apt_refuses_is_reported_with_its_reason() {
  run 'root_prefix() { :; }
       missing_packages() { echo cmake; }
       apt_get() { echo "E: Unable to locate package cmake"; return 100; }
       ensure_packages cmake'
  expect_sentence 'found: E: Unable to locate package cmake;'
}

packages_that_are_there_need_no_root() {
  run 'root_prefix() { return 1; }
       missing_packages() { :; }
       ensure_packages cmake'
  expect "success" [ "$status" -eq 0 ]
}

dpkg_is_asked_which_packages_are_missing() {
  run 'missing_packages dpkg prism-no-such-package bash'
  expect "the missing one alone" [ "$output" = prism-no-such-package ]
}

slow_wheels_without_network_say_so() {
  # The real pip, with an index at a port where nothing listens.
  run 'export PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_FIND_LINKS= PIP_CONFIG_FILE=/dev/null
       ensure_torch'
  expect_sentence 'expected to download torch==.* with pip; found no network .*PIP_INDEX_URL'
  expect "no stamp on what is not whole" [ ! -e "$folder/.venv/wheels" ]
}

slow_half_made_venv_is_made_again() {
  mkdir -p "$folder/.venv/bin"
  touch "$folder/.venv/bin/python"
  run 'install_wheels() { echo "${wheels[*]}" > .venv/wheels; }
       ensure_torch && .venv/bin/python -c "print(7)"'
  expect "a venv that works" grep -qx 7 "$folder/output"
}

libtorch_with_a_missing_library_is_not_whole() {
  python3 -m venv --without-pip "$folder/.venv"
  local packages
  packages=$("$folder/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  mkdir -p "$packages/torch/lib" "$packages/nvidia/cu13/lib"
  echo x > "$packages/torch/lib/libtorch_cpu.so"
  echo x > "$packages/torch/lib/libc10.so"
  run 'echo "${wheels[*]}" > .venv/wheels; torch_is_whole'
  expect "a whole one to be accepted" [ "$status" -eq 0 ]
  rm "$packages/torch/lib/libc10.so"
  run torch_is_whole
  expect "a missing library to be seen" [ "$status" -ne 0 ]
  echo x > "$packages/torch/lib/libc10.so"
  run 'echo "torch==1.0" > .venv/wheels; torch_is_whole'
  expect "another version to be seen" [ "$status" -ne 0 ]
}

a_full_disk_is_named_with_its_size() {
  run 'free_disk_mb() { echo 1234; }; ensure_torch'
  expect_sentence 'expected 4000 MB free in .*; found 1234 MB; free some space'
}

too_little_memory_is_named_with_its_size() {
  run 'free_memory_mb() { echo 700; }; build release'
  expect_sentence 'expected 1500 MB of free memory to compile; found 700 MB;'
}

short_memory_means_fewer_jobs() {
  run 'nproc() { echo 8; }; env() { nproc; }
       for free in 700 2000 5000 50000; do eval "free_memory_mb() { echo $free; }"; build_jobs; done'
  expect "1, 1, 3 and 8 jobs" [ "$output" = "$(printf '1\n1\n3\n8')" ]
}

free_memory_is_a_number() {
  run free_memory_mb
  expect "MB" grep -qxE '[1-9][0-9]*' "$folder/output"
}

another_architecture_is_refused() {
  run 'uname() { if [ "$1" = -m ]; then echo aarch64; else echo Linux; fi; }; ensure_packages cmake'
  expect_sentence 'expected Linux on x86_64.*; found Linux on aarch64;'
}

another_distribution_learns_what_to_install() {
  run 'command() { return 1; }; ensure_packages cmake zstd'
  expect_sentence 'expected Debian 12 with apt-get; found .*; install what Debian calls cmake zstd and set PRISM_SKIP_PACKAGES=1\.$'
  run 'command() { return 1; }; export PRISM_SKIP_PACKAGES=1; ensure_packages cmake zstd'
  expect "success when told so" [ "$status" -eq 0 ]
}

a_failing_build_shows_its_first_error() {
  mkdir -p "$folder/build/release"
  printf 'rule fail\n  command = echo the reason; exit 1\nbuild x: fail\n' > "$folder/build/release/build.ninja"
  run 'build release'
  expect "exit status 1" [ "$status" -eq 1 ]
  expect "the compiler's words" grep -qx 'the reason' "$folder/errors"
  expect "a closing sentence" grep -q '^\[setup\] expected ninja to build release; found the errors above' "$folder/errors"
}

tests_are_counted_and_named() {
  cat > "$folder/tests.xml" << 'XML'
<testsuite>
  <testcase name="A.Passes" status="run"/>
  <testcase name="A.Fails" status="fail"><failure message=""/></testcase>
  <testcase name="A.Skips" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>a_test.cpp:7: Skipped
set PRISM_DATA to run it
</system-out></testcase>
  <testcase name="a_NOT_BUILT" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>
XML
  run 'scripts/count_tests.py --status 8 tests.xml'
  expect "exit status 1" [ "$status" -eq 1 ]
  expect "the counts last" [ "$(tail -n 1 "$folder/output")" = "1 passed, 2 failed, 1 skipped" ]
  expect "the reason of the skip" grep -qE '^skipped .*A\.Skips: set PRISM_DATA to run it$' "$folder/output"
  expect "what failed" grep -qE '^FAILED .*A\.Fails$' "$folder/output"
  expect "what was not built" grep -qE '^FAILED .*a_NOT_BUILT$' "$folder/output"
}

the_demo_deletes_nothing_it_did_not_make() {
  mkdir "$folder/demo"
  echo text > "$folder/demo/mine.txt"
  for words in demo/mine.txt ""; do
    status=0
    # shellcheck disable=SC2086  # one of the two cases is no argument at all
    (cd "$folder" && scripts/demo.sh $words) > "$folder/output" 2> "$folder/errors" || status=$?
    output=$(cat "$folder/output") errors=$(cat "$folder/errors")
    expect "exit status 2" [ "$status" -eq 2 ]
    expect "one line of errors" [ "$(wc -l < "$folder/errors")" -eq 1 ]
    expect "the file to be there still" [ -s "$folder/demo/mine.txt" ]
  done
}

a_run_without_a_report_counts_as_a_failure() {
  run 'scripts/count_tests.py --status 0 none.xml'
  expect "a failure" [ "$(tail -n 1 "$folder/output")" = "0 passed, 1 failed, 0 skipped" ]
  expect "exit status 1" [ "$status" -eq 1 ]
  echo '<testsuite><testcase name="A.Passes" status="run"/></testsuite>' > "$folder/tests.xml"
  run 'scripts/count_tests.py --status 8 tests.xml'
  expect "ctest's status to count" [ "$(tail -n 1 "$folder/output")" = "1 passed, 1 failed, 0 skipped" ]
  run 'scripts/count_tests.py --status 0 tests.xml'
  expect "success" [ "$status" -eq 0 ]
}

cases=$(declare -F | sed 's/^declare -f //' | grep -vxE 'run|expect|expect_sentence')
if [ "${1:-}" = --list ]; then
  echo "$cases"
elif grep -qx "${1:-}" <<< "$cases"; then
  "$1"
else
  printf 'expected one of:\n%s\n' "$cases"
  exit 2
fi
