# `make` lists the targets. All of them work in .venv, which `setup` builds from pinned, hashed wheels.
PYTHON ?= python3
SHELL  := /bin/bash
UV     ?= $(or $(wildcard .venv/bin/uv),uv)
BIN    := .venv/bin
READY  := .venv/.ready

.PHONY: help setup system lint types test soak entities demo bench docs lock clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# $(call debian,packages): install them as root on Debian; elsewhere print the line to run, and fail.
debian = if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	then apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends $(1) >/dev/null; \
	else echo "missing; run: sudo apt-get install -y $(1)" >&2; exit 1; fi

setup: $(READY)  ## build .venv (once; again when pins change)
	@:

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "sfumato needs Python 3.11 or newer; name one: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); $(call debian,python$$version-venv); }
	@echo "setting up .venv: about two minutes"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install -qq --disable-pip-version-check --only-binary :all: --no-binary pyspark --require-hashes \
	  -r requirements/dev.txt
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

system:  ## install what the tests need beyond Python: a C compiler, Java for Spark, a browser, PostgreSQL, Mosquitto, MicroPython
	@command -v gcc >/dev/null || { $(call debian,gcc libc6-dev); }
	@command -v java >/dev/null || { $(call debian,default-jre-headless); }
	@command -v chromium >/dev/null || { $(call debian,chromium); }
	@command -v pg_ctl >/dev/null || ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || { $(call debian,postgresql); }
	@command -v mosquitto >/dev/null || test -x /usr/sbin/mosquitto || { $(call debian,mosquitto); }
	@command -v node >/dev/null || { $(call debian,nodejs); }
	@command -v npm >/dev/null || { $(call debian,npm); }
	@test -d .venv/micropython/node_modules || { mkdir -p .venv/micropython; cp devices/micropython/package*.json .venv/micropython; \
	  npm ci --silent --no-audit --no-fund --prefix .venv/micropython; }
	@test -d .venv/page/node_modules || { mkdir -p .venv/page; cp tests/web/package*.json .venv/page; \
	  npm ci --silent --no-audit --no-fund --prefix .venv/page; }

lint: setup  ## ruff: rules and format
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "not formatted; run: $(BIN)/ruff format" >&2; exit 1; }

types: setup  ## mypy --strict
	@$(BIN)/mypy

# A new folder in memory; nothing where TMPDIR says where files go, 4 GB are not free or no program may run there.
in_memory = test -z "$$TMPDIR" && free=$$(df -k --output=avail /dev/shm 2>/dev/null) && test "$${free\#\#*[!0-9]}" -gt 4000000 && \
	! grep -q ' /dev/shm .*noexec' /proc/mounts && mktemp -d -p /dev/shm sf.XXXX

# Types take one core for a minute. Three processes for two cores: one of them often waits, for a browser, a
# broker, Spark, a disk. Files of tests lie in memory where there is room, for a ledger waits for the disk at
# every charge; those of a run that fails are left there.
test: setup system lint  ## everything that decides: lint, types, tests, doctests, README
	@mkdir -p .mypy_cache; $(BIN)/mypy >.mypy_cache/said 2>&1 & types=$$!; \
	  if files=$$($(in_memory)); then chmod 1777 $$files; export TMPDIR=$$files; fi; \
	  $(BIN)/pytest -n 3 --dist worksteal -q $${files:+--basetemp=$$files/t}; tests=$$?; \
	  [ $$tests != 0 ] || rm -rf $$files; \
	  wait $$types && exit $$tests || { cat .mypy_cache/said; exit 1; }

soak: setup system  ## the long form of a network's faults on real processes: kills, outages, floods (a quarter of an hour)
	@$(BIN)/python -m tests.network.soak

entities: setup  ## the entities of Home Assistant, by its own schemas, in an environment of its own
	@test -x .venv-entities/bin/python || { $(PYTHON) -m venv .venv-entities && \
	  .venv-entities/bin/pip install -q --no-deps -r requirements/entities.txt; }
	@$(BIN)/python -m tests.network.entities | .venv-entities/bin/python tests/network/entities_check.py

demo: setup  ## a small private release, drawn in demo/
	@$(BIN)/sfumato demo --out demo

bench: setup  ## every benchmark in turn, one thread; kept in docs/reference/benchmarks.md
	@echo "# Benchmarks" > docs/reference/benchmarks.md
	@set -e -o pipefail; for file in benchmarks/*.py; do \
	  OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python $$file | tee -a docs/reference/benchmarks.md; done

docs: setup  ## the site, strictly, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock:  ## pin again after a change of pyproject.toml (remove requirements/dev.txt first to upgrade all)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv; run: $(BIN)/pip install uv" >&2; exit 1; }
	@$(UV) pip compile --quiet pyproject.toml --all-extras --group dev --group docs --output-file requirements/dev.txt \
	  --universal --fork-strategy fewest --python-version 3.11 --only-binary :all: --no-binary pyspark \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

clean:  ## remove all that make has made, .venv too
	@rm -rf .venv .venv-entities site demo dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
