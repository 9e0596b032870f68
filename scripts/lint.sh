#!/usr/bin/env bash
# Runs every check that does not execute prism: clang-tidy on changed sources, the others on all files. First installs
# what it needs: clang-format 14, clang-tidy 14, shellcheck, LibTorch's headers.
#
#   scripts/lint.sh           clang-tidy on what changed since PRISM_LINT_BASE, else upstream, else the previous commit
#   scripts/lint.sh --all     clang-tidy on every source; half an hour
#
# clang-tidy takes half a minute for a source that includes LibTorch. The script therefore checks only the 20 sources
# with the most changed lines and prints how many it left out.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tidy_most=20
case "${1:-}" in
  "") ;;
  --all) tidy_most=all ;;
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/lint.sh; exit 0 ;;
  *) echo "[lint] expected --all or nothing; found \"$1\"; see scripts/lint.sh --help." >&2; exit 2 ;;
esac

git() { command git -c safe.directory="$PWD" "$@"; }  # the checkout may belong to another user, as in a container

files() {  # PATTERN...: tracked and untracked files on disk, without ignored ones
  git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
    if [ -f "$file" ]; then echo "$file"; fi
  done
}

check() {  # TITLE COMMAND...: prints the command's output if it fails
  local title=$1
  shift
  step "$title" "$@" && return
  sed -n "/^== $title: /,\$p" "$log" | tail -n +2 | grep -vE '^[0-9]+ warnings? (generated|treated)' | head -n 200
  echo "FAILED: $title"
  failures=$((failures + 1))
}

# The same, but fails if there are none: a check of nothing must not pass.
some_files() {
  local found
  found=$(files "$@")
  if [ -z "$found" ]; then
    echo "expected files $*; found none; run the script in a whole checkout."
    return 1
  fi
  echo "$found"
}

check_format() {
  local file status=0 sources
  if ! sources=$(some_files '*.h' '*.cpp' '*.cu' '*.cuh'); then echo "$sources"; return 1; fi
  while read -r file; do
    if ! clang-format-14 --dry-run -Werror "$file" 2> /dev/null; then
      echo "clang-format-14 -i $file"
      status=1
    fi
  done <<< "$sources"
  return $status
}

check_layers() {  # only base_heads() may read the last layer: its heads are the base of a head schedule
  [ -d prism/models ] || { echo "expected prism/models; found none; run the script in a whole checkout."; return 1; }
  if grep -rnE 'layers_?(\(\))?(\[0\]|\.(front|back|rbegin)\(\)|\.at\(0\)|\.begin\(\)->|\.end\(\) - 1)' prism |
    grep -vE '^prism/attention/layer_list\.cpp:[0-9]+:  return heads_of\(layers\.back\(\)\);'; then
    echo "this reads one layer as if it were every layer; use the list."
    return 1
  fi
}

check_paths() {
  local all
  if ! all=$(some_files .); then echo "$all"; return 1; fi
  # xargs runs grep several times, so that its status does not tell whether one of them found a path.
  if { xargs -d '\n' grep -nIE '(^|[^A-Za-z0-9_.}])/(work|root|home)/' <<< "$all" || true; } | grep .; then
    echo "this path exists on one machine only; make it relative, or take it from the user."
    return 1
  fi
}

check_shell() { some_files 'scripts/*.sh' 'tests/*.sh' .ci/run | xargs -d '\n' shellcheck -x -P SCRIPTDIR; }

base_commit() {
  local empty_tree=4b825dc642cb6eb9a060e54bf8d69288fbee4904 base
  for base in "${PRISM_LINT_BASE:-}" '@{upstream}' HEAD~1; do
    base=$([ -z "$base" ] || git merge-base HEAD "$base" 2> /dev/null) || continue
    # HEAD itself would leave nothing to check.
    if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
      echo "$base"
      return
    fi
  done
  echo $empty_tree
}

source_of() {  # HEADER: the source with its name, else the first that includes it, directly or through other headers
  local header=$1 source
  while [ -n "$header" ]; do
    source=${header%.h}.cpp
    [ -f "$source" ] || source=$({ grep -rlF --include='*.cpp' "#include \"$header\"" prism tests || true; } | sort | sed -n 1p)
    if [ -n "$source" ]; then
      echo "$source"
      return
    fi
    header=$({ grep -rlF --include='*.h' "#include \"$header\"" prism tests || true; } | sort | sed -n 1p)
  done
}

# Sources to check for the changed files, most changed lines first.
changed_sources() {
  local lines file
  {
    git diff --numstat "$(base_commit)" -- prism tests benchmarks
    git ls-files --others --exclude-standard -- prism tests benchmarks | while read -r file; do
      printf '%s\t0\t%s\n' "$(wc -l < "$file")" "$file"
    done
  } | sort -rn | while IFS=$'\t' read -r lines _ file; do
    if [ "$lines" = - ] || [ ! -f "$file" ]; then continue; fi
    case $file in
      *.cpp) echo "$file" ;;
      *.h) source_of "$file" ;;
    esac
  done | awk '!seen[$0]++'
}

# Filters standard input to sources that this build compiles; others have no compile command to check them with.
compiled() { grep -Fx -f <(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" build/lint/compile_commands.json) || true; }

check_tidy() {  # SOURCE...
  # clang does not know all of GCC's warning options.
  printf '%s\n' "$@" | xargs -d '\n' -P "$(build_jobs)" -n 1 \
    clang-tidy-14 -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option
}

start_log lint
ensure_packages "${build_packages[@]}" "${lint_packages[@]}"
ensure_torch
configure lint
failures=0

check "clang-format" check_format
check "include ranks: self-test" scripts/check_includes.py --self-test
check "include ranks" scripts/check_includes.py
check "class sizes: self-test" scripts/check_classes.py --self-test
check "class sizes" scripts/check_classes.py
check "names in unnamed namespaces: self-test" scripts/check_names.py --self-test
check "names in unnamed namespaces" scripts/check_names.py
check "messages: self-test" scripts/check_messages.py --self-test
check "messages" scripts/check_messages.py
check "results: self-test" scripts/check_results.py --self-test
check "results" scripts/check_results.py
check "pointers of papers.md: self-test" scripts/check_pointers.py --self-test
check "pointers of papers.md" scripts/check_pointers.py
check "no layer read as if it were all" check_layers
check "no absolute paths of a machine" check_paths
check "shellcheck" check_shell

if ! grep -qF "\"file\": \"$PWD/prism/" build/lint/compile_commands.json; then
  fail lint "expected the sources of this checkout in build/lint/compile_commands.json; found none; remove build/lint."
fi
if [ $tidy_most = all ]; then
  mapfile -t sources < <(files 'prism/*.cpp' 'tests/*.cpp' | compiled)
  tidy_most=${#sources[@]}
else
  mapfile -t sources < <(changed_sources | compiled)
fi
left_out=$((${#sources[@]} - tidy_most))
if [ $left_out -gt 0 ]; then echo "clang-tidy: left out $left_out changed sources; run scripts/lint.sh --all to check them"; fi
sources=("${sources[@]:0:tidy_most}")
if [ ${#sources[@]} -gt 0 ]; then check "clang-tidy: ${#sources[@]} sources" check_tidy "${sources[@]}"; fi

exec 9>&-
if [ $failures -gt 0 ]; then fail lint "expected all checks to pass; found $failures failing, shown above; see the full log $log."; fi
echo "lint: all checks passed"
