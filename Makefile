# The habits of this repository. They work on a fresh machine with make, a C++ compiler and Python 3.
# A build of llama.cpp for a GPU: make venv GPU=cuda (or metal, vulkan); LLAMA="-D..." sets its CMake options oneself.
SHELL := /bin/bash
# The measurement, smaller: make bench BENCH="--contacts 200000" (see docs/speed.md).
GPU ?= cpu
LLAMA_cpu := -DGGML_NATIVE=OFF
LLAMA_cuda := -DGGML_NATIVE=OFF -DGGML_CUDA=ON
LLAMA_metal := -DGGML_NATIVE=OFF -DGGML_METAL=ON
LLAMA_vulkan := -DGGML_NATIVE=OFF -DGGML_VULKAN=ON
LLAMA ?= $(or $(LLAMA_$(GPU)),$(error GPU is cpu, cuda, metal or vulkan, not $(GPU)))
READY := .venv/.ready
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .uv/bin/uv)
# mysqlclient is built from source: without its client library it's left out, and all but MySQL and MariaDB works.
LEFT_OUT := $(shell for name in libmariadb mysqlclient mariadb; do pkg-config --exists $$name 2>/dev/null && exit; done; echo mysqlclient)
# Compiled once, here: each process would otherwise compile them anew where it may not, or is told not to, write bytecode.
INSTALL = VIRTUAL_ENV=.venv $(UV) pip install -q --compile-bytecode
unexport PYTHONDONTWRITEBYTECODE
# llama.cpp is compiled once a machine, version and setting, whatever becomes of .venv and of uv's cache
WHEELS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/packhorse/llama$(subst $() ,,$(LLAMA))
WHEEL := $(WHEELS)/llama_cpp_python-$(shell sed -n 's/^llama-cpp-python==\([^ ]*\).*/\1/p' requirements.lock)-*.whl

.PHONY: demo test lint fix docs site bench train test-train lock venv installed

demo: venv
	@.venv/bin/migrate demo

test: venv
	.venv/bin/python -m pytest -n logical --dist loadfile

# Wheel and sdist, each in a clean environment, as far as the demo's end there: 5 minutes
installed: venv
	.ci/installed

lint: venv site
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

fix: venv
	.venv/bin/ruff check --fix . ; .venv/bin/ruff format .

docs: venv
	.venv/bin/python docs/generate.py

# The documentation as a site, in build/site: a broken link or a page that no menu names fails
site: venv
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build

bench: venv
	.venv/bin/python -m bench.pipe $(BENCH)

# The encoder's adapter anew (docs/training.md); make train SMALL=1 goes the whole way in a minute, and is of no use.
train: .venv-train/.ready
	nice .venv-train/bin/python -m learning train $(if $(SMALL),--small -o build/learning-small)

# What of learning wants torch, on a tiny model of Qwen3's architecture
test-train: .venv-train/.ready
	.venv-train/bin/python -m pytest -q tests/test_learning_base.py

# What trains lies over the usual environment, and that one never sees it.
.venv-train/.ready: pyproject.toml $(READY)
	@test -x .venv-train/bin/python || $(UV) venv -q --python .venv/bin/python .venv-train
	@VIRTUAL_ENV=.venv-train $(UV) pip install -q $(TORCH) --group train
	@.venv/bin/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
	  > $$(.venv-train/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/usual.pth
	@touch $@

lock: $(filter-out uv,$(UV))
	$(UV) pip compile pyproject.toml --all-extras --group dev --group site --universal --python-version 3.11 --generate-hashes -q -o requirements.lock

venv: $(READY)

$(READY): requirements.lock pyproject.toml | $(filter-out uv,$(UV))
	@command -v c++ >/dev/null || { echo "llama.cpp needs a C++ compiler: apt install g++ (macOS: xcode-select --install)"; exit 1; }
	@test -x .venv/bin/python || $(UV) venv -q --python '>=3.11' .venv
	@$(if $(LEFT_OUT),echo "MySQL and MariaDB are left out. To have them: apt install libmariadb-dev pkg-config; rm $(READY); make venv")
	@awk '/^[^ #]/ { skip = /^($(or $(LEFT_OUT),-)|llama-cpp-python)==/ } !skip' requirements.lock > .venv/requirements.txt
	@awk '/^[^ #]/ { keep = /^llama-cpp-python==/ } keep' requirements.lock > .venv/llama.txt
	@$(INSTALL) --no-deps --require-hashes -r .venv/requirements.txt
	@$(if $(wildcard $(WHEEL)),:,echo "llama.cpp is compiled, this once: 4 to 8 minutes on two cores"; \
	  $(UV) tool run -q pip wheel -q --no-deps --require-hashes -r .venv/llama.txt -w $(WHEELS) -C "cmake.args=$(subst $() ,;,$(LLAMA))")
	@$(INSTALL) --no-deps $(WHEEL)
	@$(INSTALL) --no-deps -e .
	@touch $(READY)

.uv/bin/uv:
	@{ python3 -m venv .uv && .uv/bin/python -m pip install -q uv; } 2>/dev/null \
	  || python3 -m pip install -q --target .uv uv \
	  || { echo "uv could not be installed: apt install python3-venv, or see https://docs.astral.sh/uv"; exit 1; }
