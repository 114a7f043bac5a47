# `make run` and `make test` need nothing but Python 3.11+ and a network: each makes .venv and installs into it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: run test test-all lint bench clean

run: $(VENV)/.installed
	$(BIN)/python run.py +experiment=multistage

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not parity" -q

test-all: $(VENV)/.installed-parity lint
	$(BIN)/python -m pytest -n $(WORKERS) -q

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.round_cost
	$(BIN)/python -m benchmarks.against_bare

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-parity: $(VENV)/.installed-dev
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev,parity]"
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
