# make test, make demo, make bench and make docs set up all they need by themselves, once.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STAMPS := $(VENV)/stamps
NATIVE := $(shell find native -name '*.cc' -o -name '*.h' -o -name CMakeLists.txt) $(wildcard tvm/_ffi/*.px[di] tvm/_ffi/*.pyx)

export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
# many tests start a Python of their own: the package is not compiled anew in each
export PYTHONDONTWRITEBYTECODE :=
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check

.PHONY: test demo bench docs lint sanitize install install-test clean

test: install-test lint
	$(RUN) -m pytest -n 2

demo: $(STAMPS)/demo
	$(RUN) examples/embed_sentences.py

bench: install-test
	$(RUN) -m benchmarks.models

# the site, in build/docs: its tutorials run, its warnings are errors
docs: $(STAMPS)/docs
	$(RUN) -m sphinx --jobs 2 --fail-on-warning --keep-going --quiet docs build/docs

lint: install-test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(RUN) tools/lint.py

# the native tests under AddressSanitizer, UBSan and ThreadSanitizer
sanitize: $(STAMPS)/build
	$(RUN) tools/sanitize.py

install: $(STAMPS)/package
install-test: $(STAMPS)/package $(STAMPS)/test

$(STAMPS)/venv:
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS)
	touch $@

# what the package is built with; the build itself then needs no separate environment
$(STAMPS)/build: $(STAMPS)/venv pyproject.toml
	$(PIP) "scikit-build-core>=0.10" "cython>=3.0" "cmake>=3.20" ninja
	touch $@

$(STAMPS)/package: $(STAMPS)/build $(NATIVE)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PIP) --no-build-isolation --editable .
	touch $@

# torch first and by its exact version: a range would take a build with CUDA; torchvision without its own wishes for torch
$(STAMPS)/test: $(STAMPS)/package constraints.txt
	$(PIP) torch==2.13.0
	$(PIP) --no-build-isolation --editable ".[test]"
	$(PIP) --no-deps torchvision
	touch $@

$(STAMPS)/docs: $(STAMPS)/package constraints.txt
	$(PIP) torch==2.13.0
	$(PIP) --no-build-isolation --editable ".[docs]"
	touch $@

$(STAMPS)/demo: $(STAMPS)/package constraints.txt
	$(PIP) torch==2.13.0
	$(PIP) --no-build-isolation --editable ".[demo]"
	touch $@

clean:
	rm -rf build dist $(STAMPS) tvm/libtvm_runtime.so tvm/_ffi/_core*.so
	cd native && rm -rf CMakeCache.txt CMakeFiles CMakeInit.txt cmake_install.cmake build.ninja .ninja_* _core.cpp
