#!/usr/bin/env bash
# Every check of scripts/lint.sh closes: one fault for each is put into a copy of the tree, and each check must fail.
#
#   tests/scripts/gates_test.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$root"
git -c safe.directory="$root" ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$folder" --no-dereference
ln -s "$root/.venv" "$folder/.venv"
cd "$folder"
git init -q
git add -A
git -c user.name=test -c user.email=test@test commit -q -m "the tree"

fault() { printf '%s\n' "$2" >> "$1"; }  # FILE LINE

fault prism/core/random.cpp 'int  badly_formatted ;'
fault prism/serving/server_fault.cpp '#include <torch/types.h>'
{
  echo '#pragma once'
  echo 'class TooLarge {'
  for i in $(seq 30); do echo "  void method_$i();"; done
  echo '};'
} > prism/core/too_large.h
for name in one another; do printf 'namespace {\nint twice() {\n  return 0;\n}\n}  // namespace\n' > "prism/core/$name.cpp"; done
fault prism/core/another.cpp 'void f() { throw InputError("test", "expected a number; found a word."); }'
sed -i '0,/| 0\.[0-9]*/s//| 0.123456/' docs/results/sparse-prefill.md
fault docs/papers.md "| 1 | one | \`core/absent.cpp: absent\` |"
fault prism/models/cost.cpp 'int heads_of_all(const ModelConfig& config) { return config.layers[0].heads; }'
machine_path=$(printf "/%s/" root)
fault README.md "See ${machine_path}prism."
# shellcheck disable=SC2016  # meant as written
printf '%s\n' '#!/usr/bin/env bash' 'rm $1' > scripts/fault.sh
# In a header of a sub-folder.
fault prism/kernels/simd/exp2.h 'inline const char* none() { return 0; }'

git add -A
git -c user.name=test -c user.email=test@test commit -q -m "the faults"

status=0
PRISM_LINT_BASE=HEAD~1 scripts/lint.sh > output 2>&1 || status=$?
cat output
expected=$(grep -oP '^(if .*; then )?check "\K[^":$]+' "$root/scripts/lint.sh" | sort -u)
failed=$(sed -n 's/^FAILED: \([^:]*\).*/\1/p' output | sort -u)
if [ "$status" -ne 1 ] || [ "$failed" != "$expected" ]; then
  printf 'expected exit status 1 and that these checks fail:\n%s\nfound status %s and:\n%s\n' "$expected" "$status" "$failed"
  exit 1
fi
for words in 'serving/server_fault\.cpp:1: prism/serving/ is a folder without torch' 'core/too_large\.h: expected at most' \
  'too_large|core/one|core/another' 'README\.md:.*prism' 'SC2086'; do
  if ! grep -qE "$words" output; then echo "expected $words in the output of lint.sh; found none"; exit 1; fi
done
if ! grep -q 'kernels/simd/exp2\.h:.*error' output; then echo "expected clang-tidy to check headers of sub-folders"; exit 1; fi
echo "each of $(wc -l <<< "$expected") checks fails on its fault"
