#!/usr/bin/env bash
# Runs a command in a folder that has a package.json, with Node.js and the packages of its lock file.
#
#   tools/node.sh FOLDER COMMAND ...
#
# Packages are installed when the lock file has changed. Where Node.js is missing or too old, the one
# of .venvs/node is used.
set -euo pipefail

[ $# -ge 2 ] || {
  echo "usage: tools/node.sh FOLDER COMMAND ..." >&2
  exit 2
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$1
shift

# What Vite needs.
is_recent() {
  node -e 'const [a, b] = process.versions.node.split("."); process.exit(+a > 20 || (+a === 20 && +b >= 19) ? 0 : 1)'
}
if ! { command -v npm && command -v node && is_recent; } > /dev/null 2>&1; then
  "$root/tools/venv.sh" node
  export PATH=$root/.venvs/node/bin:$PATH
fi

cd "$folder"
stamp=node_modules/.lock.sha256
wanted=$(sha256sum < package-lock.json)
# One installer at a time; the others wait and then find the stamp.
exec 9< package-lock.json
flock 9
if [ "$(cat "$stamp" 2> /dev/null)" != "$wanted" ]; then
  npm ci --no-audit --no-fund --loglevel=error >&2
  echo "$wanted" > "$stamp"
fi
exec 9<&-
exec "$@"
