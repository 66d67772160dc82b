# Every target sets up its own virtual environment in .venv; nothing else on the machine is needed but Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo

# what is run on other versions than the latest: reading, noise, estimators and the command line rest on them
PORTABLE := tests/learn tests/data tests/noise tests/start/test_command_line.py
PORTABLE_TOOLS := pytest hypothesis polars pyarrow selenium ipykernel nbclient

QUICK := tests/privacy tests/problems tests/models tests/domains/test_domains.py tests/cards/test_scorecard.py tests/data/test_schema.py

.PHONY: demo test quick oldest newest matrix lint audit docs bench peers peers-quick peers-report peers-clean clean

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

demo: $(DEMO)  ## the paper's experiment on the embedded Adult data in three minutes, and a scorecard to publish
	$(BIN)/privsolve demo

test: lint  ## everything that must pass
	$(BIN)/python -m pytest -n auto --dist worksteal

quick: $(STAMP)  ## the tests to run while editing: under a minute once compiled
	$(BIN)/python -m pytest -q $(QUICK)

oldest:  ## on the oldest versions of everything that is allowed
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) scripts/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --constraint .venv-oldest/constraints.txt --editable . $(PORTABLE_TOOLS)
	.venv-oldest/bin/python -m pytest $(PORTABLE)

newest:  ## on the newest versions that are allowed, whatever .venv has
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --editable . $(PORTABLE_TOOLS)
	.venv-newest/bin/python -m pytest $(PORTABLE)

matrix:  ## on every supported Python that is installed; the others are skipped
	@for version in 3.11 3.12 3.13; do \
	  if python$$version -c pass 2>/dev/null; then \
	    echo "Python $$version" && python$$version -m venv .venv-$$version && \
	    .venv-$$version/bin/python -m pip install --quiet --editable . $(PORTABLE_TOOLS) && \
	    .venv-$$version/bin/python -m pytest $(PORTABLE) || exit 1; \
	  else echo "Python $$version is not installed: skipped"; fi; \
	done

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

PEERS := benchmarks/peers
PEERS_PYTHON ?= python3.11
PEERS_ENVS := $(patsubst $(PEERS)/requirements/%.txt,$(PEERS)/envs/%/.installed,$(wildcard $(PEERS)/requirements/*.txt))
PEERS_RUN := PYTHONPATH=benchmarks $(BIN)/python -m

$(PEERS)/envs/%/.installed: $(PEERS)/requirements/%.txt
	$(PEERS_PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $<
	touch $@

peers: $(STAMP) $(PEERS_ENVS)  ## us beside everybody else, whatever is missing of it: docs/peers.md
	$(PEERS_RUN) peers.harness --jobs 2
	$(PEERS_RUN) peers.report

peers-quick: $(STAMP) $(PEERS)/envs/diffprivlib/.installed $(PEERS)/envs/streed/.installed  ## a part of it, in ten minutes; changes nothing
	rm -rf $(PEERS)/cache/quick
	$(PEERS_RUN) peers.harness --quick --jobs 2
	$(PEERS_RUN) peers.report --results $(PEERS)/cache/quick --out $(PEERS)/cache/quick/page
	cat $(PEERS)/cache/quick/page/peers-tables.md

peers-report: $(STAMP)  ## the page again, from the results that are there
	$(PEERS_RUN) peers.report

peers-clean:  ## forget all results
	rm -f $(PEERS)/results/*.jsonl

clean:
	rm -rf $(VENV) .venv-* build dist site demo src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
