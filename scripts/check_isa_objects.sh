#!/usr/bin/env bash
# No function that several sources define may be compiled for one instruction set: the linker keeps one of them for all, and a
# processor without that instruction set would run it.
#
#   scripts/check_isa_objects.sh OBJECT...     objects of kernels; those named for an instruction set are looked through
#
# A lambda of a table (kAvx2, kAmxBf16, ...) carries the table's name, which one source alone defines.
set -euo pipefail

found=0 looked=0
for object in "$@"; do
  case "$object" in
    *avx*.cpp.o | *amx*.cpp.o) ;;
    *) continue ;;
  esac
  looked=$((looked + 1))
  # Lambdas of a table carry the table's name, which only their source has.
  shared=$(nm -C "$object" | awk '$2 == "W"' | grep -v 'prism::[a-z]*::kA[A-Za-z0-9]*::{lambda' || true)
  if [ -n "$shared" ]; then
    found=1
    echo "[isa] expected no function of $object that other sources may define too; found:"
    echo "$shared"
  fi
done
if [ "$looked" = 0 ]; then
  echo "[isa] expected objects of kernels for instruction sets; found none of them; name those of prism_cpu_kernels."
  exit 2
fi
exit $found
