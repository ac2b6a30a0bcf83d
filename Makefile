# kb: `make run` starts it, `make test` proves it. Both set up .venv by themselves and are quick when nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup

.PHONY: containers setup run test browser check lint docs bench eval lock clean crash fuzz fuzz-database soak conformance extraction

setup: $(STAMP)

# Everything is pinned with hashes, the build backend too; the model's files are verified by hash. The compiler of the C
# parts takes 400 MB and is not needed again; where it cannot be installed, numpy does their work.
$(STAMP): lock/dev.txt lock/compiler.txt pyproject.toml hatch_build.py $(wildcard src/kb/*/*.[ch] src/kb/*/*/*.[ch]) src/kb/__init__.py src/kb/embedding/model.py src/kb/embedding/minilm/minilm.onnx
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kb needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r lock/dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r lock/compiler.txt 2>/dev/null \
	    || echo "The compiler (ziglang) cannot be installed here: kb runs without its C parts, and searches take longer."
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/pip uninstall --quiet --quiet --yes ziglang
	$(BIN)/python -m kb.embedding.model install
	@touch $@

run: setup
	@$(BIN)/kb up

test: setup browser lint
	$(BIN)/pytest

# A browser for the tests of the page, found or fetched; `make run` needs none of it.
browser: $(VENV)/.browser
$(VENV)/.browser: lock/browser.txt tools/browser.py $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r lock/browser.txt
	$(BIN)/python -m tools.browser
	@touch $@

# What a change can be checked with in under a minute: no test that starts a server.
check: setup lint
	$(BIN)/pytest -m "not slow"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.reference --check

docs: setup
	$(BIN)/python -m tools.reference

# The rivals (torch among them) live in an environment of their own. All of it takes hours; ARGS="--part scale" one part,
# ARGS=--quick shows that it works.
bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

eval: setup
	$(BIN)/python -m benchmarks.quality

# Needs the sample documents (KB_BENCH_DATA) and poppler's pdftotext; takes some minutes.
extraction: setup
	$(BIN)/python -m benchmarks.extraction $(ARGS)

# What these prove is in docs/durability.md. They take minutes and are no part of `make test`; ARGS="--seed 3" and the like.
crash: setup
	PYTHONPATH=tests $(BIN)/python -m crash $(ARGS)

fuzz: setup
	KB_FUZZ_EXAMPLES=600 $(BIN)/pytest -s tests/api/test_openapi.py

# Damaged databases under the address sanitizer: needs gcc with libasan. ARGS="--seed 7 --cases 1" repeats one of them.
fuzz-database: setup
	PYTHONPATH=tests $(BIN)/python -m damaged $(ARGS)

soak: setup
	$(BIN)/python -m benchmarks.soak $(ARGS)

# The official conformance suite and the inspector, on an open server of their own. Needs npm; a minute or two.
conformance: setup
	$(BIN)/python -m tools.conformance

# Builds both images and drives the stack; without a Docker engine when check-containers is at hand.
CHECK_CONTAINERS ?= $(wildcard ../shared/bin/check-containers)
containers: export KB_API_KEY ?= key-of-the-engine
containers: export KB_MCP_API_KEY ?= key-for-agents
containers: setup
ifneq ($(CHECK_CONTAINERS),)
	$(CHECK_CONTAINERS) . -- $(abspath $(BIN)/python) -m tools.containers
else
	docker compose up --build -d --wait && $(BIN)/python -m tools.containers; code=$$?; docker compose down -v; exit $$code
endif

# Needs uv (pip install uv). The locks hold for Linux and macOS, Python 3.11 and newer.
LOCK := uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --python-version 3.11
# OpenVINO's reporter stays out of them: it contacts an analytics service. So locks are installed with --no-deps.
SILENT := --no-emit-package openvino-telemetry
lock:
	$(LOCK) $(SILENT) --extra engine pyproject.toml lock/build.in lock/compiler.in -o lock/engine.txt
	$(LOCK) --extra cuda pyproject.toml lock/build.in lock/compiler.in -o lock/cuda.txt
	$(LOCK) --extra rocm pyproject.toml lock/build.in lock/compiler.in -o lock/rocm.txt
	$(LOCK) --extra mcp pyproject.toml lock/build.in -o lock/mcp.txt
	$(LOCK) $(SILENT) --extra engine --extra mcp --group dev pyproject.toml lock/build.in -o lock/dev.txt
	$(LOCK) lock/browser.in -o lock/browser.txt
	$(LOCK) lock/compiler.in -o lock/compiler.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis src/kb/*/lib*.so src/kb/*/*/lib*.so
