# Two commands: `make demo` and `make test`. Both work on a new machine: they make .venv and install the four packages
# there, from PyPI only. What is installed is done again when a pyproject.toml, the constraints or the native core change.

SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= out
WORKERS ?= 2
ARGS ?=

PACKAGES := packages/kernelc packages/physics packages/render packages/sysid
PROJECTS := $(wildcard $(PACKAGES:=/pyproject.toml))
HEADERS := packages/kernelc/src/kernelc/include/kernelc
NATIVE := $(shell find packages/kernelc/CMakeLists.txt packages/kernelc/native $(HEADERS)/base.h $(HEADERS)/context.h \
            packages/kernelc/src/kernelc/toolchain/flags.py -type f 2>/dev/null)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The tools that build the packages are pinned as well.
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: help demo test nightly processors clang trixie pythons aarch64 wheels release-check bare cuda gpu resources lint types contract docs install dev clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:
	@echo "make demo      find a bouncing cube's mass, elasticity and friction from its video; writes $(OUT)/report.html"
	@echo "make test      the whole suite (ARGS='-k springs' to select; WORKERS=2 processes)"
	@echo "make wheels    the wheels of the packages with their kernels as machine code, in $(OUT)/wheels (some minutes)"
	@echo "make release-check  builds sdists and wheels, checks them, uses them in a new environment"
	@echo "make bare      such wheels, for any processor, run without a compiler"
	@echo "make nightly   the suite with the long tests and many more random programs, then the five below"
	@echo "make processors  the tests of the language for each kind of processor that this one can stand for"
	@echo "make clang     the same with clang++            make aarch64   the same, cross-compiled and emulated by qemu"
	@echo "make trixie    the same with GCC 14 and Python 3.13, in a Debian of its own"
	@echo "make pythons   the same, and a scene, with every other CPython of this machine, from 3.10 on"
	@echo "make cuda      all tests of gradients with kernels as CUDA, compiled for the host: no GPU is needed"
	@echo "make gpu       the tests of CUDA on the GPU of this machine"
	@echo "make resources what each kernel takes of a GPU, by nvcc: writes docs/kernelc/cuda_resources.md"
	@echo "make lint      ruff        make types   mypy        make contract   who may import whom"
	@echo "make docs      the pages, in $(OUT)/docs/index.html"
	@echo "make clean     removes $(VENV) and $(OUT)"

demo: $(VENV)/.installed
	$(BIN)/nablasim demo --out $(OUT)

test: $(VENV)/.dev
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

nightly: $(VENV)/.dev
	HYPOTHESIS_PROFILE=nightly KERNELC_TEST_CUDA=all KERNELC_AOT_LEVELS=baseline,avx2,avx512 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "nightly or not nightly" $(ARGS)
	$(MAKE) --keep-going processors clang trixie pythons aarch64 ARGS=

# One command for each platform that is tested (docs/kernelc/platforms.md).
processors clang trixie pythons aarch64: $(VENV)/.dev
	PLATFORMS=$(abspath $(OUT))/platforms PYTHON=$(abspath $(BIN))/python tests/platforms/$@.sh $(ARGS)

cuda: $(VENV)/.dev
	KERNELC_TEST_DEVICE=cuda $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/kernelc tests/physics tests/render $(ARGS)

gpu: $(VENV)/.dev
	KERNELC_TEST_GPU=1 $(BIN)/python -m pytest -n 0 tests/kernelc/gpu $(ARGS)

resources: $(VENV)/.dev
	$(BIN)/python tests/kernelc/gpu/resources.py

wheels: $(VENV)/.pip
	$(PIP) wheel --no-deps --wheel-dir $(OUT)/wheels $(foreach package,$(PACKAGES),./$(package))

release-check: $(VENV)/.pip
	$(BIN)/python tools/release_check.py $(OUT)/release $(ARGS)

bare: $(VENV)/.dev
	$(BIN)/python -m pytest -m wheels tests/integration/test_wheels.py $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

contract: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs $(OUT)/docs
	@echo "$(OUT)/docs/index.html"

install: $(VENV)/.installed
dev: $(VENV)/.dev

clean:
	rm -rf $(VENV) $(OUT)

# ------------------------------------------------------------------------------------------------------------ set-up
# A Python that is new enough and can make environments; PYTHON=... chooses one.
$(BIN)/python:
	@for python in $(PYTHON) python3 python3.11 python3.12 python3.13 python3.14 python3.10; do \
	    if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	        echo "Making $(VENV) with $$("$$python" --version)"; \
	        "$$python" -m venv $(VENV) && rm -f $(VENV)/.installed $(VENV)/.dev $(VENV)/.docs; exit; \
	    fi; \
	done; \
	echo "No Python 3.10 or newer that can make virtual environments. On Debian or Ubuntu:" >&2; \
	echo "    apt-get install python3 python3-venv python3-dev" >&2; \
	echo "Elsewhere: https://www.python.org/downloads, then: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; \
	exit 1

$(VENV)/.pip: constraints.txt | $(BIN)/python
	@$(PIP) install --upgrade -c constraints.txt pip
	@touch $@

$(VENV)/.installed: $(PROJECTS) $(NATIVE) constraints.txt $(VENV)/.pip
	@$(check_compiler)
	@$(check_headers)
	@echo "Installing kernelc, nablasim-physics, nablasim-render, nablasim-sysid (a few minutes the first time)"
	@$(PIP) install -c constraints.txt $(foreach package,$(PACKAGES),--editable ./$(package))
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.installed
	@echo "Installing the tools for tests and checks"
	@$(PIP) install -c constraints.txt --group dev
	@command -v "$${CUDACXX:-nvcc}" >/dev/null || $(PIP) install -c constraints.txt --group nvcc \
	    || echo "nvcc could not be installed: the tests that compile CUDA with it are skipped"
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.installed
	@echo "Installing the tools for the documentation"
	@$(PIP) install -c constraints.txt --group docs
	@touch $@

define check_compiler
for cxx in "$$CXX" c++ g++ clang++; do \
    if [ -n "$$cxx" ] && command -v $$cxx >/dev/null 2>&1; then exit 0; fi; \
done; \
echo "A C++ compiler is needed to compile kernels, and none was found. On Debian or Ubuntu, as root:" >&2; \
echo "    apt-get install g++" >&2; \
echo "On Fedora: dnf install gcc-c++; on macOS: xcode-select --install; with conda: conda install gxx." >&2; \
echo "One that is not on the PATH: make CXX=/path/to/c++ $(MAKECMDGOALS)" >&2; \
exit 1
endef

define check_headers
$(BIN)/python -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { \
    echo "The headers of this Python (Python.h) are missing. On Debian or Ubuntu, as root:" >&2; \
    echo "    apt-get install python3-dev" >&2; \
    exit 1; }
endef
