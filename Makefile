# Every target works on a machine that has Python 3.11+ and make: the virtual
# environment is created, and brought up to date, where it is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

BENCHES := transform same_error boosting_time large_transform fit_scaling joint_time

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint bench bench-accuracy bench-zoo bench-gpu clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## A tour of ten methods, then the paper's simulation with its report
	$(BIN)/python examples/demo.py --out out
	$(BIN)/nysboost reproduce simulation --replicates 10 --out out/simulation

test: $(STAMP)  ## Run the tests
	$(BIN)/python -m pytest

test-slow: $(STAMP)  ## Run the tests that take minutes: the paper's simulation, 20 seeds
	$(BIN)/python -m pytest -m slow

lint: $(STAMP)  ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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

bench-gpu: $(STAMP)  ## Measure time and error on a GPU; needs PyTorch with CUDA in the environment
	$(BIN)/python benchmarks/gpu.py

clean:  ## Remove what the targets made
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
