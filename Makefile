# Everything a fresh machine needs is Python 3.11 or newer, make and a package index.
# `make demo` and `make test` build the environment they run in; `make help` lists the rest.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
SCENARIOS ?= 10000
CHAOS_SECONDS ?= 600
PYTEST_ARGS ?=
CONSTRAINTS ?=
# Images often ask Python to leave no translated modules; every process of every target would translate them anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PY := $(BIN)/python
# Most modules of most libraries are never imported here: compiling all of them is a third of the installation.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint types imports unit test-long test-system scenarios chaos access-table fuzz records mutants test-lowest test-lowest-small test-newest bench docs wheel vendor pictures format clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "  another interpreter: make PYTHON=python3.12 test; another environment: make VENV=/tmp/venv test"

demo: $(CORE) ## simulate a day of jobs under several policies and compare them
	@$(PY) -m gantline.cli.main demo

test: lint types imports unit ## every check: lint, types, import direction, tests

lint: $(DEV) ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV) ## mypy, strict where pyproject.toml says so
	$(BIN)/mypy

imports: $(DEV) ## import-linter: imports point downwards only
	$(BIN)/lint-imports

unit: $(DEV) ## the tests alone; PYTEST_ARGS="tests/core -k gang" narrows them
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore=tests/system $(PYTEST_ARGS)

test-long: $(DEV) ## the tests that are marked long, which nothing else runs
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore=tests/system -m long $(PYTEST_ARGS)

test-system: $(DEV) ## tests that need a browser or a database server; asks before it installs Debian's packages (GANTLINE_INSTALL=1: yes)
	@bash .ci/test-system $(BIN)/pytest

scenarios: $(DEV) ## the long run of the faulty executor: SCENARIOS=10000 seeded scenarios
	$(BIN)/pytest tests/engine/test_faulty_stories.py --scenarios $(SCENARIOS)

access-table: $(DEV) ## ask a service for every route with every role, and write the table of docs/access.md anew
	GANTLINE_WRITE_TABLES=1 $(BIN)/pytest -n 0 -q tests/live/service/test_roles.py -k walk

fuzz: $(DEV) ## 10,000 random requests over every route and role (REQUESTS=10000); none may be answered with a 5xx
	GANTLINE_REQUESTS=$(or $(REQUESTS),10000) $(BIN)/pytest -n 0 -q tests/live/service/test_random_requests.py

records: $(DEV) ## write the recorded runs anew that changed, after comparing with the originals; SYSTEMS="gavel sia" for some
	$(PY) -m tests.records.write $(SYSTEMS)

chaos: $(DEV) ## faults thrown at live services: kills, halts, node changes, other policies, clock jumps; CHAOS_SECONDS=600
	$(BIN)/pytest -q tests/live/test_chaos.py --chaos-seconds $(CHAOS_SECONDS)

mutants: $(DEV) ## plant defects one by one; which of them do the nearest tests miss?
	$(PY) .ci/mutants.py $(ROOMS)

# The lowest versions belong to the lowest Python.
test-lowest test-lowest-small: PYTHON = $(or $(shell python3.11 -c '' 2> /dev/null && echo python3.11),python3)
# A few files for each library whose versions matter.
LOWEST_SMALL := tests/core/test_machine_code.py tests/traces/test_import_logs.py tests/models/solvers/test_choice_states.py \
	tests/simulator/test_against_plain.py tests/lab/report/test_rundir.py tests/lab/report/test_figures.py tests/lab/report/test_stored_runs.py \
	tests/cli/test_main.py tests/live/test_spec.py tests/live/test_store.py tests/live/service/test_roles.py

# This target and test-newest build an environment of their own, anew each time (-B): which versions are lowest or newest changes.
test-lowest: ## the tests on the lowest versions that pyproject.toml admits, Python's among them
	$(PYTHON) .ci/lowest.py > .lowest.txt
	$(MAKE) -B PYTHON=$(PYTHON) VENV=.venv-lowest CONSTRAINTS=.lowest.txt unit

test-lowest-small: ## the same with the demo and a few minutes of tests, in an environment that stays
	$(PYTHON) .ci/lowest.py > .lowest.txt
	$(MAKE) PYTHON=$(PYTHON) VENV=.venv-lowest CONSTRAINTS=.lowest.txt demo
	$(MAKE) PYTHON=$(PYTHON) VENV=.venv-lowest CONSTRAINTS=.lowest.txt unit PYTEST_ARGS="$(LOWEST_SMALL)"

# Its name on the path is not enough: pyenv has one for every version installed, and it runs only where that version is switched on.
test-newest: PYTHON = $(or $(shell for name in python3.15 python3.14 python3.13 python3.12; do $$name -c '' 2> /dev/null && echo $$name && break; done), \
	$(error no Python newer than 3.11 answers to its name; try: make PYTHON=/path/to/python3.13 test-newest))
test-newest: ## the tests on the newest Python at hand (or PYTHON=python3.13) and the newest libraries
	$(MAKE) -B PYTHON=$(PYTHON) VENV=.venv-newest unit

bench: $(DEV) ## speed and memory, as ratios to a plain loop
	$(PY) -m benchmarks

docs: $(DEV) ## build the documentation into docs/_build/html, warnings are errors
	$(BIN)/sphinx-build -j auto -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

wheel: ## build the package into dist/, check what an index would show of it, and run its demo in an empty environment
	rm -rf dist build/wheel
	$(PYTHON) -m venv --clear build/wheel/tools
	build/wheel/tools/bin/python -m pip install --quiet --disable-pip-version-check build twine
	build/wheel/tools/bin/python -m build --quiet --outdir dist .
	build/wheel/tools/bin/twine check --strict dist/*
	$(PYTHON) -m venv --clear build/wheel/empty
	build/wheel/empty/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[live,plot]"
	cd build/wheel && empty/bin/gantline demo
	cd build/wheel && export GANTLINE_HOME="$$(mktemp -d)" && empty/bin/gantline up --devices cpu:2 --detach && { \
		empty/bin/gantline submit -- true && empty/bin/gantline wait 1 --timeout 2m && empty/bin/gantline dashboard --no-open; \
		code=$$?; empty/bin/gantline down && exit $$code; }

vendor: ## fetch the dashboard's libraries (with npm) in the versions of vendor/vendored.json, and check their SHA-256
	$(PYTHON) .ci/vendor.py src/gantline/live/dashboard/static/vendor

pictures: $(DEV) ## take the dashboard's pictures in docs/_static anew, in a browser; look at them before you keep them
	GANTLINE_KEEP_PICTURES=1 $(BIN)/pytest -n 0 -q tests/system/test_dashboard_pictures.py

format: $(DEV) ## let ruff repair and format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment and everything generated
	rm -rf $(VENV) .venv-lowest .venv-newest .lowest.txt build dist docs/_build docs/cli docs/columns .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Gantline needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV) \
		|| { echo "$(PYTHON) cannot make environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(CORE): pyproject.toml | $(PY)
	@echo "installing gantline[plot] into $(VENV)"
	@$(PIP) -e '.[plot]'
	@touch $@

$(DEV): pyproject.toml | $(PY)
	@echo "installing gantline[dev] into $(VENV)"
	@$(PIP) -e '.[dev]'
	@touch $(CORE) $@
