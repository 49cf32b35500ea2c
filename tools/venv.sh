#!/usr/bin/env bash
# Makes or reuses the virtual environment .venvs/NAME from tools/requirements/NAME.txt.
#
#   tools/venv.sh NAME                  make it if needed
#   tools/venv.sh NAME -- COMMAND ...   make it if needed, then run COMMAND with its bin/ first on PATH
#
# A stamp holds the hash of the requirements and of the interpreter's version, so a second run is instant.
# Only files whose hashes tools/requirements/hashes.lock knows are installed; tools/lock.py writes it.
# Set PYTHON to choose the interpreter (default python3). Status goes to stderr, one line.
set -euo pipefail

usage() {
  echo "usage: tools/venv.sh NAME [-- COMMAND ...]" >&2
  exit 2
}

[ $# -ge 1 ] || usage
name=$1
shift
case $name in
  '' | -* | */* | .*) usage ;;
esac
if [ $# -gt 0 ]; then
  [ "$1" = "--" ] || usage
  shift
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
requirements=$root/tools/requirements/$name.txt
venv=$root/.venvs/$name
stamp=$venv/.requirements.sha256
python=${PYTHON:-python3}

if [ ! -f "$requirements" ]; then
  echo "venv: there is no requirements file tools/requirements/$name.txt." >&2
  exit 2
fi

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
wanted=$({ echo "$version"; cat "$requirements"; } | sha256sum | cut -d' ' -f1)

make_venv() {
  local start=$SECONDS
  rm -rf "$venv"
  "$python" -m venv "$venv"
  python3 "$root/tools/lock.py" --print "$name" > "$venv/requirements.txt" || return 1
  # The list is complete and pinned, so the resolver has nothing to add. Modules are compiled when
  # they are imported: most of a framework never is.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes \
    --requirement "$venv/requirements.txt" 2> "$venv/pip.log" || {
    cat "$venv/pip.log" >&2
    return 1
  }
  echo "$wanted" > "$stamp"
  echo "venv: made .venvs/$name with Python $version in $((SECONDS - start)) s." >&2
}

# One builder at a time; the others wait and then find the stamp.
mkdir -p "$root/.venvs"
exec 9> "$root/.venvs/$name.lock"
flock 9
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
  echo "venv: reusing .venvs/$name." >&2
else
  make_venv
fi
flock -u 9
exec 9>&-

if [ $# -gt 0 ]; then
  export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
  exec "$@"
fi
