#!/usr/bin/env bash
# Builds the packaged source, a wheel from it without Node.js, installs that into a fresh environment and uses it as
# a new user would.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

check() {
  local name=$1
  shift
  if "$@" > "$work/out" 2>&1; then
    passed=$((passed + 1))
  else
    echo "wheel: $name failed"
    cat "$work/out"
    failed=$((failed + 1))
  fi
}

python=$PWD/.venvs/dev/bin/python
"$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$work/sdist" \
  > "$work/out" 2>&1 || { cat "$work/out"; exit 1; }
sdist=$(echo "$work"/sdist/smdebug-*.tar.gz)
mkdir "$work/source" "$work/none"
tar --extract --strip-components=1 --directory "$work/source" --file "$sdist"
# Whoever calls these is found out.
for name in node npm npx; do
  printf '#!/bin/sh\necho %s >> "%s/called"\nexit 1\n' "$name" "$work" > "$work/none/$name"
  chmod +x "$work/none/$name"
done

# Objects of the same source are taken from the cache, wherever it lies, if the compiler has the same name.
export CC=cc CXX=c++
export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
export CCACHE_BASEDIR=$work/source CCACHE_NOHASHDIR=1
PATH=$work/none:$PATH "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$work/dist" "$work/source"
wheel=$(echo "$work"/dist/smdebug-*.whl)
echo "wheel: built $(basename "$wheel")"
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"

check "stub and typing marker are in the wheel" \
  bash -c "python3 -m zipfile -l '$wheel' | grep -q 'smdebug/_core.pyi' && python3 -m zipfile -l '$wheel' | grep -q 'smdebug/py.typed'"
check "the built page is in the packaged source" cmp viewer/dist/index.html "$work/source/viewer/dist/index.html"
check "installed packages of Node.js are not" \
  bash -c "! tar --list --file '$sdist' | grep node_modules"
check "building needs no Node.js" test ! -e "$work/called"
cd "$work"
check "a run is recorded and read back" "$work/venv/bin/python" - << 'PY'
import pathlib

import numpy as np

import smdebug

assert "site-packages" in smdebug.__file__, smdebug.__file__
with smdebug.Hook(out_dir="run", save_config=smdebug.SaveConfig(save_interval=1)) as hook:
    for step in range(3):
        hook.step()
        hook.save_tensor("w", np.full((2, 3), step, np.float32))
        hook.save_scalar("loss", 1.0 / (step + 1))
[path] = pathlib.Path("run/events").glob("000000000002/*.tfevents")
records = {r.name: r.value for r in smdebug._core.read_event_file(str(path))}
assert (records["w"] == 2).all() and records["w"].shape == (2, 3), records
assert records["scalar/loss"][0] == 1 / 3
PY
check "the program says its version" bash -c "[ \"\$('$work/venv/bin/smdebug' --version)\" = \
  \"smdebug \$('$work/venv/bin/python' -c 'import smdebug; print(smdebug.__version__)')\" ]"
check "the program verifies the run" "$work/venv/bin/smdebug" verify --deep run
check "the page is in the program" "$work/venv/bin/python" - "$work/venv/bin/smdebug" << 'PY'
import re
import subprocess
import sys
import urllib.request

server = subprocess.Popen([sys.argv[1], "serve", "run", "--port", "0"], stdout=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://\S+", server.stdout.readline())[0]
    with urllib.request.urlopen(address) as answer:
        page = answer.read().decode()
finally:
    server.terminate()
    server.wait()
assert "smdebug" in page and "was not built" not in page, page[:1000]
PY
check "the program hands commands over to the interpreter beside it" \
  env -i "$work/venv/bin/python" - << 'PY'
import json
import pathlib
import subprocess
import sys

program = pathlib.Path(sys.prefix) / "bin/smdebug"
done = subprocess.run([program, "environment", "--json"], env={}, capture_output=True, check=True)
assert json.loads(done.stdout)["executable"].startswith(sys.prefix), done.stdout
PY
check "the manual page is installed" grep -q '^.TH SMDEBUG 1' "$work/venv/share/man/man1/smdebug.1"
check "an interpreter that starts without a configuration is left alone" \
  env -i "$work/venv/bin/python" -c "import sys; assert 'smdebug_activation' not in sys.modules"
check "an interpreter that starts with a configuration is activated, by the .pth file" \
  env -i SMDEBUG_CONFIG_FILE_PATH=x.json "$work/venv/bin/python" -I -c "
import sys
assert type(sys.meta_path[0]).__module__ == 'smdebug_activation', sys.meta_path
assert 'torch' in sys.meta_path[0].names and 'numpy' not in sys.modules and 'smdebug' not in sys.modules
"
check "a program is run by the installed command, and its children are activated" \
  env -i "$work/venv/bin/smdebug" run --out none "$work/venv/bin/python" -c "
import subprocess, sys
child = 'import smdebug_activation; assert smdebug_activation.find_finder() is not None'
subprocess.run([sys.executable, '-c', child], check=True)
"
check "the old import paths work" "$work/venv/bin/python" -c "
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.modes import ModeKeys
from smdebug.core.reader import FileReader
from smdebug.core.writer import FileWriter
from smdebug.exceptions import StepUnavailable
"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
