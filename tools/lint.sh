#!/usr/bin/env bash
# Checks formatting, types, layers and the form of the documents; with --fix mends the formatting first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=.venvs/dev/bin
mapfile -t cpp < <(git ls-files '*.cpp' '*.h' '*.c')
failed=0
passed=0

run() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    echo "lint: $name failed" >&2
    failed=$((failed + 1))
  fi
}

if [ "${1:-}" = "--fix" ]; then
  clang-format-14 -i "${cpp[@]}"
  "$bin/ruff" format -q .
  "$bin/ruff" check -q --fix . || true
fi

run clang-format clang-format-14 --dry-run -Werror "${cpp[@]}"
run ruff "$bin/ruff" check -q .
run "ruff format" "$bin/ruff" format -q --check .
run mypy "$bin/mypy" --no-error-summary
run layers "$bin/python" tools/check_layers.py
run documents "$bin/python" -m pytest -q --no-header tests/docs/test_docs.py -k "not examples"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
