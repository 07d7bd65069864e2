# make serve   run hookbox; everything it needs is installed into .venv first
# make test    the tests, without the long ones
# make help    the rest

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

RUNNING := $(VENV)/.running
TESTING := $(VENV)/.testing
PROJECT := pyproject.toml hookbox/__init__.py packaging/bootstrap.py

.DEFAULT_GOAL := help
.PHONY: help venv serve test test-all witness bench lint lock clean

help:
	@echo 'make venv      create .venv from the lock'
	@echo 'make serve     run hookbox (creates a configuration with a demo source when there is none)'
	@echo 'make test      tests without the long ones'
	@echo 'make witness   the long ones alone: kills, power cuts, floods'
	@echo 'make test-all  both'
	@echo 'make bench     how fast it receives, beside other stacks; fails when a floor is missed'
	@echo 'make lint      ruff and mypy'
	@echo 'make lock      renew the locks from pyproject.toml'
	@echo 'make clean     remove .venv and what the tools left'

# Each stamp is newer than its lock once the lock is installed, so a second call costs nothing.
$(RUNNING): requirements.txt requirements-build.txt $(PROJECT)
	@echo 'installing into $(VENV) ...'
	@$(PYTHON) packaging/bootstrap.py $(VENV) requirements.txt requirements-build.txt
	@touch $@

$(TESTING): requirements-test.txt $(RUNNING)
	@echo 'installing what the tests need into $(VENV) ...'
	@$(PYTHON) packaging/bootstrap.py $(VENV) requirements-test.txt
	@touch $@

venv: $(RUNNING)

serve: $(RUNNING)
	@exec $(BIN)/hookbox serve

test: $(TESTING)
	$(BIN)/python -m pytest -m 'not witness'

test-all: $(TESTING)
	$(BIN)/python -m pytest

witness: $(TESTING)
	$(BIN)/python -m pytest -m witness

bench: $(TESTING)
	$(BIN)/python -m tests.bench.receive --check

lint: $(TESTING)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# One lock for all Pythons from 3.11 and all architectures. The versions already locked stay unless
# `make lock UPGRADE=--upgrade` asks for newer ones.
COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(UPGRADE)

lock:
	@test -x $(BIN)/uv || $(MAKE) $(TESTING)
	$(COMPILE) pyproject.toml --output-file requirements.txt
	$(COMPILE) --group build --constraint requirements.txt --output-file requirements-build.txt
	$(COMPILE) pyproject.toml --group build --group test --constraint requirements.txt \
		--constraint requirements-build.txt --output-file requirements-test.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
