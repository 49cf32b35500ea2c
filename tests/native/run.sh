#!/usr/bin/env bash
# Installs the library, builds the native examples against what was installed, runs them and checks
# what they recorded.
# Usage: run.sh BUILD_DIR [PREFIX]
# BUILD_DIR: a build with SMD_INSTALL=ON. PREFIX: where to install; a temporary folder unless given.
# libtorch is the one of .venvs/torch, whose Python also runs the twin of its example; that needs the
# extension that the preset dev builds. XGBoost is that of .venvs/xgboost and .venvs/xgboost17. The
# environments are made unless they are there.
set -uo pipefail

build=$(realpath "${1:?Usage: run.sh BUILD_DIR [PREFIX]}")
here=$(dirname "$(realpath "$0")")
source=$(realpath "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$(realpath -m "${2:-$work/prefix}")
passed=0
failed=0

# check NAME COMMAND...: the command succeeds.
check() {
  local name=$1
  shift
  if "$@" >"$work/output" 2>&1; then
    echo "ok: $name"
    passed=$((passed + 1))
  else
    echo "FAILED: $name"
    sed 's/^/    /' "$work/output"
    failed=$((failed + 1))
  fi
}

only_public_headers() {
  local headers
  headers=$(cd "$prefix/include" && find . -type f) || return 1
  grep -qx ./smd/smd.h <<<"$headers" && grep -qx ./smd/c_api.h <<<"$headers" || return 1
  ! grep -E '_test|_bench|/internal/|\.cpp$' <<<"$headers"
}

package_is_relocatable() {
  ! grep -rnF -e "$source" -e "$build" -e "$prefix" "$prefix"/lib*/cmake/smd
}

library_has_no_search_path() {
  local library
  library=$(find "$prefix" -name libsmd.so) && [[ -n $library ]] || return 1
  ! readelf -d "$library" | grep -E 'RPATH|RUNPATH'
}

for name in torch xgboost xgboost17; do
  "$source/tools/venv.sh" "$name" || exit 1
done
torch_python=$source/.venvs/torch/bin/python
torch_prefix=$("$torch_python" -c 'import torch; print(torch.utils.cmake_prefix_path)')

configure() {  # FOLDER BUILD [ARGUMENTS...]
  local folder=$1 out=$2
  shift 2
  env -u CMAKE_PREFIX_PATH cmake -S "$folder" -B "$out" -DCMAKE_PREFIX_PATH="$prefix" "$@"
}

configure_and_build_examples() {
  configure "$source/examples/cpp" "$work/examples" \
    -DCMAKE_C_FLAGS="-std=c99 -Wall -Wextra -Wpedantic -Werror" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" &&
    cmake --build "$work/examples"
}

configure_with_libtorch() {  # FOLDER BUILD
  configure "$1" "$2" -DCMAKE_PREFIX_PATH="$prefix;$torch_prefix" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror"
}
build_libtorch_example() {
  configure_with_libtorch "$source/examples/cpp" "$work/examples_libtorch" &&
    cmake --build "$work/examples_libtorch" --target libtorch &&
    ln -s "$work/examples_libtorch/libtorch" "$work/examples/libtorch"
}
libtorch_adapter_works() {
  configure_with_libtorch "$source/adapters/libtorch" "$work/adapter" &&
    cmake --build "$work/adapter" &&
    ctest --test-dir "$work/adapter" --output-on-failure --no-tests=error
}
libtorch_and_python_are_alike() {
  PYTHONPATH=$source/python "$torch_python" "$here/libtorch_twin.py" "$work/libtorch" "$work/twin"
}

# XGBoost is loaded when the example runs: one program serves all versions.
xgboost_of() {  # ENVIRONMENT
  find -L "$source/.venvs/$1/lib" -name libxgboost.so | head -1
}
xgboost_and_python_are_alike() {  # ENVIRONMENT
  runs xgboost_c_api "$(xgboost_of "$1")" "$work/$1" &&
    PYTHONPATH=$source/python "$source/.venvs/$1/bin/python" "$here/xgboost_twin.py" \
      "$work/$1" "$work/$1_twin"
}
xgboost_must_be_there() {
  ! runs xgboost_c_api "$work/no/libxgboost.so" "$work/nothing" &&
    grep -q '^XGBoost cannot be loaded' "$work/output" && [[ ! -e $work/nothing ]]
}

# A project that knows C only, and asks for a version.
project_in_c() {
  local version=$1
  rm -rf "$work/c" && mkdir "$work/c" && cp "$source/examples/cpp/minimal.c" "$work/c" || return 1
  cat >"$work/c/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.16)
project(minimal LANGUAGES C)
find_package(smd $version REQUIRED)
add_executable(minimal minimal.c)
target_link_libraries(minimal PRIVATE smd::smd)
END
  configure "$work/c" "$work/c/build"
}
builds_in_c() { project_in_c 0.1 && cmake --build "$work/c/build"; }
refuses_other_versions() { ! project_in_c 0.2 && ! project_in_c 1.0; }

# The compiler sees the standard headers but none of another library, as on a machine that has none.
needs_no_other_headers() {
  local tree=$work/usr_include arguments=() folder
  mkdir "$tree" && cp -rs /usr/include/. "$tree" || return 1
  rm -rf "$tree"/{nlohmann,fmt,spdlog,hwy,pcre2*,simdjson*,protozero,isa-l*,gtest,gmock,benchmark}
  while read -r folder; do
    folder=$(realpath "$folder")
    case $folder in
      /usr/include*) arguments+=(-isystem "$tree${folder#/usr/include}") ;;
      /usr/local/*) ;;
      *) arguments+=(-isystem "$folder") ;;
    esac
  done < <(c++ -E -v -x c++ /dev/null 2>&1 >/dev/null | sed -n '/#include </,/End of/s/^ //p')
  c++ -std=c++20 -nostdinc "${arguments[@]}" -I"$prefix/include" "$source/examples/cpp/first_run.cpp" \
    -H -L"$(dirname "$(find "$prefix" -name libsmd.so)")" -lsmd -o "$work/lonely" 2>"$work/headers" ||
    { cat "$work/headers"; return 1; }
  grep -q smd/hook/hook.h "$work/headers" && ! grep -E 'nlohmann|/fmt/|spdlog|hwy' "$work/headers"
}

runs() {  # PROGRAM [DIRECTORY]
  env -u LD_LIBRARY_PATH "$work/examples/$@"
}
runs_here() {  # FOLDER PROGRAM
  mkdir "$1" && (cd "$1" && runs "$2")
}
reads_back() {  # RUN: ten losses that fall
  local out
  out=$(runs read_run "$1" scalar/loss) || return 1
  echo "$out"
  grep -qx "scalar/loss: 10 steps" <<<"$out" && grep -qx "weight: 5 steps" <<<"$out" &&
    grep -qx "0 0.9" <<<"$out" && grep -qx "9 0.348678" <<<"$out" &&
    [[ $(runs read_run "$1" weight max | tail -1) == "8 0.38742" ]] &&
    ! runs read_run "$1" wieght
}
refuses_a_finished_run() {
  local text
  text=$(runs "$1" "$work/$1" 2>&1) && return 1
  grep -q 'finished job' <<<"$text"
}

check "installs" cmake --install "$build" --prefix "$prefix"
check "installs public headers only" only_public_headers
check "package names no folder of this machine" package_is_relocatable
check "library carries no search path" library_has_no_search_path
check "examples build without warnings" configure_and_build_examples
check "builds in a project that knows only C" builds_in_c
check "refuses a version that is not installed" refuses_other_versions
check "needs no headers of other libraries" needs_no_other_headers
check "first_run runs" runs_here "$work/first" first_run
check "first_run recorded what it should" python3 "$here/check_run.py" first_run "$work/first/run"
check "read_run reads it back" reads_back "$work/first/run"
check "train runs" runs train "$work/train"
check "train recorded what it should" python3 "$here/check_run.py" train "$work/train"
check "the installed program verifies what train recorded" "$prefix/bin/smdebug" verify --deep "$work/train"
check "the manual page is installed" grep -q '^.TH SMDEBUG 1' "$prefix/share/man/man1/smdebug.1"
check "train refuses a finished run" refuses_a_finished_run train
check "minimal runs" runs minimal "$work/minimal"
check "minimal recorded what it should" python3 "$here/check_run.py" minimal "$work/minimal"
check "minimal refuses a finished run" refuses_a_finished_run minimal
check "libtorch builds without warnings" build_libtorch_example
check "libtorch runs" runs libtorch "$work/libtorch"
check "libtorch recorded what its twin in Python records" libtorch_and_python_are_alike
check "libtorch refuses a finished run" refuses_a_finished_run libtorch
check "the adapter for libtorch passes its tests" libtorch_adapter_works
check "XGBoost's C API recorded what its twin in Python records" xgboost_and_python_are_alike xgboost
check "the same program does so with XGBoost 1.7" xgboost_and_python_are_alike xgboost17
check "a missing XGBoost is one sentence" xgboost_must_be_there
check "the guide shows the examples" \
  python3 "$here/check_guide.py" "$source/docs/guide/cpp.md" "$source"/examples/cpp/*
check "the quick start shows the first example" \
  python3 "$here/check_guide.py" "$source/docs/guide/quick-start.md" "$source"/examples/cpp/first_run.cpp

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
