#!/usr/bin/env bash
# Builds and runs the C++ tests under the sanitizers: tests/sanitize.sh
#
# asan (with ubsan): all modules and the fault-injection programs. tsan: the modules with threads.
# Exit status 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."

threaded='base|storage|packed|writer|hook|trial|watch'
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

# build PRESET [TARGET ...]
build() {
  local preset=$1
  shift
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" > /dev/null || return 1
  cmake --build "build/$preset" -j2 ${1:+--target "$@"} > "build/$preset/build.log" ||
    { tail -40 "build/$preset/build.log"; return 1; }
}

# The executables build/<preset>/<module>_test, one process each.
run() {
  local preset=$1 pattern=$2 test
  for test in build/"$preset"/*_test; do
    [[ $(basename "$test") =~ ^($pattern)_test$ ]] || continue
    count "$test" "$test" --gtest_brief=1
  done
}

count "build asan" build asan
run asan '.*'
count "kills under asan" python3 tests/fault/kill_test.py --build build/asan --kills 20 --any-share
count "signals under asan" python3 tests/fault/signal_test.py --build build/asan

count "build tsan" build tsan {base,storage,writer,hook,trial,watch}_test smd_fault_recorder smd_fault_checker
run tsan "$threaded"
count "signals under tsan" python3 tests/fault/signal_test.py --build build/tsan

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
