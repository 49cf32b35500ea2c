#!/usr/bin/env bash
# Builds viewer/dist/index.html, which the program has inside, unless it is newer than its sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=viewer/dist/index.html
sources() {
  find viewer -path viewer/node_modules -prune -o -path viewer/dist -prune -o -type f "$@" -print -quit
}
# One builder at a time; the others wait and then find the page.
exec 8< viewer/package.json
flock 8
if [ -f "$page" ] && [ -z "$(sources -newer "$page")" ]; then
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
tools/node.sh viewer npm run build > "$log" 2>&1 || {
  cat "$log" >&2
  echo "page: viewer/ could not be built. To build the program without it, call CMake alone." >&2
  exit 1
}
echo "page: built $page."
