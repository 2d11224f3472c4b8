# Every target works on a machine that has Python 3.11+ and make: the virtual
# environment is created, and brought up to date, where it is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

TORCH  ?= torch==2.13.0

BENCHES := transform same_error boosting_time large_transform fit_scaling joint_time

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\#.*/\1/p' $(MAKEFILE_LIST))

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## Learning, ten methods, the paper's simulation with its report
	$(BIN)/python examples/learning.py --out out
	$(BIN)/python examples/demo.py --out out
	$(BIN)/nysboost reproduce simulation --replicates 6 --out out/simulation
	@echo "Open out/simulation/report.html; the pictures are out/learning.png and out/demo.png."

test: $(STAMP)  ## Run the tests, on all cores
	$(BIN)/python -m pytest --numprocesses auto

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

torch: $(VENV)/.torch  ## Install PyTorch, and xRFM, which stands on it, into the environment

$(VENV)/.torch: $(STAMP)
	$(BIN)/python -m pip install --quiet '$(TORCH)' xrfm
	@touch $@

test-torch: torch  ## Run the tests of other arrays with PyTorch, which is installed for it
	$(BIN)/python -m pytest tests/test_backends.py

test-floor:  ## Run the tests with exactly the lowest versions in pyproject.toml
	rm -rf .venv-floor && $(PYTHON) -m venv .venv-floor
	$(PYTHON) tools/floor.py > .venv-floor/requirements.txt
	.venv-floor/bin/python -m pip install --quiet --requirement .venv-floor/requirements.txt
	.venv-floor/bin/python -m pip install --quiet --no-deps --editable .
	.venv-floor/bin/python -m pytest --numprocesses auto

# Processes whose disk is full on purpose could not write down which branches they took.
coverage: $(STAMP)  ## Run the tests and show which branches they take
	$(BIN)/python -m pip install --quiet --editable '.[coverage]'
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest --numprocesses auto --ignore tests/test_faults.py
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

mutate: $(STAMP)  ## Break the numerical core on purpose, and see which tests notice (SECONDS, SEED)
	$(BIN)/python tools/mutate.py --seconds $(or $(SECONDS),1800) --seed $(or $(SEED),0)

build:  ## Make wheel and sdist, and run the demo from the wheel in an empty environment
	rm -rf dist .venv-build && $(PYTHON) -m venv .venv-build
	.venv-build/bin/python -m pip install --quiet build
	.venv-build/bin/python -m build --outdir dist
	rm -rf .venv-wheel && $(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet "$$(ls $(CURDIR)/dist/*.whl)[experiments]"
	cd dist && ../.venv-wheel/bin/python ../examples/demo.py --out demo

lint: $(STAMP)  ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)  ## Build the site, with its gallery: out/docs/index.html
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs out/docs
	@echo "The site is built: open out/docs/index.html"

docs-test: docs  ## Look at the built site in a browser: links, pictures, search, phone, dark mode
	$(BIN)/python -m pytest -q tests/docs

reproduction: $(STAMP)  ## Run the paper's experiments again and write docs/reproduction.md (DATA=folder): hours
	$(BIN)/nysboost reproduce all --variants stated --replicates 30 --replicates simulation=100 --seed 0 \
	  --out out/reproduction $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python tools/reproduction_page.py out/reproduction

bench-accuracy: $(STAMP)  ## Measure accuracy per landmark on the paper's data (DATA=folder): hours
	$(BIN)/python benchmarks/accuracy.py $(if $(DATA),--data-dir $(DATA))

bench-zoo: $(STAMP)  ## Compare joint with every peer on 17 data sets (DATA=folder), reduced: an hour
	$(BIN)/python benchmarks/zoo.py --seeds 1 --rows 1000 --sizes 60 240 $(if $(DATA),--data-dir $(DATA))

bench: $(STAMP)  ## Measure time, memory and error against the floor and the peers (DATA=folder): minutes
	$(BIN)/python benchmarks/transform.py
	$(BIN)/python benchmarks/same_error.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/boosting_time.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/large_transform.py
	$(BIN)/python benchmarks/fit_scaling.py
	$(BIN)/python benchmarks/joint_time.py $(if $(DATA),--data-dir $(DATA))
	$(BIN)/python benchmarks/summary.py $(BENCHES:%=out/%.json)

bench-uses: $(STAMP)  ## Measure kernel PCA, clustering, machines and tests against the exact ones (DATA=folder): half an hour
	$(BIN)/python benchmarks/uses.py $(if $(DATA),--data-dir $(DATA))

bench-systems: $(STAMP)  ## Measure all methods at 240 columns on the paper's data (DATA=folder): an hour
	$(BIN)/python benchmarks/systems.py $(if $(DATA),--data-dir $(DATA))

bench-trust: $(STAMP)  ## Measure certificates and tolerances against the truth (DATA=folder): half an hour
	$(BIN)/python benchmarks/certificates.py $(if $(DATA),--data-dir $(DATA))

bench-gpu: $(STAMP)  ## Measure time and error on a GPU; needs PyTorch with CUDA in the environment
	$(BIN)/python benchmarks/gpu.py

bench-dask: $(STAMP)  ## Measure Dask against the same work in memory, and what a row costs
	$(BIN)/python benchmarks/dask_scale.py

bench-learning-scale: $(STAMP)  ## Learn from memory maps of 10⁵ to 10⁷ rows, and measure predict: minutes to an hour
	$(BIN)/python benchmarks/learning_scale.py
	$(BIN)/python benchmarks/learning_predict.py

bench-learning: $(STAMP)  ## Regression and classification on public tables against trees and Gaussian processes (DATA=folder, DEVICE=cuda)
	$(BIN)/python benchmarks/learning.py $(if $(DATA),--data-dir $(DATA)) $(if $(DEVICE),--device $(DEVICE))
	$(BIN)/python benchmarks/classification.py --trees $(if $(DATA),--data-dir $(DATA)) $(if $(DEVICE),--device $(DEVICE))

clean:  ## Remove what the targets made
	rm -rf $(VENV) .venv-floor .venv-build .venv-wheel .coverage* mutants out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
