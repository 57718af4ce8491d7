# Two commands do all the set-up: `make demo` (install and run) and `make test` (the same, with dev tools).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test torture bench clean

demo: $(VENV)/.installed
	$(BIN)/zsntta demo

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n 2 --dist loadfile

# What a user may type and a stranger may send, at length: a quarter of an hour on two cores.
torture: $(VENV)/.dev
	ZSNTTA_TORTURE=1 $(BIN)/pytest -q -n 2 --dist loadfile tests/torture

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/live.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: $(VENV)/.installed pyproject.toml
	$(BIN)/pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
