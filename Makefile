# The few verbs of this repository. Each says what it does and reuses what is there.
SHELL := bash
.DEFAULT_GOAL := help
PYTHON := .venvs/dev/bin/python
export CCACHE_DIR ?= $(HOME)/.cache/ccache
# The same sources in another folder are the same to the cache.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.PHONY: help setup build demo test check bench bench-faults lint format tidy clean test-gpu bench-gpu

help:
	@echo "make demo    record a PyTorch script with a planted fault and show the sick layer"
	@echo "make test    all tests: C++, Python, interop, faults, hostile files, fuzzing, sanitizers, wheel, docs"
	@echo "make check   the quick inner loop: C++ and Python tests, lint"
	@echo "make bench   our speed beside the original's and NumPy's, in one run"
	@echo "make bench-faults  how well faults of trainings are found, beside simple baselines"
	@echo "make lint    formatting, types, layers;  make format  mends formatting"
	@echo "make clean   remove build results (keeps .venvs)"

# System packages, the Python environment and the optimised build with its tests.
setup:
	@tools/setup.sh
	@tools/venv.sh dev

build: setup
	@cmake --preset dev > build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@cmake --build --preset dev

demo: build
	@tools/venv.sh torch
	@PYTHONPATH=python .venvs/torch/bin/python examples/demo/run.py $(ARGS)

test: setup
	@python3 tools/run_suites.py $(ARGS)

check: build
	@python3 tools/run_suites.py --only lint,cpp,python

bench: build
	@tools/venv.sh original
	@tools/venv.sh summary_writer
	@tools/venv.sh torch
	@tools/venv.sh original_torch
	@tools/venv.sh xgboost17
	@tools/venv.sh original_xgboost
	@tools/venv.sh mxnet
	@tools/venv.sh original_mxnet
	@tools/venv.sh tf
	@cmake --preset bench > /dev/null && cmake --build --preset bench
	@PYTHONPATH=python $(PYTHON) bench/run.py $(ARGS)

# NumPy reads the number of its threads when it is loaded.
bench-faults: build
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=python:bench $(PYTHON) -m faults.run $(ARGS)
# On a machine with a CUDA device, in a Python that has PyTorch, pytest and this package.
test-gpu:
	@SMDEBUG_STRICT=1 python3 -m pytest -q tests/gpu

bench-gpu:
	@python3 bench/gpu.py

lint: setup
	@tools/lint.sh

format: setup
	@tools/lint.sh --fix

tidy: setup
	@cmake --preset tidy > /dev/null && cmake --build --preset tidy

clean:
	@rm -rf build dist python/smdebug/_core*.so python/smdebug/_core.pyi
	@echo "removed build, dist and the built extension"
