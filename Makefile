# make run: install what is missing and open the app (headless: do its main job into out/).
# make test: install what is missing and check everything.
# make screenshots: every panel, light and dark, at two sizes, into out/screenshots.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: run test lint types imports unit screenshots clean

run: $(STAMP)
	@PY=$(PY) bash .ci/start

test: lint types imports unit

lint: $(STAMP)
	$(VENV)/bin/ruff check .

types: $(STAMP)
	$(VENV)/bin/mypy

imports: $(STAMP)
	$(VENV)/bin/lint-imports --no-cache

# Files of tests go to the cores in order, so that the longest test begins first; a process for each takes 1 GB.
unit: $(STAMP)
	QT_QPA_PLATFORM=offscreen $(PY) -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

screenshots: $(STAMP)
	$(PY) -m tests.benchmarks.screenshots out/screenshots

# Anew whenever what is needed changes; a .venv made by hand is used as it is.
$(STAMP): pyproject.toml .ci/install
	@PYTHON=$(PYTHON) VENV=$(VENV) bash .ci/install
	@touch $@

clean:
	rm -rf $(VENV) out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
