#!/usr/bin/env bash
# Builds and runs the C++ tests under the sanitizers: tests/sanitize.sh
#
# asan (with ubsan): all modules but the programs, and the fault-injection programs. tsan: the modules with threads;
# what is tried with every element type has none.
# Exit status 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."

threaded='base|storage|gpu|writer|hook|trial|watch|server'
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=0 exitcode=66"

passed=0
failed=0
count() {
  if "${@:2}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
  fi
}

# The executables build/<preset>/<module>_test, as many at once as there are cores.
run() {
  local preset=$1 pattern=$2 logs test names=()
  logs=$(mktemp -d)
  for test in build/"$preset"/*_test; do
    [[ $(basename "$test") =~ ^($pattern)_test$ ]] && names+=("$(basename "$test")")
  done
  printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I NAME sh -c \
    '"$0" --gtest_brief=1 > "$1.log" 2>&1 && : > "$1.passed"' build/"$preset"/NAME "$logs"/NAME
  for test in "${names[@]}"; do
    cat "$logs/$test.log"
    count "build/$preset/$test" test -e "$logs/$test.passed"
  done
  rm -rf "$logs"
}

count "build asan" tools/build.sh asan
run asan '.*'
count "kills under asan" python3 tests/fault/kill_test.py --build build/asan --kills 20 --any-share
count "signals under asan" python3 tests/fault/signal_test.py --build build/asan

count "build tsan" tools/build.sh tsan
GTEST_FILTER='-Types/*' run tsan "$threaded"
count "signals under tsan" python3 tests/fault/signal_test.py --build build/tsan

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
