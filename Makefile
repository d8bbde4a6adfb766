# Every target does its own set-up: a virtual environment with the tested versions, then the work.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_VENV ?= .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test browser quick matrix lint format bench campaign docs notebooks clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## create the virtual environment and install the package with its tools

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lanczosnet needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY) ## train three networks on handwritten digits, draw and report
	$(BIN)/lanczosnet demo

test: lint browser ## lint, check types, run every test
	$(BIN)/python -m pytest -n 2

browser: ## fetch a browser for the tests of pages, without root, where there is none
	@tests/install_browser.sh

quick: $(READY) ## run the fast tests only
	$(BIN)/python -m pytest -n 2 -m 'not slow'

# The Pythons of pyenv count, too.
matrix: $(READY) ## test with the lowest declared versions and the newest, on every Python that is here
	PATH="$$PATH:$$(printf '%s:' $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.*/bin)" $(BIN)/nox $(MATRIX)

lint: $(READY) ## ruff (lint and format check) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## run the benchmarks, one thread, ratios against peers
	$(BIN)/python benchmarks/lanczos.py
	$(BIN)/python benchmarks/convolution.py
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/blocks.py
	$(BIN)/python benchmarks/nodes.py
	$(BIN)/python benchmarks/qm8.py --device cpu --molecules 500 --models lanczosnet adalanczosnet

campaign: $(READY) ## attack the package with hostile files, kills and faults, half an hour
	PYTHONPATH=tests $(BIN)/python -W ignore -m campaign $(CAMPAIGN)

docs: $(READY) $(DOCS_READY) ## run the gallery and build the documentation site into site/
	rm -rf build/gallery build/commands build/diagrams
	$(BIN)/python docs/_tools/run_gallery.py build/gallery
	$(BIN)/python docs/_tools/commands.py build/commands
	$(BIN)/python docs/_tools/diagrams.py build/diagrams
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

notebooks: $(DOCS_READY) ## write the examples of the gallery as notebooks, for Colab and Binder
	$(DOCS_VENV)/bin/python docs/_tools/notebooks.py

# The tools of the site have versions of their own, and read the package's source without importing it.
$(DOCS_READY): pyproject.toml constraints-docs.txt
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/pip install --quiet -r constraints-docs.txt
	touch $@

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) $(DOCS_VENV) build dist site .nox src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
