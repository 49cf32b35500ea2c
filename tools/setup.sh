#!/usr/bin/env bash
# Installs the system packages that building and testing need: tools/setup.sh [build]
#
# `build`: only those for the optimised build. Does nothing when they are all there. Uses sudo when
# not root.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkg-config python3-dev python3-venv git
  libhwy-dev libisal-dev libpcre2-dev libprotozero-dev libsimdjson-dev nlohmann-json3-dev
  libcurl4-openssl-dev libpugixml-dev libcli11-dev libzstd-dev libcpp-httplib-dev zlib1g-dev
  libfmt-dev libspdlog-dev libgtest-dev libgmock-dev
)
if [ "${1:-}" != build ]; then
  packages+=(
    clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev libbenchmark-dev
    # For the tests of the page. Node.js, which builds it, comes from tools/node.sh.
    chromium fonts-dejavu-core
  )
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all system packages are installed."
  exit 0
fi

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || {
    echo "setup: sudo is needed to install: ${missing[*]}" >&2
    exit 1
  }
  sudo=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
