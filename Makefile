# kb: `make run` starts it, `make test` proves it. Both set up .venv by themselves and are quick when nothing changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup

# Else every engine that a test starts would compile all of kb anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: containers setup tools dist run test test-engines test-others test-postgres browser check lint docs bench eval lock clean crash cluster folders fuzz fuzz-database soak conformance extraction

# Says what is being done and how long it took; the whole output only when it fails.
STEP = @$(PYTHON) tools/step.py
PIP := $(BIN)/pip install --disable-pip-version-check
LOCKED := $(PIP) --require-hashes --no-deps

setup: $(STAMP)

# What runs kb, without the tools of its tests. Everything is pinned with hashes, the build backend too; the model's files
# are verified by hash. The compiler of the C parts takes 400 MB and is not needed again; where it cannot be installed,
# numpy does their work.
$(STAMP): lock/run.txt lock/compiler.txt pyproject.toml hatch_build.py $(wildcard src/kb/*/*.[ch] src/kb/*/*/*.[ch]) src/kb/__init__.py src/kb/embedding/model.py src/kb/embedding/description.py src/kb/embedding/minilm/minilm.onnx
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kb needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(STEP) "Making $(VENV)" -- sh -c 'test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)'
	$(STEP) "Installing packages" -- $(LOCKED) -r lock/run.txt
	$(STEP) --or "The compiler cannot be installed here: kb runs without its C parts, and searches take longer." \
	    "Installing the compiler of the C parts" -- $(LOCKED) -r lock/compiler.txt
	$(STEP) "Building kb" -- $(PIP) --no-deps --no-build-isolation --editable .
	$(STEP) "Removing the compiler" -- $(BIN)/pip uninstall --yes ziglang
	$(STEP) "Installing the model" -- $(BIN)/python -m kb.embedding.model install
	$(STEP) "Installing the vectors of other languages" -- $(BIN)/python -m kb.embedding.model install potion-multilingual
	@touch $@

# The tools of tests and lint, beside what runs kb.
tools: $(VENV)/.tools
$(VENV)/.tools: lock/dev.txt $(STAMP)
	$(STEP) "Installing the tools of the tests" -- $(LOCKED) -r lock/dev.txt
	@touch $@

run: setup
	@$(BIN)/kb up

# The wheels of an installation without a checkout, in dist/: with compiled kernels for this platform, without them, and
# the model; then the check that one command installs all of it in a bare environment, and that it works there.
dist: tools
	$(STEP) "Installing the compiler of the C parts" -- $(LOCKED) -r lock/compiler.txt
	@$(BIN)/python -m tools.dist build
	$(STEP) "Removing the compiler" -- $(BIN)/pip uninstall --yes ziglang
	@$(BIN)/python -m tools.dist check

# Two shares side by side, as most tests wait for a server. The order in each is fixed: tests share engines.
test: tools browser lint
	@$(MAKE) --no-print-directory --jobs=2 --keep-going test-engines test-others

ENGINES := tests/api tests/engine tests/mcp_server
test-engines:
	$(BIN)/pytest $(ENGINES)
test-others:
	$(BIN)/pytest $(addprefix --ignore=,$(ENGINES))

# Whatever starts engines, with PostgreSQL in place of SQLite; what is about the files of SQLite is left out, and named.
test-postgres: tools browser
	KB_TEST_DATABASE=postgres $(BIN)/pytest tests/api tests/cli tests/engine tests/folders tests/mcp_server tests/web

# A browser for the tests of the page, found or fetched; `make run` needs none of it.
browser: $(VENV)/.browser
$(VENV)/.browser: lock/browser.txt tools/browser.py $(VENV)/.tools
	$(STEP) "Installing what drives a browser" -- $(LOCKED) -r lock/browser.txt
	$(BIN)/python -m tools.browser
	@touch $@

# What a change can be checked with in under a minute: no test that starts a server.
check: tools lint
	$(BIN)/pytest -m "not slow"

lint: tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.reference --check

docs: tools
	$(BIN)/python -m tools.reference

# The rivals (torch among them) live in an environment of their own. All of it takes hours; ARGS="--part scale" one part,
# ARGS=--quick shows that it works.
bench: tools
	$(BIN)/python -m benchmarks $(ARGS)

eval: tools
	$(BIN)/python -m benchmarks.quality

# Needs the sample documents (KB_BENCH_DATA) and poppler's pdftotext; takes some minutes.
extraction: tools
	$(BIN)/python -m benchmarks.extraction $(ARGS)

# What these prove is in docs/durability.md. They take minutes and are no part of `make test`; ARGS="--seed 3" and the like.
crash: tools
	PYTHONPATH=tests $(BIN)/python -m crash $(ARGS)

folders: tools
	PYTHONPATH=tests $(BIN)/python -m folders $(ARGS)

# Needs root, iproute2, nftables and haproxy. ARGS="--part faults --rounds 3 --seed 1" and the like.
cluster: tools
	PYTHONPATH=tests $(BIN)/python -m cluster $(ARGS)

fuzz: tools
	KB_FUZZ_EXAMPLES=600 $(BIN)/pytest -s tests/api/test_openapi.py

# Damaged databases under the address sanitizer: needs gcc with libasan. ARGS="--seed 7 --cases 1" repeats one of them.
fuzz-database: tools
	PYTHONPATH=tests $(BIN)/python -m damaged $(ARGS)

soak: tools
	$(BIN)/python -m benchmarks.soak $(ARGS)

# The official conformance suite and the inspector, on an open server of their own. Needs npm; a minute or two.
conformance: tools
	$(BIN)/python -m tools.conformance

# Builds the images of a stack (STACK=plain, postgres or cluster) and drives it; without a Docker engine when
# check-containers is at hand.
CHECK_CONTAINERS ?= $(wildcard ../shared/bin/check-containers)
STACK ?= plain
containers: export KB_API_KEY ?= key-of-the-engine
containers: export KB_MCP_API_KEY ?= key-for-agents
containers: export KB_REPLICATION_PASSWORD ?= password-of-the-standby
containers: tools
ifneq ($(CHECK_CONTAINERS),)
	@$(BIN)/python -m tools.stacks one-file $(STACK) > compose.trial.yaml
	$(CHECK_CONTAINERS) . compose.trial.yaml -- $(abspath $(BIN)/python) -m tools.containers $(STACK); code=$$?; rm compose.trial.yaml; exit $$code
else
	export COMPOSE_FILE=$$($(BIN)/python -m tools.stacks files $(STACK)); \
	docker compose up --build -d --wait && $(BIN)/python -m tools.containers $(STACK); code=$$?; docker compose down -v; exit $$code
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
	$(LOCK) $(SILENT) --extra engine --extra mcp pyproject.toml lock/build.in -o lock/run.txt
	$(LOCK) $(SILENT) --extra engine --extra mcp --extra postgres --group dev --constraint lock/run.txt pyproject.toml lock/build.in -o lock/dev.txt
	$(LOCK) --extra postgres --constraint lock/run.txt pyproject.toml -o lock/postgres.txt
	$(LOCK) lock/browser.in -o lock/browser.txt
	$(LOCK) lock/compiler.in -o lock/compiler.txt

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/kb/*/lib*.so src/kb/*/*/lib*.so
