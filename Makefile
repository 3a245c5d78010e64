# One command for each job; each makes the environment first if it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps

.PHONY: setup demo test lint types check coverage docs site results evidence evidence-smoke bench audit fuzz attack clean

setup: $(READY)

$(READY): requirements-hashed.txt requirements-torch-cpu.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements-torch-cpu.txt || echo "pip finds no CPU build of torch and takes the index's."
	$(PIP) --require-hashes -r requirements-hashed.txt
	$(PIP) --no-build-isolation -e .
	touch $(READY)

demo: setup
	$(BIN)/partly demo --out demo

test: setup
	$(BIN)/pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell src tests docs benchmarks evidence .ci .github $(wildcard *.md)

types: setup
	$(BIN)/mypy

check: lint types test

coverage: setup
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=term-missing:skip-covered

# The generated pages: docs/methods.md with a page for each method, docs/recipes.md, and the first picture.
docs: setup
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.front

# The site, into site/: strict, and without the network. Its notebooks are run on the way.
site: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# docs/results.md, its pages and docs/claims.md, from evidence/results/*.jsonl; and what other pages take from there.
results: setup
	$(BIN)/python -m evidence pages
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.front

# The runs behind the results and the claims: hours, and resumable. The same list in a minute or two, on made items.
evidence: setup
	$(BIN)/python -m evidence run

evidence-smoke: setup
	$(BIN)/python -m evidence run --smoke

bench: setup
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/memory.py

# Known vulnerabilities of all pinned packages. Needs a network that reaches the advisory database.
audit:
	$(PYTHON) -m venv .audit
	.audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	.audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements-hashed.txt

# The property tests with other examples every time, and ten times as many.
fuzz: setup
	HYPOTHESIS_PROFILE=random $(BIN)/pytest -n 2 --dist worksteal -m hypothesis

# Hostile input for minutes: mutated files of every format, and clients without a session at a running server.
attack: setup
	$(BIN)/python tests/fuzz_readers.py
	$(BIN)/python tests/annotate/attacking.py

clean:
	rm -rf demo runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
