#!/usr/bin/env bash
# Makes everything that prism needs on Debian 12, then builds it: packages (as root, or with sudo), LibTorch into .venv,
# build/release. Safe to run again and again; seconds when nothing is missing. The full log is build/setup.log.
#
#   scripts/setup.sh
#   scripts/setup.sh --cuda     with all that LibTorch needs for --device cuda (5 GB instead of 1.2)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  "") ;;
  --cuda) use_cuda_wheels ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' scripts/setup.sh; exit 0 ;;
  *) echo "[setup] expected no argument or --cuda; found \"$1\"; see scripts/setup.sh --help." >&2; exit 2 ;;
esac

start_log setup
ensure_packages "${build_packages[@]}"
ensure_torch
configure release
build release
