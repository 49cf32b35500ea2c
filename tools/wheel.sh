#!/usr/bin/env bash
# Builds wheels for other machines, with the libraries that those may lack inside, and tests them.
#
#   tools/wheel.sh [--out DIR] [--untested]
#
# One wheel for Python 3.11 and one, of the stable ABI, for 3.12 and all that follow; into DIR
# (default dist). Each interpreter that is found, on PATH or below pyenv, gets a bare environment
# with its wheel alone, in which the tests of the package run that need no framework.
# The oldest Linux that a wheel runs on is what it was built on, and its name says which.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Those for which tools/lock.py has hashes.
known=(3.11 3.12 3.13 3.14)
# What every manylinux system has; all else must come with the wheel.
promised='^(linux-vdso|ld-linux-[a-z0-9-]+|libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+|libz)\.so'

usage() {
  echo "usage: tools/wheel.sh [--out DIR] [--untested]" >&2
  exit 2
}
out=dist
tested=1
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:-} && [ -n "$out" ] && shift 2 || usage ;;
    --untested) tested=0 && shift ;;
    *) usage ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The cache knows objects of the other builds only by the name that those give the compiler.
export CC=cc CXX=c++
export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export PIP_DISABLE_PIP_VERSION_CHECK=1

# Runs a command whose output matters only if it fails.
quietly() {
  "$@" > "$work/log" 2>&1 || {
    cat "$work/log" >&2
    return 1
  }
}

# A released interpreter of a version. One of pyenv's stand-ins may be on PATH and yet not start.
find_python() {
  local candidate
  for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python"$1"; do
    if "$candidate" -c 'import sys, venv; sys.exit(sys.version_info.releaselevel != "final")' 2> /dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  return 1
}

# An environment with the pins of tools/requirements/NAME.txt: install NAME VENV
install() {
  tools/lock.py --print "$1" > "$2/$1.txt"
  quietly "$2/bin/python" -m pip install --no-deps --require-hashes --requirement "$2/$1.txt"
}

build() {
  # Always at the same place, so that the compiler cache knows the headers in it.
  local version=$1 python=$2 environment=$PWD/build/wheel-tools-$1
  echo "wheel: building with Python $version"
  "$python" -m venv --clear "$environment"
  install wheel "$environment"
  quietly "$environment/bin/python" -m pip wheel --no-deps --no-build-isolation \
    --wheel-dir "$work/plain-$version" .
  mkdir "$work/repaired-$version"
  (
    export PATH=$environment/bin:$PATH
    quietly python -m auditwheel repair --wheel-dir "$work/repaired-$version" "$work/plain-$version"/smdebug-*.whl
    python tools/wheel_program.py "$work/repaired-$version"/smdebug-*.whl "$out"
  ) | sed 's/^/wheel: built /'
}

# Nothing but what manylinux promises may come from the machine: check_libraries VENV
check_libraries() {
  local file foreign
  for file in "$1/bin/smdebug" "$1"/lib/python*/site-packages/smdebug/_core*.so; do
    foreign=$(ldd "$file" | awk -v own="$(realpath "$1")/" 'index($3, own) != 1 { n = split($1, part, "/"); print part[n] }' |
      grep --invert-match --extended-regexp "$promised" || true)
    [ -z "$foreign" ] || {
      echo "wheel: $(basename "$file") needs what other machines may lack: $(tr '\n' ' ' <<< "$foreign")" >&2
      return 1
    }
  done
}

# The tests and what they read, without the package: only the installed one can be imported.
copy_tests() {
  git ls-files --cached --others --exclude-standard | grep --invert-match '^python/smdebug' |
    tar --create --files-from - | tar --extract --directory "$1"
}

test_wheel() {
  local version=$1 python=$2 wheel=$3 environment=$work/bare-$1 tree=$work/tree-$1
  local simulated=$PWD/build/dev/simulated_cuda
  "$python" -m venv "$environment"
  quietly "$environment/bin/python" -m pip install "$wheel"
  check_libraries "$environment"
  [ "$tested" -eq 1 ] || return 0
  echo "wheel: testing $(basename "$wheel") with Python $version"
  install dev "$environment"
  tools/build.sh dev simulated_cuda  # stands for the CUDA driver in tests of devices
  mkdir "$tree"
  copy_tests "$tree"
  (
    cd "$tree"
    mapfile -t apart < <(PYTHONPATH=tools "$environment/bin/python" -c \
      'import run_suites; print(*(f"--ignore-glob=*/test_{name}*" for name in run_suites.APART), sep="\n")')
    SMDEBUG_PROGRAM=$environment/bin/smdebug SIMULATED_CUDA_DIR=$simulated PATH=$environment/bin:$PATH \
      "$environment/bin/python" -m pytest python/tests "${apart[@]}"
  )
}

mkdir -p "$out"
out=$(realpath "$out")
rm -f "$out"/smdebug-*.whl
found=()
interpreters=()
for version in "${known[@]}"; do
  if python=$(find_python "$version"); then
    found+=("$version")
    interpreters+=("$python")
  else
    echo "wheel: there is no Python $version on PATH or below pyenv; it is left out."
  fi
done
[ ${#found[@]} -gt 0 ] || {
  echo "wheel: none of Python ${known[*]} was found." >&2
  exit 1
}

stable=
for i in "${!found[@]}"; do
  if [ "${found[i]}" = 3.11 ]; then
    build "${found[i]}" "${interpreters[i]}"
  elif [ -z "$stable" ]; then
    stable=${found[i]}
    build "$stable" "${interpreters[i]}"
  fi
done
for i in "${!found[@]}"; do
  tag=cp312-abi3
  [ "${found[i]}" != 3.11 ] || tag=cp311-cp311
  test_wheel "${found[i]}" "${interpreters[i]}" "$(echo "$out"/smdebug-*-"$tag"-*.whl)"
done

sizes=$(cd "$out" && stat --format '%n %s' smdebug-*.whl | awk '{ printf "%s%s (%.1f MB)", (NR > 1 ? ", " : ""), $1, $2 / 1e6 }')
echo "wheel: in ${out#"$PWD"/}: $sizes"
