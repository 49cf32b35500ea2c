#!/usr/bin/env bash
# Runs every fuzz target for a while: fuzz/run.sh [SECONDS=30] [TARGET...]
#
# Builds the preset `asan` when needed. New inputs gather in build/fuzz/corpus, inputs that break
# something in build/fuzz/crashes. The seed is fixed, so that a fresh machine repeats what another
# one saw; SEED=N asks for another. Exit status 1 if any target failed.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-30}
shift || true
build=build/fuzz

tools/build.sh asan

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in fuzz/*_fuzz.cpp; do targets+=("$(basename "$source" _fuzz.cpp)"); done
fi

# Says how it went; fails if the target did.
fuzz() {
  local target=$1 status=0
  local grown=$build/corpus/$target seeds=fuzz/corpus/$target log=$build/$target.log
  mkdir -p "$grown"
  "build/asan/fuzz/${target}_fuzz" "$grown" "$seeds" -seed="${SEED:-1}" -max_total_time="$seconds" \
    -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=10 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$target-" > "$log" 2>&1 || status=$?
  local executions coverage
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  echo "$target: ${executions:-?} executions, coverage ${coverage:-?}"
  [ $status -eq 0 ] && return 0
  grep -m1 -E '^SUMMARY|not true:|runtime error:' "$log" | sed 's/^/  /' || true
  sed -n "s|.*Test unit written to |  reproducer: $PWD/|p" "$log"
  return 1
}

# One target per processor at a time.
passed=0
failed=0
mkdir -p $build/crashes
wait_for_one() {
  if wait -n; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
running=0
for target in "${targets[@]}"; do
  if [ $running -eq "$(nproc)" ]; then
    wait_for_one
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
for ((; running > 0; running--)); do wait_for_one; done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
