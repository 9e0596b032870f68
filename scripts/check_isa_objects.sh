#!/usr/bin/env bash
# Checks that objects compiled for one instruction set define no function that other sources may define too. The linker
# keeps one copy for the whole program, and a processor without that instruction set could then run it.
#
#   scripts/check_isa_objects.sh OBJECT...     objects of kernels; checks those named after an instruction set
#
# Lambdas of a table (kAvx2, kAmxBf16, ...) are allowed: their names contain the table's, which only one source defines.
set -euo pipefail

found=0 looked=0
for object in "$@"; do
  case "$object" in
    *avx*.cpp.o | *amx*.cpp.o) ;;
    *) continue ;;
  esac
  looked=$((looked + 1))
  # Leaves out the lambdas of tables.
  shared=$(nm -C "$object" | awk '$2 == "W"' | grep -v 'prism::[a-z]*::kA[A-Za-z0-9]*::{lambda' || true)
  if [ -n "$shared" ]; then
    found=1
    echo "[isa] expected no function in $object that other sources may define too; found:"
    echo "$shared"
  fi
done
if [ "$looked" = 0 ]; then
  echo "[isa] expected objects of kernels for instruction sets; found none; name the objects of prism_cpu_kernels."
  exit 2
fi
exit $found
