# Every target works on a machine that has Python 3.11+ and make: the virtual
# environment is created, and brought up to date, where it is needed.
PYTHON ?= python3
VENV   := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(SCRIPTS)
STAMP  := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal

TORCH  ?= torch==2.13.0

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\#.*/\1/p' $(MAKEFILE_LIST))

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## The paper's method, a table from file to predictions, and digits: a minute
	$(BIN)/python examples/demo.py --out out/demo

test: $(STAMP)  ## Run the tests, on all cores; what needs PyTorch, a browser or the site is skipped
	$(PYTEST)

test-full: torch intervals docs  ## Run what the last `make test` skipped, with PyTorch, Triton, MAPIE, skpro and the site
	$(PYTEST) --skipped-before

test-parallel: $(STAMP)  ## Run every test of the estimators on four threads at once
	$(BIN)/python -m pytest --parallel-threads 4 tests/estimators tests/learn

VERSIONS ?= 3.12 3.13 3.14

test-versions:  ## Run the tests with other versions of Python (VERSIONS="3.12 3.13"), those that are here
	for python in $$($(PYTHON) tools/pythons.py $(VERSIONS)); do \
	  $$python --version && environment=.venv-$$(basename $$python) && \
	  $$python -m venv $$environment && \
	  $$environment/$(SCRIPTS)/python -m pip install --quiet --editable '.[test]' && \
	  $$environment/$(SCRIPTS)/python -m pytest --numprocesses auto --dist worksteal $(TESTS) || exit 1; \
	done

test-slow: $(STAMP)  ## Run the tests that take minutes: the paper's simulation, 20 seeds
	$(BIN)/python -m pytest -m slow

EXAMPLES ?= 10000
SEED     ?= $(shell date +%s)

fuzz: $(STAMP)  ## Try 10,000 mutated model files and the laws at 10,000 examples each (EXAMPLES, SEED): hours
	@echo "seed $(SEED), with which a run that was stopped goes on; what fails is kept in tests/examples and .hypothesis/examples"
	NYSBOOST_FUZZ_FILES=$(EXAMPLES) NYSBOOST_FUZZ_SEED=$(SEED) NYSBOOST_MEMORY=17179869184 \
	  timeout 6h $(BIN)/python -m pytest -s tests/test_fuzz.py
	$(BIN)/python tools/fuzz.py --examples $(EXAMPLES) --seed $(SEED) --out out/fuzz/$(SEED)

fault: $(STAMP)  ## Kill 80 runs at random moments: what was whole stays whole (KILLS=20 of each kind)
	NYSBOOST_KILLS=$(or $(KILLS),20) $(BIN)/python -m pytest -m "slow or not slow" -s tests/test_faults.py

torch: $(VENV)/.torch  ## Install PyTorch, with xRFM and Triton, which stand on it, into the environment

$(VENV)/.torch: $(STAMP)
	$(BIN)/python -m pip install --quiet '$(TORCH)' xrfm triton
	@touch $@

# skpro's bounds on pandas would replace the newest pandas, with which the other tests run.
intervals: $(STAMP)  ## Install MAPIE and skpro, which calibrate and predict intervals with our learners
	$(BIN)/python -m pip install --quiet --no-deps mapie skpro scikit-base

test-floor:  ## Run the tests with exactly the lowest versions in pyproject.toml
	rm -rf .venv-floor && $(PYTHON) -m venv .venv-floor
	$(PYTHON) tools/floor.py > .venv-floor/requirements.txt
	.venv-floor/$(SCRIPTS)/python -m pip install --quiet --requirement .venv-floor/requirements.txt
	.venv-floor/$(SCRIPTS)/python -m pip install --quiet --no-deps --editable .
	.venv-floor/$(SCRIPTS)/python -m pytest --numprocesses auto --dist worksteal

# Processes whose disk is full on purpose could not write down which branches they took.
coverage: $(STAMP)  ## Run the tests and show which branches they take
	$(BIN)/python -m pip install --quiet --editable '.[coverage]'
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest --numprocesses auto --dist worksteal --ignore tests/test_faults.py
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

mutate: $(STAMP)  ## Break the numerical core on purpose, and see which tests notice (SECONDS, SEED)
	$(BIN)/python tools/mutate.py --seconds $(or $(SECONDS),1800) --seed $(or $(SEED),0)

build:  ## Make wheel and sdist and check their metadata: dist/
	rm -rf dist .venv-build && $(PYTHON) -m venv .venv-build
	.venv-build/$(SCRIPTS)/python -m pip install --quiet build twine
	.venv-build/$(SCRIPTS)/python -m build --outdir dist
	.venv-build/$(SCRIPTS)/python -m twine check --strict dist/*

test-core: build  ## Test the wheel with the core's dependencies alone, then the sdist with all extras
	rm -rf .venv-core && $(PYTHON) -m venv .venv-core
	.venv-core/$(SCRIPTS)/python -m pip install --quiet dist/*.whl pytest
	cd dist && ../.venv-core/$(SCRIPTS)/python ../packaging/smoke.py
	cd packaging && ../.venv-core/$(SCRIPTS)/python -m pytest -c /dev/null -q -p no:cacheprovider test_core.py
	.venv-core/$(SCRIPTS)/python -m pip install --quiet "$$(ls $(CURDIR)/dist/*.tar.gz)[all]"
	cd dist && ../.venv-core/$(SCRIPTS)/python ../packaging/smoke.py && ../.venv-core/$(SCRIPTS)/python ../examples/demo.py --out demo

lint: $(STAMP)  ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)  ## Build the site, with its gallery: out/docs/index.html
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs out/docs
	@echo "The site is built: open out/docs/index.html"

REPRODUCE := reproduce all --variants stated --replicates 30 --replicates simulation=100 --seed 0 \
  --out out/reproduction $(if $(DATA),--data-dir $(DATA))

reproduction: $(STAMP)  ## Run the paper's experiments again and write docs/reproduction.md (DATA=folder): hours / cores
	$(BIN)/nysboost $(REPRODUCE)
	$(BIN)/python tools/reproduction_page.py out/reproduction

reproduction-page: $(STAMP)  ## Write docs/reproduction.md from the records in out/reproduction (DATA=folder)
	$(BIN)/nysboost $(REPRODUCE) --report-only
	$(BIN)/python tools/reproduction_page.py out/reproduction

bench: $(STAMP)  ## Measure time, memory and error of approximations and their uses (DATA=folder): fifteen minutes
	$(BIN)/python benchmarks/transform.py
	$(BIN)/python benchmarks/fit.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/uses.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/certificates.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/dask_scale.py

bench-methods: $(STAMP)  ## Compare all methods, and joint on 17 data sets with 8 kernels (DATA=folder): five minutes
	$(BIN)/python benchmarks/systems.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/zoo.py $(if $(DATA),--data-dir $(DATA))

bench-gpu: $(STAMP)  ## Measure time and error on a GPU; needs PyTorch with CUDA in the environment
	$(BIN)/python benchmarks/gpu.py

bench-learning: $(STAMP)  ## Learners on public tables, and times of fits (DATA=folder, DEVICE=cuda, LEARNERS="LightGBM xRFM")
	$(BIN)/python benchmarks/learning.py --splits 0 1 2 3 4 $(if $(DATA),--data-dir $(DATA)) $(if $(DEVICE),--device $(DEVICE)) \
	  $(if $(LEARNERS),--learners NysBoost $(LEARNERS))
	$(BIN)/python benchmarks/learning.py --only times

bench-learning-scale: $(STAMP)  ## Learn from memory maps of 10⁵ to 10⁷ rows, and measure predict: minutes to an hour
	$(BIN)/python benchmarks/learning.py --only memory predict

bench-large: $(STAMP)  ## Learn 262,144 rows with calendar columns and categories, beside LightGBM: minutes
	$(BIN)/python benchmarks/large_table.py

bench-leaderboard: $(STAMP)  ## Errors, ranks and time of learners on every table (DATA=folder, SPLITS=2): hours
	$(BIN)/python benchmarks/leaderboard.py --splits $(or $(SPLITS),2) $(if $(DATA),--data-dir $(DATA))

bench-distributions: $(STAMP)  ## Measure predictive distributions against quantiles of trees (DATA=folder): twenty minutes
	$(BIN)/python benchmarks/distributions.py $(if $(DATA),--data-dir $(DATA))

bench-evidence: $(STAMP)  ## Measure the figures of docs/evidence.md that no other target makes (DATA=folder): ten minutes
	$(BIN)/python benchmarks/evidence.py $(if $(DATA),--data-dir $(DATA))

RECORDED := leaderboard distributions evidence systems zoo
REPORTED := transform fit uses certificates dask_scale

results: $(STAMP)  ## Put what was measured into docs/results.json, and from there into README and pictures
	$(foreach part,$(RECORDED),$(if $(wildcard out/$(part).jsonl),\
	  $(BIN)/python benchmarks/results.py $(part) out/$(part).jsonl &&)) true
	$(if $(wildcard $(REPORTED:%=out/%.json)),\
	  $(BIN)/python benchmarks/results.py reports $(wildcard $(REPORTED:%=out/%.json)))
	$(BIN)/python benchmarks/results.py pages

clean:  ## Remove what the targets made
	rm -rf $(VENV) .venv-* .coverage* mutants out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
