#!/usr/bin/env bash
# Installs the system packages that building and testing need: compiler, CMake, Debian -dev libraries.
# Does nothing when they are all there. Uses sudo when not root.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkg-config python3-venv git
  clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev
  libhwy-dev libisal-dev libpcre2-dev libprotozero-dev libsimdjson-dev nlohmann-json3-dev
  libcurl4-openssl-dev libpugixml-dev libcli11-dev libzstd-dev
  libfmt-dev libspdlog-dev libgtest-dev libgmock-dev libbenchmark-dev
)

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
