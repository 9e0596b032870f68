# Functions that the scripts share. To be sourced, not run. Changes to the repository's root; paths are relative to it.
#
#   source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
#   start_log setup
#   ensure_packages "${build_packages[@]}"; ensure_torch; configure release; build release
#
# Each step prints one line with its seconds; its output goes to build/<script>.log. A failure ends the script with one
# sentence: [operation] expected ...; found ...; way out.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck disable=SC2034  # used by the scripts that source this file
build_packages=(
  cmake ninja-build g++ ccache pkg-config python3 python3-venv ca-certificates
  libcli11-dev nlohmann-json3-dev libfmt-dev libpcre2-dev libutf8proc-dev libboost-iostreams-dev libcsv-dev
  libgtest-dev
  gnuplot-nox xz-utils zstd gzip bible-kjv
)
# shellcheck disable=SC2034
lint_packages=(git clang-format-14 clang-tidy-14 libomp-14-dev shellcheck)  # libomp: clang cannot read GCC's omp.h
# shellcheck disable=SC2034
fuzz_packages=(clang-14 libfuzzer-14-dev libomp-14-dev)  # libomp: CMake looks for OpenMP
# shellcheck disable=SC2034
browser_packages=(chromium chromium-driver)  # a test opens the live view in it
# The dependencies of the wheel that a CPU program needs: libtorch_cpu.so links only the CUDA run time and CUPTI.
wheels=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
no_deps=--no-deps
# For a GPU: all dependencies of the wheel, 5 GB. LibTorch is the same.
use_cuda_wheels() { wheels=(torch==2.11.0) no_deps='' disk_needed_mb=9000; }
disk_needed_mb=4000     # wheels (1.2 GB) and their download, two build folders, packages
memory_per_job_mb=1500  # one compiler run over LibTorch's headers

log=build/setup.log

find_program() {  # OPERATION: sets $prism to PRISM_PROGRAM if set, else builds it with scripts/setup.sh
  prism=${PRISM_PROGRAM:-build/release/bin/prism}
  if [ -z "${PRISM_PROGRAM:-}" ]; then
    scripts/setup.sh
  elif [ ! -x "$prism" ]; then
    fail "$1" "expected PRISM_PROGRAM to name a program; found $prism; unset it to build one."
  fi
}

# The beginnings of five novels, one document each. CHARACTERS FOLDER
cut_novels() {
  mkdir -p "$2"
  for novel in "${PRISM_DATA:-../shared/data}"/gutenberg_novels/long/*.txt.xz; do
    # The length in characters, so that no character is cut.
    xz -dc "$novel" | python3 -c 'import sys; sys.stdout.write(sys.stdin.read()[:int(sys.argv[1])])' "$1" > "$2/$(basename "$novel" .xz)"
  done
}

start_log() {  # NAME: steps write to build/NAME.log from now on; first waits for other scripts that set up this folder
  mkdir -p build || fail "$1" "expected to write into $PWD; found that it is not writable; use your own copy."
  exec 9> build/.lock
  flock -n 9 || { echo "another script is setting up this folder; waiting for it"; flock 9; }
  log=build/$1.log
  : > "$log"  # after waiting, because another script may have been writing to it
  # ccache fails if it cannot write its cache.
  if [ ! -w "${HOME:-/nonexistent}" ]; then export CCACHE_DIR=$PWD/build/ccache; fi
}

fail() {  # OPERATION SENTENCE
  echo "[$1] $2" >&2
  exit 1
}

now() { date +%s.%N; }

seconds_since() {  # START: "12.3"
  awk -v start="$1" -v end="$(now)" 'BEGIN { printf "%.1f", end - start }'
}

step() {  # TITLE COMMAND...: runs the command into the log, prints title and seconds, returns the command's status
  local title=$1 start status=0 watcher=
  shift
  start=$(now)
  echo "== $title: $*" >> "$log"
  if [ -t 1 ]; then
    # On a terminal, shows the log's last line as progress.
    (
      while sleep 1 && kill -0 $$ 2> /dev/null; do
        printf '\r\033[K%s: %s' "$title" "$(tail -n 1 "$log" | tr -d '\r' | cut -c 1-$((${COLUMNS:-80} - ${#title} - 4)))"
      done
    ) 9>&- &
    watcher=$!
  fi
  "$@" >> "$log" 2>&1 9>&- < /dev/null || status=$?
  if [ -n "$watcher" ]; then
    kill "$watcher"
    wait "$watcher" 2> /dev/null || true
    printf '\r\033[K'
  fi
  [ $status -eq 0 ] && printf '%-44s %6s s\n' "$title" "$(seconds_since "$start")"
  return $status
}

free_disk_mb() { df -Pm . | awk 'NR == 2 { print $4 }'; }

# Free memory including swap, at most the container's limit.
free_memory_mb() {
  local free limit
  free=$(awk '/^(MemAvailable|SwapFree):/ { sum += $2 } END { printf "%.0f", sum / 1024 }' /proc/meminfo)
  for limit in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    if [ -r $limit ] && [ "$(cat $limit)" != max ]; then
      limit=$(awk '{ printf "%.0f", $1 / 1048576 }' $limit)
      if [ "$limit" -lt "$free" ]; then free=$limit; fi
      break
    fi
  done
  echo "$free"
}

# One job per core, fewer if memory is short.
build_jobs() {
  local jobs free
  jobs=$(env -u OMP_NUM_THREADS nproc)
  free=$(free_memory_mb)
  if [ $((jobs * memory_per_job_mb)) -gt "$free" ]; then jobs=$((free / memory_per_job_mb)); fi
  echo $((jobs > 0 ? jobs : 1))
}

check_machine() {
  local system
  system="$(uname -s) on $(uname -m)"
  [ "$system" = "Linux on x86_64" ] ||
    fail setup "expected Linux on x86_64, the only platform prism is built and tested on; found $system; use such a machine."
}

check_disk() {
  local free
  free=$(free_disk_mb)
  [ "$free" -ge $disk_needed_mb ] ||
    fail setup "expected $disk_needed_mb MB free in $PWD for LibTorch and the build; found $free MB; free some space and run again."
}

check_memory() {
  local free
  free=$(free_memory_mb)
  [ "$free" -ge $memory_per_job_mb ] ||
    fail setup "expected $memory_per_job_mb MB of free memory to compile; found $free MB; close programs or add swap, then run again."
}

# ---- packages

missing_packages() {  # PACKAGE...: prints the packages that are not installed, one per line
  comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2> /dev/null | sed -n 's/^installed //p' | sort)
}

# Prints the prefix that runs a command as root, empty if this is root. Fails if neither root nor sudo is available.
root_prefix() {
  if [ "$(id -u)" -eq 0 ]; then return 0; fi
  command -v sudo > /dev/null || return 1
  if [ -t 0 ] || sudo -n true 2> /dev/null; then echo sudo; else return 1; fi
}

apt_get() {  # PREFIX ARGUMENT...
  local prefix=$1
  shift
  # Treats a mirror that does not answer as an error, and waits for another running apt.
  $prefix env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o APT::Update::Error-Mode=any -o Acquire::http::Timeout=30 \
    -o Acquire::Retries=2 -o DPkg::Lock::Timeout=300 "$@"
}

apt_install() {  # PREFIX PACKAGE...: if it fails with the current package lists (missing or old), updates and retries
  apt_get "$1" install --no-install-recommends "${@:2}" && return
  apt_get "$1" update && apt_get "$1" install --no-install-recommends "${@:2}"
}

ensure_packages() {  # PACKAGE...
  check_machine
  local names prefix start
  start=$(now)
  if ! command -v apt-get > /dev/null; then
    [ -z "${PRISM_SKIP_PACKAGES:-}" ] || return 0
    fail setup "expected Debian 12 with apt-get; found $(. /etc/os-release 2> /dev/null; echo "${PRETTY_NAME:-an unknown system}"); install what Debian calls $* and set PRISM_SKIP_PACKAGES=1."
  fi
  names=$(missing_packages "$@" | tr '\n' ' ')
  names=${names% }
  if [ -z "$names" ]; then
    printf '%-44s %6s s\n' "packages: all installed" "$(seconds_since "$start")"
    return
  fi
  prefix=$(root_prefix) ||
    fail setup "expected root or sudo to install packages; found neither; ask for: apt-get install $names"
  check_disk
  # shellcheck disable=SC2086  # names is a list of words
  step "packages: $(wc -w <<< "$names") installed" apt_install "$prefix" $names && return
  if grep -q 'No space left on device' "$log"; then check_disk; fi
  if grep -qE 'Could not resolve|Could not connect|Unable to connect|Connection (failed|timed out|refused)|Network is unreachable|Failed to fetch' "$log"; then
    fail setup "expected to download packages with apt-get; found no network (see $log); connect to a network or fix /etc/apt/sources.list, then run again."
  fi
  fail setup "expected apt-get to install $names; found: $(grep '^E: ' "$log" | tail -n 1); see $log."
}

# ---- LibTorch

torch_is_whole() {
  # .venv/wheels is written last, so an interrupted pip leaves none.
  local installed
  installed=$(cat .venv/wheels 2> /dev/null)
  # The full set of wheels also works where the small one is asked for.
  [ "$installed" = "${wheels[*]}" ] || { [ -n "$no_deps" ] && [ "$installed" = "${wheels[0]}" ]; } || return 1
  local root
  root=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2> /dev/null) || return 1
  [ -s "$root/torch/lib/libtorch_cpu.so" ] && [ -s "$root/torch/lib/libc10.so" ] && [ -d "$root/nvidia/cu13/lib" ]
}

make_venv() {
  rm -rf .venv
  # Prefers Debian's python3, because the package python3-venv works only with it.
  local python=/usr/bin/python3
  [ -x $python ] || python=python3
  $python -m venv .venv
}

install_wheels() {
  # Not /tmp: it is often small and in memory. Chained by &&, because set -e has no effect in a command of step().
  mkdir -p build/pip &&
  TMPDIR=$PWD/build/pip .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off \
    --retries 2 --timeout 30 --no-compile ${no_deps:+"$no_deps"} "${wheels[@]}" &&
  echo "${wheels[*]}" > .venv/wheels
}

ensure_torch() {
  local start title="LibTorch ${wheels[0]#*==}" reason
  start=$(now)
  if torch_is_whole; then
    printf '%-44s %6s s\n' "$title: in .venv" "$(seconds_since "$start")"
    return
  fi
  check_disk
  step "$title: new .venv" make_venv ||
    fail setup "expected python3 -m venv to make $PWD/.venv; found: $(tail -n 1 "$log"); install python3 and python3-venv."
  step "$title: downloaded into .venv" install_wheels && rm -rf build/pip && return
  rm -rf build/pip
  reason=$(grep -E '^ERROR' "$log" | tail -n 1)
  if grep -q 'No space left on device' "$log"; then
    fail setup "expected $disk_needed_mb MB free for LibTorch; found the disk full ($(free_disk_mb) MB left); free some space and run again."
  fi
  if grep -qE 'from versions: none|NewConnectionError|ReadTimeout|Connection broken|Max retries' "$log"; then
    fail setup "expected to download ${wheels[*]} with pip; found no network (see $log); connect to a network or set PIP_INDEX_URL to a mirror, then run again."
  fi
  fail setup "expected pip to install ${wheels[*]}; found: ${reason:-status 1}; see $log."
}

# Installs TensorBoard, with which a slow test reads event files.
ensure_tensorboard() {
  local package=tensorboard==2.20.0
  if .venv-tensorboard/bin/python -m pip freeze --disable-pip-version-check 2> /dev/null | grep -qxF $package; then return; fi
  step "TensorBoard: new .venv-tensorboard" python3 -m venv --clear .venv-tensorboard ||
    fail test "expected python3 -m venv to make $PWD/.venv-tensorboard; found: $(tail -n 1 "$log"); install python3-venv."
  step "TensorBoard: downloaded" .venv-tensorboard/bin/python -m pip install --disable-pip-version-check --no-input $package \
    'setuptools<81' ||
    fail test "expected pip to install $package; found: $(tail -n 1 "$log"); connect to a network and run again."
}

# ---- configure and build

configure() {  # PRESET
  step "configure $1" cmake --preset "$1" && return
  # The CMake cache may come from a moved folder or another compiler.
  step "configure $1, afresh" cmake --fresh --preset "$1" && return
  tail -n 20 "$log" >&2
  fail setup "expected cmake to configure the preset $1; found the errors above; see $log."
}

build() {  # PRESET [TARGET...]
  check_memory
  local preset=$1 jobs
  shift
  jobs=$(build_jobs)
  step "build $preset, $jobs jobs" ninja -C "build/$preset" -j "$jobs" "$@" && return
  sed -n '/^== build/,$p' "$log" | grep -A 40 -m 1 '^FAILED' >&2 || tail -n 20 "$log" >&2
  if grep -qE 'Killed signal|out of memory|cannot allocate memory' "$log"; then
    fail setup "expected enough memory to compile with $jobs jobs; found that the compiler was killed; close programs or add swap."
  fi
  fail setup "expected ninja to build $preset; found the errors above; see $log."
}
