#!/usr/bin/env bash
# Configures and builds a preset of CMakePresets.json: tools/build.sh PRESET [TARGET...]
#
# Who asks for a preset that somebody else is building waits for it. The output is kept in
# build/logs/build-PRESET.log and shown if the build fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -ge 1 ] || { echo "usage: tools/build.sh PRESET [TARGET...]" >&2; exit 2; }
preset=$1
shift
log=build/logs/build-$preset.log
mkdir -p build/logs
exec 9> "build/logs/build-$preset.lock"
flock 9
{ cmake --preset "$preset" && cmake --build --preset "$preset" -j "$(nproc)" ${@:+--target "$@"}; } > "$log" 2>&1 < /dev/null || {
  grep -E -m40 'error|FAILED|Error' "$log" >&2 || tail -40 "$log" >&2
  exit 1
}
