# Needs make and Python 3.11 or newer, nothing else: the first target that needs an environment builds .venv,
# every later one adds to it. Paths are relative, so the checkout may lie in a folder with spaces in its name.

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

PY := $(VENV)/bin/python
# Files that take long have few tests: a worker that has finished takes over half of what the busiest has left.
PARALLEL := -n logical --maxprocesses 4 --dist worksteal
# Python without the ending .py, which ruff reads only if it is named.
SCRIPTS := .ci/check_dist .ci/oldest .ci/vocabulary

# The real data sets are read from the folder CORRAL_DATA names.
ifeq ($(origin CORRAL_DATA),undefined)
  SHARED_DATA := $(shell cd ../shared/data 2>/dev/null && pwd)
  ifneq ($(SHARED_DATA),)
    export CORRAL_DATA := $(SHARED_DATA)
  endif
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-oldest fuzz mutate axe lint types docs docs-browser dist bench reproduce clean

help: ## show this list
	@echo 'make TARGET [PYTHON=python3.12] [VENV=folder] [ARGS="options of the command"]'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.has-cli ## fit, predict, explain and report on two tables; files go to corral-demo
	$(VENV)/bin/corral demo $(ARGS)

test: $(VENV)/.has-test ## run the tests and the docstrings' examples
	$(PY) -m pytest $(PARALLEL) $(ARGS)

fuzz: $(VENV)/.has-test ## try new random examples of every property, and 10,000 damaged files of each kind
	CORRAL_FUZZ=$${CORRAL_FUZZ:-10000} $(PY) -m pytest $(PARALLEL) -m hypothesis --hypothesis-profile fuzz $(ARGS)

mutate: $(VENV)/.has-test ## change the code in one place at a time, and see that a test fails; ARGS="--only 18,39 --jobs 2"
	$(PY) tests/mutate.py $(ARGS)

# Old releases warn of what newer ones of their own dependencies deprecate.
test-oldest: ## run the tests with the lowest versions that pyproject.toml allows, in .venv-oldest
	mkdir -p build
	$(PYTHON) .ci/oldest > build/oldest.txt
	PIP_CONSTRAINT=build/oldest.txt $(MAKE) test VENV=.venv-oldest \
	    ARGS='-W default::DeprecationWarning -W default::PendingDeprecationWarning $(ARGS)'

axe: build/axe/package/axe.min.js ## fetch the checker of accessibility that the tests run on reports (needs npm)

build/axe/package/axe.min.js:
	mkdir -p build/axe
	cd build/axe && npm pack --silent axe-core@4.14.0 && tar -xzf axe-core-*.tgz

lint: $(VENV)/.has-lint ## check style, format, the order of imports and the vocabulary
	$(PY) -m ruff check . $(SCRIPTS)
	$(PY) -m ruff format --check . $(SCRIPTS)
	$(VENV)/bin/lint-imports
	$(PY) .ci/vocabulary

types: $(VENV)/.has-dev ## check types, of what the package imports as well
	$(PY) -m mypy

docs: $(VENV)/.has-docs ## build the site into build/site, and check its links; ARGS="-D plot_gallery=0" runs no example
	rm -rf docs/generated
	$(PY) -m sphinx -W --keep-going -q docs build/site $(ARGS)
	$(PY) docs/check_site.py build/site

docs-browser: $(VENV)/.has-docs ## open every page of the built site in Chromium
	$(PY) docs/check_site.py build/site --browser

dist: $(VENV)/.has-dist ## build wheel and source distribution, and try the wheel in an empty environment
	rm -rf dist
	$(PY) -m build
	$(PY) .ci/check_dist

bench: $(VENV)/.has-test ## measure speed and memory against peers
	$(PY) -m benchmarks $(ARGS)

reproduce: $(VENV)/.has-test ## regenerate the paper's tables and figures on two processors
	$(PY) -m experiments run all --jobs 2 $(ARGS)
	$(PY) -m experiments report

clean: ## remove everything that make, the tests and the checks have written, .venv included
	rm -rf .venv .venv-oldest corral-demo build dist htmlcov .coverage .hypothesis
	rm -rf docs/auto_examples docs/generated docs/sg_execution_times.rst
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for what has been installed; a change of pyproject.toml or of the version makes them all stale.
$(VENV)/.has-package: pyproject.toml src/corral/__init__.py | $(PY)
	@echo "Installing corral and what it needs into $(VENV); this takes a minute or two."
	$(PY) -m pip install -e .
	@touch $@

$(VENV)/.has-%: pyproject.toml src/corral/__init__.py | $(PY)
	@echo "Installing corral and what it needs into $(VENV); this takes a minute or two."
	$(PY) -m pip install -e '.[$*]'
	@touch $@ $(VENV)/.has-package

$(PY):
	@$(PYTHON) -c '' 2>/dev/null || \
	    { echo "corral needs Python 3.11 or newer, but '$(PYTHON)' does not run; name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "corral needs Python 3.11 or newer, but '$(PYTHON)' is older; name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "corral needs Python's venv module, which '$(PYTHON)' lacks; install it (on Debian: python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --upgrade pip
