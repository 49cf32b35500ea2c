#!/usr/bin/env bash
# Builds and runs the C++ tests under the sanitizers: tests/sanitize.sh
#
# asan (with ubsan): all modules but the programs, and the fault-injection programs. tsan: the modules with threads.
# Exit status 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."

threaded='base|storage|writer|hook|trial|watch|server'
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

# The executables build/<preset>/<module>_test, one process each.
run() {
  local preset=$1 pattern=$2 test
  for test in build/"$preset"/*_test; do
    [[ $(basename "$test") =~ ^($pattern)_test$ ]] || continue
    count "$test" "$test" --gtest_brief=1
  done
}

count "build asan" tools/build.sh asan
run asan '.*'
count "kills under asan" python3 tests/fault/kill_test.py --build build/asan --kills 20 --any-share
count "signals under asan" python3 tests/fault/signal_test.py --build build/asan

count "build tsan" tools/build.sh tsan
run tsan "$threaded"
count "signals under tsan" python3 tests/fault/signal_test.py --build build/tsan

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
