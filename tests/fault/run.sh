#!/usr/bin/env bash
# Faults with real processes: kills at random moments, disks that fail, signals.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Mounting a small disk needs root.
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)

status=0
python3 tests/fault/kill_test.py --kills 480 || status=1
python3 tests/fault/s3_kill_test.py --kills 80 || status=1
"${sudo[@]}" python3 tests/fault/disk_test.py || status=1
python3 tests/fault/signal_test.py || status=1
PYTHONPATH=python tools/venv.sh dev -- python tests/fault/large_test.py || status=1
exit $status
