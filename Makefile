# Two commands do everything on a machine with Python 3.11+ and make: `make tabular` and `make test`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# Four processes on two cores, because tests often wait for other processes or for time.
TESTS := -m pytest --numprocesses 4 --dist worksteal
# Number of broken F3 files for each of three decoders, and of damaged payloads for each of two decoders.
F3_FILES ?= 10000
F3_PAYLOADS ?= 20000
PACKAGES := adapters bench_runner data_generator document_stores format_bench formats image_storages libraries reports

.PHONY: setup tabular test test-quick test-times test-browser planted lint selfbench selfbench-device selfbench-asv selfbench-cluster selfbench-compare selfbench-recommend selfbench-within selfbench-convert selfbench-f3 selfbench-near-storage selfbench-documents fuzz-import fuzz-f3 fuzz-near-storage fuzz-documents clean

setup: $(VENV)/.ready  ## install the libraries into .venv; all other commands do this themselves

tabular: $(VENV)/.ready  ## measure every format on two tables of 50,000 rows: table and report in two minutes, then XML and Excel
	$(RUN) main.py --tabular --datasets '^(eq|core)$$' --rows 50000 --track plain --rounds 7 --budget 200s --report

test: $(VENV)/.ready  ## all tests except those that need a browser
	$(RUN) $(TESTS) -m "not browser"

test-quick: $(VENV)/.ready  ## the fast tests, about a minute; for an adapter, run its test file as well
	$(RUN) $(TESTS) --quick -m "not slow and not browser"

test-times: $(VENV)/.ready  ## all tests, and from their durations the list of those that test-quick leaves out
	$(RUN) $(TESTS) -m "not browser" --junit-xml=.pytest_cache/times.xml
	$(RUN) -m tests.slower .pytest_cache/times.xml

test-browser: $(VENV)/.ready  ## test the pages of the site in Chromium; skipped if it is not installed
	$(RUN) $(TESTS) -m browser

planted: $(VENV)/.ready  ## plant faults in a copy, one by one, and print whether the tests find them; half an hour
	@# The compiler for faults in C code.
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt ziglang
	$(RUN) -m tests.planted

lint: $(VENV)/.ready
	$(RUN) -m ruff check .
	$(RUN) -m mypy

selfbench: $(VENV)/.ready selfbench-device  ## print what the tool itself costs, and how repeatable its figures are
	$(RUN) -m tests.selfbench.costs

selfbench-device: $(VENV)/.ready  ## compare the probe of the device with fio; prints ratios
	$(RUN) -m tests.selfbench.device

selfbench-asv: $(VENV)/.ready  ## compare asv with our own runner; prints ratios
	$(RUN) -m tests.selfbench.asv

selfbench-cluster: $(VENV)/.ready  ## print the cost of a run over a cluster, and the bytes sent through its client
	$(RUN) -m tests.selfbench.cluster

selfbench-compare: $(VENV)/.ready  ## how often 'compare' reports a false change, and how often it finds a true one
	$(RUN) -m tests.selfbench.compare

selfbench-recommend: $(VENV)/.ready  ## how much worse recommendations are than the best variant of a full run
	$(RUN) -m tests.selfbench.recommend

selfbench-within: $(VENV)/.ready  ## how much worse the advice on Parquet's settings is than the best of a grid of settings
	$(RUN) -m tests.selfbench.within

selfbench-convert: $(VENV)/.ready  ## memory and speed of converting a CSV file of 6 GB; needs 8 GB of free disk
	$(RUN) -m tests.selfbench.convert

selfbench-f3: $(VENV)/.ready  ## compare F3 with Parquet and Vortex; prints ratios
	$(RUN) -m libraries.f3.benchmarks.files

selfbench-near-storage: $(VENV)/.ready  ## reads near the storage in one process and through Flight, as ratios; then 1,000 power cuts, 300 kills, 25,000 answers
	$(RUN) -m libraries.near_storage.benchmarks.local
	$(RUN) -m libraries.near_storage.benchmarks.flight
	$(RUN) -m libraries.near_storage.tests.long_runs power_cuts killed
	$(RUN) -m libraries.near_storage.tests.agreement

selfbench-documents: $(VENV)/.ready  ## compare the document store with others, as ratios; then 1,000 power cuts and 300 kills
	$(RUN) -m libraries.document_store.benchmarks.targets && $(RUN) -m libraries.document_store.benchmarks.json_bench
	$(RUN) -m libraries.document_store.tests.store.machine 200

fuzz-import: $(VENV)/.ready  ## 500 generated tables, written by seven programs: each is read correctly, with a warning, or refused
	$(RUN) -m tests.data_generator.imported.tables.generated_tables 500

fuzz-f3: $(VENV)/.ready  ## 30,000 broken F3 files, 40,000 damaged payloads: each gives a table or an error; about five minutes
	$(RUN) -m libraries.f3.tests.mutations $(F3_FILES) wasm & broken=$$!; \
	  { $(RUN) -m libraries.f3.tests.mutations $(F3_FILES) plain native && \
	    $(RUN) -m libraries.f3.tests.mutate native $(F3_PAYLOADS) 2 && $(RUN) -m libraries.f3.tests.mutate wasm $(F3_PAYLOADS) 4; } \
	    || { kill $$broken; exit 1; }; wait $$broken

fuzz-near-storage: $(VENV)/.ready  ## 10,000 broken footers, requests and filters; answers compared with plain Python; about two minutes
	$(RUN) -m libraries.near_storage.tests.long_runs footers messages filters aggregates pruning & broken=$$!; \
	  $(RUN) -m libraries.near_storage.tests.long_runs requests flight expressions || { kill $$broken; exit 1; }; wait $$broken

fuzz-documents: $(VENV)/.ready  ## 40,000 broken rows, lines, schemas and chunks of documents under gcc's address sanitiser; 3,000 random plans
	$(RUN) -m libraries.document_store.tests.fuzzing 10000
	$(RUN) -m libraries.document_store.tests.queries.fuzz 3000

$(VENV)/.ready: pyproject.toml constraints.txt setup.py $(wildcard libraries/build.py libraries/*/*/*.[ch] bench_runner/build.py bench_runner/*/*/*.c)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Format Bench needs Python 3.11 or newer. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "Setting up $(VENV) once: downloading 550 MB of libraries, which take 1.8 GB of disk, in two to four minutes."
	@$(PYTHON) -m venv $(VENV)
	@# pip installs the compiler of F3's kernels into a separate environment, to which --constraint does not apply.
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	  $(RUN) -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@$(RUN) -m compileall -q $(PACKAGES)
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache format_bench.egg-info
