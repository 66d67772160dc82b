# Every target sets up its own virtual environment in .venv; nothing else on the machine is needed but Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
OLDEST ?= .venv-oldest
NEWEST ?= .venv-newest
WHEEL ?= .venv-wheel

# what is run on other versions than the latest: reading, noise, estimators and the command line rest on them
PORTABLE := tests/learn tests/data tests/noise tests/start/test_command_line.py
COMPILES := tests/mechanisms/test_before_paying.py
PORTABLE_TOOLS := pytest hypothesis polars pyarrow selenium ipykernel nbclient matplotlib

.PHONY: demo test compile nightly quick coverage oldest newest lint audit docs wheel clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(STAMP) $(DEMO)

$(DEMO): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[experiments]'
	touch $(DEMO)

demo: $(DEMO)  ## the paper's experiment on the embedded Adult data in a few minutes, and a scorecard to publish
	$(BIN)/privsolve demo

test: $(STAMP)  ## everything that must pass
	$(MAKE) --jobs=2 --output-sync=target lint compile
	$(BIN)/python -m pytest -n auto --dist worksteal --ignore=$(COMPILES)

compile: $(STAMP)  ## every engine once, before several processes need it
	$(BIN)/python -m pytest -n auto --maxschedchunk 1 $(COMPILES)

nightly: lint  ## the same, and what takes longer
	$(BIN)/python -m pytest -n auto --dist worksteal -m ""

quick: $(STAMP)  ## the tests to run while editing: under two minutes once compiled
	$(BIN)/python -m pytest -q -m "not slow"

coverage: $(STAMP)  ## which lines no test runs; compiled functions are left out
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term-missing:skip-covered --cov-fail-under=95

oldest:  ## on the oldest versions of everything that is allowed
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) scripts/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt --editable . $(PORTABLE_TOOLS)
	$(OLDEST)/bin/python -m pytest $(PORTABLE)

newest:  ## on the newest versions that are allowed, whatever .venv has
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --editable . $(PORTABLE_TOOLS)
	$(NEWEST)/bin/python -m pytest $(PORTABLE)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

audit: $(STAMP)  ## attack every guarantee, some minutes
	$(BIN)/privsolve audit --long

docs: $(STAMP)  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel:  ## build the distribution and run the command line from the wheel alone, without the sources
	$(PYTHON) -m venv --clear $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet build
	$(WHEEL)/bin/python -m build --outdir dist .
	$(WHEEL)/bin/python -m pip install --quiet --force-reinstall dist/*.whl pytest
	$(WHEEL)/bin/python -m pytest -p no:cacheprovider tests/start/test_command_line.py

clean:
	rm -rf $(VENV) .venv-* build dist site demo src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
