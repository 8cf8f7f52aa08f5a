# The habits of this repository. They work on a fresh machine with make, a C++ compiler and Python 3.
# A build of llama.cpp for a GPU: make demo LLAMA="-DGGML_CUDA=ON" (or -DGGML_METAL=ON).
SHELL := /bin/bash
LLAMA ?= -DGGML_NATIVE=OFF
READY := .venv/.ready
UV := $(shell uv pip install --help 2>/dev/null | grep -q config-settings-package && echo uv || echo .uv/bin/uv)
# mysqlclient is built from source: without its client library it's left out, and all but MySQL and MariaDB works.
LEFT_OUT := $(shell for name in libmariadb mysqlclient mariadb; do pkg-config --exists $$name 2>/dev/null && exit; done; echo mysqlclient)
INSTALL = VIRTUAL_ENV=.venv $(UV) pip install -q --require-hashes -r .venv/requirements.txt \
  --config-settings-package "llama-cpp-python:cmake.args=$(LLAMA)"

.PHONY: demo test lint fix docs bench lock venv

demo: venv
	@.venv/bin/migrate demo

test: venv
	.venv/bin/python -m pytest

lint: venv
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

fix: venv
	.venv/bin/ruff check --fix . ; .venv/bin/ruff format .

docs: venv
	.venv/bin/python docs/generate.py

bench: venv
	.venv/bin/python -m bench.pipe

lock: $(filter-out uv,$(UV))
	$(UV) pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes -q -o requirements.lock

venv: $(READY)

$(READY): requirements.lock pyproject.toml | $(filter-out uv,$(UV))
	@command -v c++ >/dev/null || { echo "llama.cpp needs a C++ compiler: apt install g++ (macOS: xcode-select --install)"; exit 1; }
	@test -x .venv/bin/python || $(UV) venv -q --python '>=3.11' .venv
	@$(if $(LEFT_OUT),echo "MySQL and MariaDB are left out. To have them: apt install libmariadb-dev pkg-config; rm $(READY); make venv")
	@awk '/^[^ #]/ { skip = /^($(or $(LEFT_OUT),-))==/ } !skip' requirements.lock > .venv/requirements.txt
	@echo "installing what requirements.lock names; llama.cpp is compiled the first time (5 to 8 minutes on two cores)"
	@# from the cache alone first: an index that forbids caching would have llama.cpp compiled for each new .venv
	@$(INSTALL) --offline 2>/dev/null || $(INSTALL)
	@VIRTUAL_ENV=.venv $(UV) pip install -q --no-deps -e .
	@touch $(READY)

.uv/bin/uv:
	@{ python3 -m venv .uv && .uv/bin/python -m pip install -q uv; } 2>/dev/null \
	  || python3 -m pip install -q --target .uv uv \
	  || { echo "uv could not be installed: apt install python3-venv, or see https://docs.astral.sh/uv"; exit 1; }
