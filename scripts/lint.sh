#!/usr/bin/env bash
# Everything that is checked without running the program. Sets up what it needs (clang-format 14, clang-tidy 14, shellcheck,
# LibTorch's headers), checks all files, and clang-tidy on those that changed.
#
#   scripts/lint.sh           changed: against PRISM_LINT_BASE, else the upstream branch, else the commit before
#   scripts/lint.sh --all     clang-tidy on every source; half an hour
#
# clang-tidy takes half a minute for a source that includes LibTorch, so of a large change only the 20 sources with the most
# changed lines are checked, and the others counted.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tidy_most=20
case "${1:-}" in
  "") ;;
  --all) tidy_most=all ;;
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' scripts/lint.sh; exit 0 ;;
  *) echo "[lint] expected --all or nothing; found \"$1\"; see scripts/lint.sh --help." >&2; exit 2 ;;
esac

git() { command git -c safe.directory="$PWD" "$@"; }  # the checkout may belong to another user, as in a container

files() {  # PATTERN...: tracked files and new ones that are not ignored, as they are on disk
  git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
    if [ -f "$file" ]; then echo "$file"; fi
  done
}

check() {  # TITLE COMMAND...: prints what the command says when it fails
  local title=$1
  shift
  step "$title" "$@" && return
  sed -n "/^== $title: /,\$p" "$log" | tail -n +2 | grep -vE '^[0-9]+ warnings? (generated|treated)' | head -n 200
  echo "FAILED: $title"
  failures=$((failures + 1))
}

check_format() {
  local file status=0
  while read -r file; do
    if ! clang-format-14 --dry-run -Werror "$file" 2> /dev/null; then
      echo "clang-format-14 -i $file"
      status=1
    fi
  done < <(files '*.h' '*.cpp' '*.cu' '*.cuh')
  return $status
}

check_layers() {  # base_heads() alone may ask for the last layer: the base of a head schedule is its heads
  if grep -rnE 'layers_?(\(\))?(\[0\]|\.(front|back|rbegin)\(\)|\.at\(0\)|\.end\(\) - 1)' prism |
    grep -vE '^prism/attention/layer_list\.cpp:[0-9]+:  return heads_of\(layers\.back\(\)\);'; then
    echo "one layer speaks for all of them; take the list."
    return 1
  fi
}

check_paths() {
  if files . | xargs -d '\n' grep -nIE '(^|[^A-Za-z0-9_.}])/(work|root|home)/'; then
    echo "a path of one machine; make it relative, or take it from the user."
    return 1
  fi
}

check_shell() { files 'scripts/*.sh' 'tests/*.sh' .ci/run | xargs -d '\n' shellcheck -x -P SCRIPTDIR; }

base_commit() {
  local empty_tree=4b825dc642cb6eb9a060e54bf8d69288fbee4904 base
  for base in "${PRISM_LINT_BASE:-}" '@{upstream}' HEAD~1; do
    base=$([ -z "$base" ] || git merge-base HEAD "$base" 2> /dev/null) || continue
    # On the upstream branch itself nothing would be left to check.
    if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
      echo "$base"
      return
    fi
  done
  echo $empty_tree
}

# Sources to check for the changed files, most changed lines first; a header stands for the source of its name, or else for
# the first that includes it.
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
      *.h)
        if [ -f "${file%.h}.cpp" ]; then
          echo "${file%.h}.cpp"
        else
          { grep -rlF --include='*.cpp' "#include \"$file\"" prism tests || true; } | sort | sed -n 1p
        fi ;;
    esac
  done | awk '!seen[$0]++'
}

# Those of the sources on standard input that this build compiles: others have no command to check them with.
compiled() { grep -Fx -f <(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" build/lint/compile_commands.json) || true; }

check_tidy() {  # SOURCE...
  # GCC's warning options that clang does not know are no fault.
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
check "no layer speaks for all" check_layers
check "no machine's paths" check_paths
check "shellcheck" check_shell

if [ $tidy_most = all ]; then
  mapfile -t sources < <(files 'prism/*.cpp' 'tests/*.cpp' | compiled)
  tidy_most=${#sources[@]}
else
  mapfile -t sources < <(changed_sources | compiled)
fi
left_out=$((${#sources[@]} - tidy_most))
if [ $left_out -gt 0 ]; then echo "clang-tidy: $left_out changed sources left out, see scripts/lint.sh --all"; fi
sources=("${sources[@]:0:tidy_most}")
if [ ${#sources[@]} -gt 0 ]; then check "clang-tidy: ${#sources[@]} sources" check_tidy "${sources[@]}"; fi

exec 9>&-
if [ $failures -gt 0 ]; then fail lint "expected all checks to pass; found $failures failing, shown above; the full log is $log."; fi
echo "lint: all checks passed"
