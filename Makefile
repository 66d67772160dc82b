# Every target sets up its own virtual environment in .venv; nothing else on the machine is needed but Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test oldest lint audit docs bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $(STAMP)

demo: $(STAMP)  ## the paper's experiment on the embedded Adult data in two minutes, and a scorecard to publish
	$(BIN)/privsolve demo

test: lint  ## everything that must pass
	$(BIN)/python -m pytest -n auto --dist worksteal

oldest:  ## the estimators on the oldest scikit-learn that is supported
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --editable . 'scikit-learn==1.6.*' pytest hypothesis polars
	.venv-oldest/bin/python -m pytest tests/learn/test_learn.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

audit: $(STAMP)  ## attack every guarantee, some minutes
	$(BIN)/privsolve audit --long

docs: $(STAMP)  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(STAMP)  ## timings, printed and never asserted
	$(BIN)/python benchmarks/opdisc.py
	$(BIN)/python benchmarks/exponential.py
	$(BIN)/python benchmarks/scorecards.py
	$(BIN)/python benchmarks/tables.py --millions 10
	$(BIN)/python benchmarks/adult_scorecards.py

clean:
	rm -rf $(VENV) .venv-oldest build dist site demo src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
