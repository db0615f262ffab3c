# The one front door. `make help` lists what there is.
#
# `make demo` and `make test` set up everything they need in ./.venv; Python >= 3.11 and make are all a machine must have.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GENERATE_VENV := .venv-generate
PROTOS := $(sort $(wildcard proto/sessionref/v1/*.proto))
GENERATED := clients/python/gen
RELEASED_IMAGE := proto/released.binpb
# Stubs refuse to import under an older protobuf than they were made for: generate with one major version back.
GENERATE_TOOLS := grpcio-tools==1.76.0 mypy-protobuf==5.1.0 types-protobuf==6.32.1.20251210 googleapis-common-protos==1.76.0 setuptools==80.9.0

# Where a virtual environment keeps the .proto files of googleapis-common-protos.
googleapis = $(shell $(1)/python -c 'import google.rpc, pathlib; print(pathlib.Path(google.rpc.__path__[0]).parent.parent)')

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# --- set-up ----------------------------------------------------------------------------------------------------------------------

$(VENV)/runtime.stamp: server/requirements/runtime.txt pyproject.toml clients/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("sessionref needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r server/requirements/runtime.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e clients/python -e .
	@touch $@

$(VENV)/development.stamp: $(VENV)/runtime.stamp server/requirements/development.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r server/requirements/development.txt
	@touch $@

.PHONY: setup
setup: $(VENV)/development.stamp ## everything for working on the project

# --- use -------------------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(VENV)/runtime.stamp ## serve the sample sessions, search, prepare, print
	@$(BIN)/python examples/demo.py

.PHONY: serve
serve: $(VENV)/runtime.stamp ## serve your own sessions
	@$(BIN)/sessionref serve

# --- test ------------------------------------------------------------------------------------------------------------------------

.PHONY: test
test: setup ## all tests
	$(BIN)/python -m pytest

.PHONY: golden
golden: setup ## rewrite the golden files from what the code does now; read the diff
	$(BIN)/python -m pytest tests/golden --rewrite-golden

.PHONY: bench
bench: setup ## measure speed and memory; prints figures, writes JSON and a plot to build/bench
	$(BIN)/python -m tests.bench

# --- check and fix ---------------------------------------------------------------------------------------------------------------

.PHONY: check
check: check-format check-lint check-types check-imports check-proto check-generated ## everything that is not a test

.PHONY: check-format check-lint check-types check-imports
check-format: setup
	$(BIN)/ruff format --check .
check-lint: setup
	$(BIN)/ruff check .
check-types: setup
	$(BIN)/pyright
check-imports: setup
	PYTHONPATH=server:clients/python:$(GENERATED) $(BIN)/lint-imports

.PHONY: fix
fix: setup ## format, and mend what can be mended by machine
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .
	$(BIN)/buf format --write proto

# buf finds google/rpc/status.proto in the installed googleapis-common-protos, through a workspace of two modules.
define with_workspace
	@rm -rf build/proto && mkdir -p build/proto/googleapis/google
	@cp -R proto build/proto/proto && rm build/proto/proto/buf.yaml
	@cp -R $(call googleapis,$(BIN))/google/rpc build/proto/googleapis/google/rpc
	@sed -e 's|path: \.|path: proto\n  - path: googleapis|' proto/buf.yaml > build/proto/buf.yaml
	@cd build/proto && $(1)
endef

.PHONY: check-proto
check-proto: setup
	$(BIN)/buf format --diff --exit-code proto
	$(call with_workspace,$(CURDIR)/$(BIN)/buf lint proto && $(CURDIR)/$(BIN)/buf breaking proto --against $(CURDIR)/$(RELEASED_IMAGE))

.PHONY: release-proto
release-proto: setup ## keep the contract as it is now as the released one, for check-proto to compare with
	$(call with_workspace,$(CURDIR)/$(BIN)/buf build proto --exclude-source-info -o $(CURDIR)/$(RELEASED_IMAGE))

# --- generated code --------------------------------------------------------------------------------------------------------------

$(GENERATE_VENV)/stamp: Makefile
	@$(PYTHON) -m venv $(GENERATE_VENV)
	@$(GENERATE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(GENERATE_TOOLS)
	@touch $@

define generate_into
	@rm -rf $(1)/sessionref && mkdir -p $(1)
	@PATH="$(CURDIR)/$(GENERATE_VENV)/bin:$$PATH" $(GENERATE_VENV)/bin/python -m grpc_tools.protoc -Iproto \
		-I$(call googleapis,$(GENERATE_VENV)/bin) \
		--python_out=$(1) --grpc_python_out=$(1) --mypy_out=quiet:$(1) --mypy_grpc_out=quiet:$(1) $(PROTOS)
endef

.PHONY: generate
generate: $(GENERATE_VENV)/stamp ## make the Python stubs from the contract
	$(call generate_into,$(GENERATED))

.PHONY: check-generated
check-generated: $(GENERATE_VENV)/stamp
	$(call generate_into,build/generated)
	diff -r --exclude=__pycache__ build/generated/sessionref $(GENERATED)/sessionref

# --- dependencies ----------------------------------------------------------------------------------------------------------------

LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	--no-emit-package sessionref-client --custom-compile-command "make lock"

.PHONY: lock
lock: ## pin all dependencies with hashes (needs uv)
	$(LOCK) --group build -o server/requirements/runtime.txt
	$(LOCK) --group dev -o server/requirements/development.txt

.PHONY: clean
clean: ## remove what can be made again
	rm -rf $(VENV) $(GENERATE_VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
