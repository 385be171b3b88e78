# Thin: installs what is missing, then calls the CMake presets (CMakePresets.json).
.DEFAULT_GOAL := help
.NOTPARALLEL:
PRESET ?= release
JOBS ?= $(shell nproc)
CMAKE_ARGS ?=
PACKAGES := scripts/install-packages.sh
BIN := build/$(PRESET)/bin

.PHONY: help
help:
	@echo 'make run           build, show the documented examples, then pool and explain a picture'
	@echo 'make test          build and run all tests, then again under the address, undefined and thread sanitizers'
	@echo 'make test-release  the first of the three; test-asan and test-tsan are the others'
	@echo 'make bench         compare with the other libraries on this machine'
	@echo 'make gpu           build and run the tests that need an NVIDIA GPU'
	@echo 'make cuda          compile the CUDA backend and run what needs no GPU'
	@echo 'make format        rewrite the sources as .clang-format says; format-check only looks'
	@echo 'make tidy          clang-tidy over the sources'
	@echo 'make clean         remove build/'
	@echo
	@echo 'PRESET=$(PRESET) (release, ci, debug, asan, tsan)   JOBS=$(JOBS)   CMAKE_ARGS=$(CMAKE_ARGS) (such as -DCENOTE_CUDA=OFF)'

.PHONY: run
run:
	@$(PACKAGES) build tool nn
	cmake --preset $(PRESET) $(CMAKE_ARGS)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target cenote-demo cenote_cli
	$(BIN)/cenote-demo
	scripts/run-demo.sh $(BIN)

.PHONY: test
test: test-main test-asan test-tsan

.PHONY: test-main
test-main:
	@$(MAKE) --no-print-directory test-$(PRESET)

# One rule for every preset: test-release, test-ci, test-debug, test-asan, test-tsan.
.PHONY: test-release test-ci test-debug test-asan test-tsan
test-release test-ci test-debug test-asan test-tsan: test-%:
	@$(PACKAGES) build test tool nn
	cmake --preset $* $(CMAKE_ARGS)
	cmake --build --preset $* --parallel $(JOBS)
	ctest --preset $* --parallel $(JOBS)

.PHONY: bench
bench:
	@$(PACKAGES) build test bench nn
	cmake --preset $(PRESET) $(CMAKE_ARGS)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target cenote-compare
	$(BIN)/cenote-compare

.PHONY: gpu
gpu:
	@$(PACKAGES) build test nn
	cmake --preset $(PRESET) -DCENOTE_CUDA=ON $(CMAKE_ARGS)
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target cenote-gpu-test
	$(BIN)/cenote-gpu-test

# Compiles the CUDA backend for one architecture and runs what needs no GPU. The CPU's kernels, which take long, for one instruction set.
.PHONY: cuda
cuda:
	@$(PACKAGES) build test nn
	cmake --preset ci -B build/cuda -DCENOTE_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=90 -DCMAKE_CXX_FLAGS=-DHWY_COMPILE_ONLY_STATIC $(CMAKE_ARGS)
	cmake --build build/cuda --parallel $(JOBS) --target cenote-gpu-test cuda_geometry_test
	build/cuda/bin/cuda_geometry_test

.PHONY: format format-check
format:
	@$(PACKAGES) lint
	scripts/format.sh
format-check:
	@$(PACKAGES) lint
	scripts/format.sh --check

.PHONY: tidy
tidy:
	@$(PACKAGES) build test tool nn lint
	cmake --preset $(PRESET) $(CMAKE_ARGS)
	scripts/tidy.sh build/$(PRESET)

.PHONY: clean
clean:
	rm -rf build
