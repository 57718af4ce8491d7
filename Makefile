# Two commands do all the set-up: `make demo` (install and run) and `make test` (the same, with dev tools).
# TORCH_INDEX is where torch and torchvision come from, if not from pip's own index.
PYTHON ?= python3
TORCH_INDEX ?=
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
PIP := $(BIN)/pip install -q --disable-pip-version-check
FETCHED := Fetching zsntta's dependencies into $(VENV): $(if $(TORCH_INDEX),torch and torchvision from \
  $(TORCH_INDEX) first.,about 6 GB with PyPI's torch for Linux and its CUDA. \
  Without CUDA: make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu)

# Of each room what is worked out by hand, or compared with a reference, in a second or two.
QUICK := settings/test_settings.py datasets/test_word_lists.py encoders/test_weights.py \
  cache/test_store.py cache/test_accuracy.py cache/test_split.py \
  methods/classifiers methods/detectors methods/words/test_word_steps.py \
  methods/test_methods.py methods/test_threshold.py methods/test_scores.py \
  methods/test_settings_of_methods.py \
  methods/test_tda.py methods/test_cull.py methods/test_recorded.py \
  simulation/test_metrics.py simulation/test_stream.py results/test_frame.py \
  results/test_means.py results/test_record_store.py report/test_report.py \
  report/test_figures.py report/review/test_ordering.py detection/test_names.py \
  detection/test_verdicts.py paper/test_tables.py paper/test_paper_figures.py cli/test_said.py

.PHONY: demo quick test slow torture lowest docs release-check bench mutants clean

demo: $(VENV)/.installed
	$(BIN)/zsntta demo

# A minute on two cores, while one works.
quick: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 -m "not slow" $(addprefix tests/,$(QUICK))

# One BLAS thread a worker: several stall each other, which takes ten times as long on a busy machine.
test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 3 --dist worksteal --durations=10 -m "not slow"

# Kills, races, restarts and notebooks, each of ten seconds or more: a quarter of an hour.
slow: $(VENV)/.dev
	$(BIN)/pytest -q -n 2 --dist worksteal -m slow

# Hostile files, kills and signals at any moment, full disks, at length: a quarter of an hour on two cores.
torture: $(VENV)/.dev
	ZSNTTA_TORTURE=1 $(BIN)/pytest -q -n 2 --dist loadfile tests/torture tests/whole/test_kills.py tests/methods/test_invariants.py \
	  tests/simulation/test_method_checks.py

# The suite with the lowest versions that pyproject.toml allows of what it names, in an environment of its own.
# Old libraries use what newer ones below them deprecate.
lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -q -n 2 --dist worksteal -W ignore::DeprecationWarning

$(LOWEST)/.installed: pyproject.toml $(VENV)/.dev
	$(PYTHON) -m venv $(LOWEST)
	$(BIN)/uv pip install -q --python $(LOWEST)/bin/python --resolution lowest-direct -e '.[dev]'
	touch $@

# The site, from docs/, in build/site; a link that leads nowhere fails it.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# A wheel, in clean environments: RELEASE_PYTHONS are the oldest and the newest, versions or paths.
RELEASE_PYTHONS ?= 3.11 3.14
TORCH_BACKEND ?= cpu
release-check: $(VENV)/.dev
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/release_check.py --python $(RELEASE_PYTHONS) \
	  --torch-backend '$(TORCH_BACKEND)'

# OLD=COMMIT puts an older commit beside the working tree, in turn.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/scaling.py
	$(if $(OLD),$(BIN)/python benchmarks/beside.py --old $(OLD))
	$(BIN)/python benchmarks/live.py

# The small changes of five modules that no test of theirs notices: two hours on one core (JOBS=N: on N).
JOBS ?= 1
mutants: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tools/mutants.py --jobs $(JOBS)

$(VENV)/.installed: pyproject.toml
	@test -e $@ || echo "$(FETCHED)"
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) torch torchvision --index-url $(TORCH_INDEX))
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.installed pyproject.toml
	$(PIP) -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .hypothesis
