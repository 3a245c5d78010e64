# One target per task; each creates the environment first if needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps

.PHONY: setup demo test lint types check coverage docs gallery site results evidence evidence-smoke bench audit fuzz attack clean

setup: $(READY)

$(READY): requirements-hashed.txt requirements-torch-cpu.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements-torch-cpu.txt || echo "No CPU build of torch found; using the one of the package index."
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

# Generate docs/methods.md with a page per method, docs/recipes.md and the front figure.
docs: setup
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.front

# Photograph every page on small data into docs/gallery/; needs Chromium, by hand.
gallery: setup
	$(BIN)/python -m docs.gallery

# Build the documentation into site/ (strict, offline) and run its notebooks.
site: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Generate docs/results.md, its pages and docs/claims.md from evidence/results/*.jsonl, and the pages that use them.
results: setup
	$(BIN)/python -m evidence pages
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.front

# Run the experiments behind the results and claims (hours, resumable); evidence-smoke runs them on tiny data.
evidence: setup
	$(BIN)/python -m evidence run
	$(BIN)/python -m evidence.own_rates equal-similar equal-coarse equal-single recipes-features recipes

evidence-smoke: setup
	$(BIN)/python -m evidence run --smoke

bench: setup
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/memory.py

# Check all pinned packages for known vulnerabilities. Needs access to the advisory database.
audit:
	$(PYTHON) -m venv .audit
	.audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	.audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements-hashed.txt

# Run the property tests with ten times as many examples, different ones each time.
fuzz: setup
	HYPOTHESIS_PROFILE=random $(BIN)/pytest -n 2 --dist worksteal -m hypothesis

# Test with hostile input for minutes: mutated files of every format, and clients without a session.
attack: setup
	$(BIN)/python tests/fuzz_readers.py
	$(BIN)/python tests/annotate/attacking.py

clean:
	rm -rf demo runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
