# `make run` and `make test` need nothing but Python 3.11+ and a network: each makes .venv and installs into it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PARITY ?= .venv-parity
DEPLOY ?= .venv-deploy
EXTRAS ?= .venv-extras
FLOWER ?= .venv-flower
PFL ?= .venv-pfl
DOCS ?= .venv-docs
WORKERS ?= 2
NEED_EXTRAS := tests/paper/test_central_privacy.py tests/e2e/test_logger_packages.py tests/docs/test_examples.py \
	"tests/configs/test_every_yaml.py::test_every_option_runs_and_writes_the_documented_rows[privacy-central]"
COARSE := PYTHONPATH=tests/clocks FEDGM_CLOCK_STEP=0.02  # clocks of the machines that step by 20 ms

.PHONY: run install test test-all lint docs bench bench-peers clean

install: $(VENV)/.installed

run: $(VENV)/.installed
	$(BIN)/python run.py +experiment=multistage

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not parity and not deploy" -q --durations=25

# The dashboard's tests drive a real browser: without one they would be skipped, so its absence is an error.
test-all: $(VENV)/.installed-dev $(EXTRAS)/.installed $(PARITY)/.installed $(DEPLOY)/.installed lint
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ echo "make test-all needs Chromium (Debian: apt-get install chromium)"; exit 1; }
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not parity and not deploy" -q
	$(COARSE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not parity and not deploy" -q
	$(EXTRAS)/bin/python -m pytest -q $(NEED_EXTRAS)
	$(PARITY)/bin/python -m pytest -m parity -q tests/parity
	$(DEPLOY)/bin/python -m pytest -m deploy -q tests/flower

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

# The site from the same markdown, into build/site: open build/site/index.html. A broken link fails.
docs: $(DOCS)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build -q

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.sitting --page
	$(BIN)/python -m benchmarks.fixed_cost --page
	$(BIN)/python -m benchmarks.server_share --page
	$(BIN)/python -m benchmarks.whole_round --page
	$(BIN)/python -m benchmarks.side_by_side --page
	$(BIN)/python -m benchmarks.round_cost
	$(BIN)/python -m benchmarks.event_scale
	$(BIN)/python -m benchmarks.targets

# Flower and pfl-research beside ours, each in a venv of its own; nothing else installs them.
bench-peers: $(VENV)/.installed-dev $(FLOWER)/.installed $(PFL)/.installed
	FLOWER=$(FLOWER) PFL=$(PFL) $(BIN)/python -m benchmarks.beside_peers --page
	FLOWER=$(FLOWER) $(BIN)/python -m benchmarks.start --page
	$(BIN)/python -m benchmarks.targets

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@ $(VENV)/.installed

# Flower asks for older versions of what W&B needs, so it gets a venv of its own.
$(PARITY)/.installed: pyproject.toml constraints-parity.txt
	$(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python -m pip install -q --disable-pip-version-check -c constraints-parity.txt torch flwr pytest
	$(PARITY)/bin/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

# Loggers and the accountant of privacy=central, which most people do not install.
$(EXTRAS)/.installed: pyproject.toml constraints-privacy.txt
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip install -q --disable-pip-version-check -c constraints-privacy.txt \
		-e ".[privacy,tensorboard,mlflow,comet]" pytest pytest-xdist hypothesis
	@touch $@

# What fedgm deploy needs; three of its pins differ from constraints.txt.
$(DEPLOY)/.installed: pyproject.toml constraints-deploy.txt
	$(PYTHON) -m venv $(DEPLOY)
	$(DEPLOY)/bin/python -m pip install -q --disable-pip-version-check -c constraints-deploy.txt -e ".[flower]" pytest
	@touch $@

$(FLOWER)/.installed: constraints-flower.txt
	$(PYTHON) -m venv $(FLOWER)
	$(FLOWER)/bin/python -m pip install -q --disable-pip-version-check -c constraints-flower.txt torch "flwr[simulation]"
	@touch $@

$(DOCS)/.installed: constraints-docs.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q --disable-pip-version-check -c constraints-docs.txt mkdocs-material "mkdocstrings[python]"
	@touch $@

$(PFL)/.installed: constraints-pfl.txt
	$(PYTHON) -m venv $(PFL)
	$(PFL)/bin/python -m pip install -q --disable-pip-version-check -c constraints-pfl.txt torch pfl
	@touch $@

clean:
	rm -rf $(VENV) $(EXTRAS) $(PARITY) $(DEPLOY) $(FLOWER) $(PFL) $(DOCS) build dist .pytest_cache .ruff_cache .hypothesis
