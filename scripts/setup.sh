#!/usr/bin/env bash
# Installs what prism needs on Debian 12 (packages as root or with sudo, LibTorch into .venv) and builds build/release.
# Can be run repeatedly; takes seconds if nothing is missing. The full log is build/setup.log.
#
#   scripts/setup.sh
#   scripts/setup.sh --cuda     also installs what LibTorch needs for --device cuda (5 GB instead of 1.2)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  "") ;;
  --cuda) use_cuda_wheels ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' scripts/setup.sh; exit 0 ;;
  *) echo "[setup] expected --cuda or nothing; found \"$1\"; see scripts/setup.sh --help." >&2; exit 2 ;;
esac

start_log setup
ensure_packages "${build_packages[@]}"
ensure_torch
configure release
build release
