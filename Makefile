# Two commands do everything: `make run` and `make test`. Each works alone on a fresh clone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PACKAGES := sim topology ocs workloads scenarios opticube.py
SCENARIO ?= availability
LOG ?=
REQUESTS ?=
UPDATE ?=

QUICK := smoke closed_form airesim_default degraded_cubes
check_baselines = @status=0; for name in $(1); do \
	$(BIN)/opticube check $$name --baseline baselines/$$name.json $(UPDATE) || status=1; done; exit $$status

OWN_LOG = $(if $(LOG),--set sweep.failures.host.availability=null --set failures.host=null --set failures.log.path=$(abspath $(LOG)))
OWN_REQUESTS = $(if $(REQUESTS),--set serving.services.1.requests.kind=trace --set serving.services.1.requests.path=$(abspath $(REQUESTS)))

.PHONY: run test test-slow check baselines baselines-all validation claims docs bench wheel format clean

run: $(VENV)/.core
	$(BIN)/opticube run $(SCENARIO) $(OWN_LOG) $(OWN_REQUESTS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist load -m slow

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# runs against their baselines: `make baselines UPDATE=--update` after a change that is meant (docs/ci.md)
baselines: $(VENV)/.dev
	$(call check_baselines,$(QUICK))

baselines-all: $(VENV)/.dev
	$(call check_baselines,$(sort $(basename $(notdir $(wildcard baselines/*.json)))))

# every published number beside ours: docs/validation.md (needs the real logs of ../shared/data; about a minute)
validation: $(VENV)/.dev
	$(BIN)/python -m tests.validation > docs/validation.md.new
	mv docs/validation.md.new docs/validation.md

# pictures of the pages, docs/pictures/, drawn anew
docs: $(VENV)/.dev
	$(BIN)/python -m tests.docs

bench: $(VENV)/.dev
	@$(BIN)/python -m tests.bench

# 300 million requests in one run, after 10,000 to 100 million; `make bench-long REQUESTS=1e7` runs that many only
bench-long: $(VENV)/.dev
	@$(BIN)/python -m tests.bench.long $(REQUESTS)

# docs/claims.md: every verdict computed anew
claims: $(VENV)/.core
	$(BIN)/python -m sim.claims > docs/claims.md

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel --outdir dist .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/.core: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "opticube needs Python 3.11 or newer on the PATH"; exit 2; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(PIP) install -c constraints.txt -e .
	$(BIN)/python -m compileall -q $(PACKAGES)
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@
