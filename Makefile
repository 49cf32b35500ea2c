# The few verbs of this repository. Each says what it does and reuses what is there.
SHELL := bash
.DEFAULT_GOAL := help
PYTHON := .venvs/dev/bin/python
export CCACHE_DIR ?= $(HOME)/.cache/ccache

.PHONY: help setup build demo test check bench bench-faults soak wheel lint format tidy clean test-gpu bench-gpu

help:
	@echo "make demo    record a PyTorch script with a planted fault, show the sick layer, and how to open its page"
	@echo "make test    all tests: C++, Python, the page, interop, faults, hostile files, fuzzing, sanitizers, wheel, docs"
	@echo "make check   the quick inner loop: C++ and Python tests, lint"
	@echo "make bench   our speed beside the original's, NumPy's and TensorBoard's, in one run"
	@echo "make bench-faults  how well faults of trainings are found, beside simple baselines"
	@echo "make soak    ten minutes of recording, reading and killing at random"
	@echo "make wheel   wheels that need nothing of the machine, tested in bare environments, into dist"
	@echo "make test-gpu, make bench-gpu  tests and speed on a CUDA device, with the PyTorch of python3"
	@echo "make lint    formatting, types, layers, documents;  make format  mends formatting"
	@echo "make clean   remove build results (keeps .venvs)"

# System packages, the Python environment and the optimised build with its tests.
setup:
	@tools/setup.sh
	@tools/venv.sh dev

build: setup
	@tools/page.sh
	@cmake --preset dev > build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@cmake --build --preset dev

# No tests are built, and no browser is installed.
demo:
	@tools/setup.sh build
	@tools/venv.sh dev
	@tools/page.sh
	@echo "demo: building the program and the extension; the first time takes minutes"
	@tools/build.sh dev smdebug core_stub
	@python=.venvs/torch/bin/python; \
	tools/venv.sh torch && $$python -c "import torch" || { echo "demo: PyTorch cannot be used here; going on without it."; python=$(PYTHON); }; \
	PYTHONPATH=python $$python examples/demo/run.py $(ARGS)

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
	@tools/venv.sh tensorboard
	@cmake --preset bench > /dev/null && cmake --build --preset bench
	@PYTHONPATH=python $(PYTHON) bench/run.py $(ARGS)

# NumPy reads the number of its threads when it is loaded.
bench-faults: build
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=python:bench $(PYTHON) -m faults.run $(ARGS)

soak: build
	@tools/venv.sh moto
	@tools/node.sh tests/browser true
	@$(PYTHON) tests/soak/run.py --browser $(ARGS)

wheel: setup
	@tools/page.sh
	@tools/wheel.sh $(ARGS)

# On a machine with a CUDA device, in a Python that has PyTorch, pytest and this package.
test-gpu:
	@PYTHONPATH=python python3 tools/needs_cuda.py pytest
	@SMDEBUG_STRICT=1 python3 -m pytest -q tests/gpu

bench-gpu:
	@python3 tools/needs_cuda.py
	@python3 bench/gpu.py $(ARGS)

lint: setup
	@tools/lint.sh

format: setup
	@tools/lint.sh --fix

tidy: setup
	@cmake --preset tidy > /dev/null && cmake --build --preset tidy

clean:
	@rm -rf build dist viewer/dist python/smdebug/_core*.so python/smdebug/_core.pyi
	@echo "removed build, dist, the built page and the built extension"
