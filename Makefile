# Everything from a fresh clone; needs only make and Python 3.11 or later.
#
#   make demo    install into .venv, run every example on real input, check and time it
#   make test    lint, types, the test suite
#   make bench   the performance table of docs/performance.md (installs PyTorch and Triton for comparison)

PYTHON ?= $(shell command -v python3.13 || command -v python3.12 || command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=

.PHONY: demo test lint types suite test-long bench wheel clean

demo: $(VENV)/.base
	$(BIN)/python -m weft demo

test: lint types suite

lint: $(VENV)/.test
	$(BIN)/ruff check src tests examples

types: $(VENV)/.test
	$(BIN)/mypy

suite: $(VENV)/.test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-long: $(VENV)/.test
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/cpu.py

wheel: $(VENV)/.test
	$(BIN)/python -m pip wheel --no-deps -w dist .

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "weft needs Python 3.11 or later, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[test]"
	touch $@

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
