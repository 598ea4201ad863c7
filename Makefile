# Everything from a fresh clone; needs only make and Python 3.11 or later.
#
#   make demo    install into .venv, run every example on real input, check and time it
#   make test    lint (of workflows too), types, the test suite, on WORKERS=2 processes
#   make fuzz    random kernels that nobody has run, compared with an interpreter, for SECONDS=600, or for SEEDS=0:5000;
#                VARIANT=sim: on simulated GPUs, Gluon kernels too; VARIANT=special: on NaN, infinities, denormals and
#                what rounds; VARIANT=layouts: random Gluon layouts; VARIANT=sim:cuda:80, ...: in one only;
#                KERNELS=5000 VARIANT=cpu: so many new ones, in turn in every variant of the CPU
#   make malformed   malformed kernels, IR texts and layout expressions, for SEEDS=0:5000; KIND=kernels, ttir, ttgir or
#                layouts: only these; OPTIMISED=1: under `python -O`
#   make fuzz-flow   random programs of loops, branches and returns, which Python runs too, for SEEDS=0:5000; on
#                TARGET=cpu; TRITON_PYTHON=an interpreter with Triton 3.6 asks that about what is refused
#   make fuzz-rows   random kernels over rows of any length at any address, in TARGET=sim:cuda:90 against the CPU, for
#                SEEDS=0:1000
#   make test-oracle TRITON_PYTHON=python   the suite where Triton 3.6.0 and PyTorch are: the tests that compare with it
#   make misuse  wrong calls of every builtin: refused as by Triton 3.6.0, in words of the language? and the examples of
#                all names with wrong arguments. TRITON_PYTHON=its interpreter asks it anew
#   make gpu-test   the tests that need an NVIDIA GPU
#   make gpu-bench   what is wanted of an NVIDIA GPU, beside Triton and libraries, and the counters beside Nsight Compute;
#                ROWS=attention,products: these rows of the table alone (benchmarks/goals.py); SECONDS=300: no longer
#   make gpu-fuzz   random kernels on the GPU, for SECONDS=600; findings go to the folder OUT=gpu-fuzz
#   make gpu-assembler   what ptxas makes of random PTX, optimised against not optimised; findings go to the folder OUT
#   make gpu-sanitize   tests on the GPU under compute-sanitizer, for SECONDS=600; what it reports goes to OUT
#   make triton-tests TESTS=folder   Triton's own test files (its python/test) on TARGET=cpu; PER=20: at most so many
#                cases of each function, drawn by SEED; on JOBS=2 processes; FILES=...: only these
#   make aarch64-test   all kernels of tests/kernels compiled for AArch64, run under QEMU (Debian: qemu-user,
#                gcc-aarch64-linux-gnu) and compared with what they do here, bit for bit
#   make amd-test   AMD's GPUs without one: code objects and waits of all kernels for eight processors, and of
#                random ones; all kernels and random ones, for SECONDS=60 or for SEEDS=0:100, in sim:hip:gfx942 and
#                gfx950 and gfx1201
#   make amd-emulate EMULATOR=folder   kernels and each instruction in tinygrad's emulator of AMD GPUs, a clone of its
#                repository; needs a clang (Debian: clang-19)
#   make amd-counts   instructions of main loops beside Triton's, by TRITON_PYTHON=an interpreter with Triton 3.6.0
#   make intel-test   all kernels in sim:xpu:pvc, and their SPIR-V by spirv-val
#   make intel-counts   matrix instructions and spilled registers of products for pvc, by ocloc where it is installed
#   make intel-cold   cold compiles for xpu:pvc beside those for cuda:90, without ptxas
#   make opencl-test   all kernels run by OpenCL, on a device that takes SPIR-V: Intel's runtime for processors is one
#   make vendor-lines   the lines that AMD, or VENDOR=intel, has cost in code that is no vendor's, commit by commit
#   make specialized-test   loops by two kinds of warps in the simulator: schedules, faults put into them one at a time,
#                fifty variants of attention
#   make digests   what every kernel compiles to (lane text, LLVM IR, PTX), compared with tests/digests/digests.txt;
#                UPDATE=1: rewritten; ONLY=matmul: those with that in their name
#   make lines   the lines of code in src, of LLVM IR and of data, without comments, docstrings and blanks; AT=COMMIT: then
#   make mutants   faults put into the compiler on purpose: which do the tests notice; results in OUT=mutants, goes on
#                where it stopped, begins no fault after SECONDS=10800
#   make packages   the sdist and the wheel, in dist/
#   make reproducible   both built twice, in other places, at other times: the same bytes?
#   make wheel-test   the wheel installed and tried in each Python from 3.11 to 3.14 that is here; PYTHONS="python3.13"
#   make docs    the site in docs/_build/html: every tutorial is run anew, a warning is an error
#   make notebooks   run the tutorials and write their outputs into them, after a change of one
#   make bench   the performance table of docs/explanation/performance.md (installs PyTorch and Triton for comparison)

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
SCHEMA := $(BIN)/check-jsonschema -q --builtin-schema
PYTEST_ARGS ?=
WORKERS ?= 2
SECONDS ?= 600
OUT ?= gpu-fuzz
TARGET ?= cpu
PER ?= 0
SEED ?= 1
JOBS ?= 2

.PHONY: aarch64-test amd-counts amd-emulate amd-test bench clean demo digests fuzz fuzz-flow fuzz-layouts fuzz-rows gpu gpu-assembler gpu-bench
.PHONY: gpu-fuzz gpu-sanitize gpu-test lines lint math-exhaustive misuse mutants suite test
.PHONY: docs explain-test gluon-test notebooks intel-cold intel-counts intel-test malformed opencl-test packages reproducible specialized-test test-long test-oracle triton-tests types vendor-lines wheel-test

demo: $(VENV)/.base
	$(BIN)/python -m weft demo

test: lint types suite

lint: $(VENV)/.test
	$(BIN)/ruff check src tests examples benchmarks tools
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.citation-file-format --default-filetype yaml CITATION.cff
	@if command -v actionlint > /dev/null; then actionlint; fi

types: $(VENV)/.test
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -m "slow or not slow" tests/checkers

suite: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# An interpreter with Triton 3.6.0, PyTorch and what the tests need: pip install -e '.[test,bench]' in a folder of its own.
test-oracle:
	$(if $(TRITON_PYTHON),,$(error say which Python has Triton 3.6.0: make test-oracle TRITON_PYTHON=.../bin/python))
	PYTHONPATH=$(CURDIR)/src$${PYTHONPATH:+:$$PYTHONPATH} $(TRITON_PYTHON) -m pytest $(PYTEST_ARGS)

test-long: $(VENV)/.test
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

aarch64-test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) -rs -m "slow or not slow" tests/aarch64 $(PYTEST_ARGS)

fuzz: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m fuzz.run $(if $(SEEDS),--seeds $(SEEDS),--seconds $(SECONDS)) \
		$(if $(KERNELS),--kernels $(KERNELS)) $(if $(VARIANT),--variant $(VARIANT)) --jobs $(JOBS)

# kernels, IR texts and layout expressions that are wrong: Weft's errors, soon, and nothing else
malformed: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python $(if $(OPTIMISED),-O) -m malformed.run --seeds $(or $(SEEDS),0:5000) \
		--jobs $(JOBS) $(KIND)

fuzz-flow: $(VENV)/.test
	PYTHONPATH=tests:$(CURDIR)/src $(BIN)/python -m fuzz.flow.run --seeds $(or $(SEEDS),0:5000) --target $(TARGET) \
		$(if $(TRITON_PYTHON),--triton $(TRITON_PYTHON))

fuzz-rows: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m fuzz.rows --seeds $(or $(SEEDS),0:1000) \
		--target $(if $(filter cpu,$(TARGET)),sim:cuda:90,$(TARGET))

misuse: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m misuse.verdicts $(if $(TRITON_PYTHON),--triton $(TRITON_PYTHON))
	PYTHONPATH=tests $(BIN)/python -m misuse.examples

# with TRITON_PYTHON, an interpreter that has PyTorch, pytest-xdist, expecttest and filecheck beside what Weft needs
triton-tests: $(if $(TRITON_PYTHON),,$(VENV)/.triton-tests)
	$(if $(TESTS),,$(error say where Triton's tests are: make triton-tests TESTS=.../python/test))
	PYTHONPATH=$(CURDIR)/src$${PYTHONPATH:+:$$PYTHONPATH} $(or $(TRITON_PYTHON),$(BIN)/python) \
		tools/run_triton_tests.py $(TESTS) --target $(TARGET) --per $(PER) --seed $(SEED) --jobs $(JOBS) $(FILES)

digests: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m digests.run --jobs $(JOBS) $(if $(UPDATE),--update) $(if $(ONLY),--only $(ONLY))

# the pairs of kernels of docs/reference/findings
explain-test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow" tests/explain $(PYTEST_ARGS)

# the table of docs/howto/to_gluon.md
gluon-test: $(VENV)/.test
	cd tests && PYTHONPATH=. ../$(BIN)/python -m writing.compare $(ONLY)

# loops by two kinds of warps: schedules, faults put into them, variants of attention (docs/explanation/gpu.md)
specialized-test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow" tests/hopper/test_specialized.py \
		tests/hopper/test_pointed.py tests/hopper/test_tiles.py tests/hopper/test_tile_stores.py tests/hopper/test_put_faults.py \
		tests/hopper/test_attentions.py tests/hopper/test_gradients.py tests/hopper/test_many_products.py $(PYTEST_ARGS)

amd-test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow" tests/amd tests/targets/test_amd.py \
		tests/machines/amd $(PYTEST_ARGS)
	PYTHONPATH=tests $(BIN)/python -m amd.suite --jobs $(JOBS)
	PYTHONPATH=tests $(BIN)/python -m amd.meetings
	PYTHONPATH=tests $(BIN)/python -m amd.random_code --seeds 0:200
	for target in gfx942 gfx950 gfx1201; do PYTHONPATH=tests $(BIN)/python -m fuzz.run --jobs $(JOBS) \
		$(if $(SEEDS),--seeds $(SEEDS),--seconds $(if $(filter file,$(origin SECONDS)),60,$(SECONDS))) \
		--variant sim:hip:$$target || exit 1; done

amd-emulate: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m amd.emulated $(EMULATOR) --jobs $(JOBS)

amd-counts: $(VENV)/.test
	TRITON_PYTHON=$(TRITON_PYTHON) $(BIN)/python benchmarks/amd_counts.py $(if $(ONLY),--only "$(ONLY)")

intel-test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow" tests/intel --deselect tests/intel/test_opencl.py \
		$(PYTEST_ARGS)

intel-counts: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m intel.ocloc

intel-cold: $(VENV)/.test
	$(BIN)/python benchmarks/intel_cold.py

opencl-test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) -rs -m "slow or not slow" tests/intel/test_opencl.py $(PYTEST_ARGS)

vendor-lines: $(VENV)/.test
	$(BIN)/python tools/vendor_lines.py $(if $(AT),--since $(AT)) $(if $(VENDOR),--vendor $(VENDOR))

lines: $(VENV)/.test
	$(BIN)/python tools/lines_of_code.py $(if $(AT),--at $(AT))

mutants: $(VENV)/.test
	PYTHONPATH=tests $(BIN)/python -m mutants.run --jobs $(WORKERS) $(if $(filter-out gpu-fuzz,$(OUT)),--out $(OUT))

# the elementary functions on every float there is; some hours
math-exhaustive: $(VENV)/.test
	$(BIN)/python -m pytest -m slow tests/vecmath $(PYTEST_ARGS)

# random conversions between layouts, executed on every element; an hour or two on two cores
fuzz-layouts: $(VENV)/.test
	$(BIN)/python tests/layouts/plans.py $(or $(FIRST),100000) $(or $(COUNT),1000000)

# why not, where there is no GPU: before anything large is installed
gpu: $(VENV)/.gpu
	$(BIN)/python tools/need_gpu.py

gpu-test: gpu
	$(BIN)/python -m pytest tests/gpu -n $(WORKERS) $(PYTEST_ARGS)

gpu-fuzz: gpu
	PYTHONPATH=tests $(BIN)/python -m fuzz.run --variant gpu --seconds $(SECONDS) --out $(OUT)

gpu-assembler: gpu
	PYTHONPATH=tests $(BIN)/python -m assembler.run --seconds $(SECONDS) --out $(OUT)

gpu-sanitize: gpu
	$(BIN)/python tools/sanitize.py --seconds $(SECONDS) --out $(OUT)

gpu-bench: gpu $(VENV)/.bench
	$(BIN)/python benchmarks/gpu_goals.py $(if $(ROWS),--rows $(ROWS)) \
		$(if $(filter-out file,$(origin SECONDS)),--seconds $(SECONDS)); status=$$?; \
	$(if $(ROWS),,$(BIN)/python benchmarks/ncu.py --save &&) exit $$status

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/cpu.py

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

notebooks: $(VENV)/.docs
	$(BIN)/python tools/notebooks.py

# the sdist and the wheel; files in them have the time SOURCE_DATE_EPOCH, or that of hatchling
packages: $(VENV)/.packages
	$(BIN)/python -m hatchling build

reproducible: $(VENV)/.packages
	$(BIN)/python tools/packages.py reproducible

wheel-test: $(VENV)/bin/python
	$(BIN)/python tools/packages.py test $(PYTHONS)

$(VENV)/bin/python:
	$(if $(PYTHON),,$(error no Python 3.11 or later was found: set PYTHON=...))
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[test]"
	touch $@

$(VENV)/.gpu: $(VENV)/.test
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[cuda]"
	touch $@

$(VENV)/.triton-tests: $(VENV)/.test
	$(BIN)/python -m pip install -q --disable-pip-version-check torch numpy scipy expecttest filecheck cloudpickle
	touch $@

$(VENV)/.packages: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check "hatchling>=1.21"
	touch $@

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[docs]"
	touch $@

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
