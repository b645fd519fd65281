# Two commands do everything on a machine with Python 3.11+ and make: `make tabular` and `make test`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# Four on two cores: while a test waits, for a process or for time, another one runs.
TESTS := -m pytest --numprocesses 4 --dist worksteal
# Of broken F3 files, for each of three decoders, and of damaged payloads, for each of two.
F3_FILES ?= 10000
F3_PAYLOADS ?= 20000
PACKAGES := adapters bench_runner data_generator document_stores format_bench formats image_storages libraries reports

.PHONY: setup tabular test test-quick test-times test-browser planted lint selfbench selfbench-device selfbench-asv selfbench-cluster selfbench-compare selfbench-recommend selfbench-within selfbench-convert selfbench-f3 selfbench-near-storage selfbench-documents fuzz-import fuzz-f3 fuzz-near-storage fuzz-documents clean

setup: $(VENV)/.ready  ## the libraries alone, into .venv; all other commands do it by themselves

tabular: $(VENV)/.ready  ## every format on two tables of 50,000 rows: the table and the report in two minutes, then XML and Excel
	$(RUN) main.py --tabular --datasets '^(eq|core)$$' --rows 50000 --track plain --rounds 7 --budget 200s --report

test: $(VENV)/.ready  ## the whole suite, but for what needs a browser
	$(RUN) $(TESTS) -m "not browser"

test-quick: $(VENV)/.ready  ## what one runs while working: about a minute; beside it the file of an adapter at work
	$(RUN) $(TESTS) --quick -m "not slow and not browser"

test-times: $(VENV)/.ready  ## the whole suite, and from what each test took the list of those that test-quick leaves out
	$(RUN) $(TESTS) -m "not browser" --junit-xml=.pytest_cache/times.xml
	$(RUN) -m tests.slower .pytest_cache/times.xml

test-browser: $(VENV)/.ready  ## the pages of the site in a Chromium; skipped where there is none
	$(RUN) $(TESTS) -m browser

planted: $(VENV)/.ready  ## faults that are planted in a copy, one by one, and whether the tests find them; half an hour
	@# The compiler, for faults in C.
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt ziglang
	$(RUN) -m tests.planted

lint: $(VENV)/.ready
	$(RUN) -m ruff check .
	$(RUN) -m mypy

selfbench: $(VENV)/.ready selfbench-device  ## what the tool itself costs, and how repeatable it is; prints figures
	$(RUN) -m tests.selfbench.costs

selfbench-device: $(VENV)/.ready  ## whether the probe of the device finds what fio finds; prints ratios
	$(RUN) -m tests.selfbench.device

selfbench-asv: $(VENV)/.ready  ## whether asv and our own runner agree; prints ratios
	$(RUN) -m tests.selfbench.asv

selfbench-cluster: $(VENV)/.ready  ## what a run over a cluster costs, and what passes its client; prints ratios
	$(RUN) -m tests.selfbench.cluster

selfbench-compare: $(VENV)/.ready  ## how often 'compare' names a change where none is, and finds one that is
	$(RUN) -m tests.selfbench.compare

selfbench-recommend: $(VENV)/.ready  ## how much a recommendation loses against a full run; prints regrets
	$(RUN) -m tests.selfbench.recommend

selfbench-within: $(VENV)/.ready  ## how much the advice on Parquet's settings loses against a grid of settings
	$(RUN) -m tests.selfbench.within

selfbench-convert: $(VENV)/.ready  ## memory and speed of converting a CSV file of 6 GB; needs 8 GB of disk
	$(RUN) -m tests.selfbench.convert

selfbench-f3: $(VENV)/.ready  ## what F3 reaches beside Parquet and Vortex; prints ratios
	$(RUN) -m libraries.f3.benchmarks.files

selfbench-near-storage: $(VENV)/.ready  ## what reading near the storage reaches, in one process and through Flight; prints ratios; 1,000 power cuts, 300 kills, 25,000 answers
	$(RUN) -m libraries.near_storage.benchmarks.local
	$(RUN) -m libraries.near_storage.benchmarks.flight
	$(RUN) -m libraries.near_storage.tests.long_runs power_cuts killed
	$(RUN) -m libraries.near_storage.tests.agreement

selfbench-documents: $(VENV)/.ready  ## what the document store reaches, beside its peers too, 1,000 power cuts, 300 kills; prints ratios
	$(RUN) -m libraries.document_store.benchmarks.targets && $(RUN) -m libraries.document_store.benchmarks.json_bench
	$(RUN) -m libraries.document_store.tests.store.machine 200

fuzz-import: $(VENV)/.ready  ## 500 generated tables, written by seven programs: each arrives as it is, with a warning, or is refused
	$(RUN) -m tests.data_generator.imported.tables.generated_tables 500

fuzz-f3: $(VENV)/.ready  ## 30,000 broken F3 files, 40,000 damaged payloads: each ends in a table or in an error; about five minutes
	$(RUN) -m libraries.f3.tests.mutations $(F3_FILES) wasm & broken=$$!; \
	  { $(RUN) -m libraries.f3.tests.mutations $(F3_FILES) plain native && \
	    $(RUN) -m libraries.f3.tests.mutate native $(F3_PAYLOADS) 2 && $(RUN) -m libraries.f3.tests.mutate wasm $(F3_PAYLOADS) 4; } \
	    || { kill $$broken; exit 1; }; wait $$broken

fuzz-near-storage: $(VENV)/.ready  ## 10,000 broken footers, requests and filters, answers beside plain Python; about two minutes
	$(RUN) -m libraries.near_storage.tests.long_runs footers messages filters aggregates pruning & broken=$$!; \
	  $(RUN) -m libraries.near_storage.tests.long_runs requests flight expressions || { kill $$broken; exit 1; }; wait $$broken

fuzz-documents: $(VENV)/.ready  ## 40,000 broken rows, lines, schemas and chunks of documents, under gcc's address sanitiser; 3,000 random plans
	$(RUN) -m libraries.document_store.tests.fuzzing 10000
	$(RUN) -m libraries.document_store.tests.queries.fuzz 3000

$(VENV)/.ready: pyproject.toml constraints.txt setup.py $(wildcard libraries/build.py libraries/*/*/*.[ch] bench_runner/build.py bench_runner/*/*/*.c)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Format Bench needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "Setting up $(VENV), once: about 550 MB of libraries are downloaded, 1.8 GB on the disk, in two to four minutes."
	@$(PYTHON) -m venv $(VENV)
	@# The compiler of F3's kernels comes into an environment of pip's own, which --constraint does not reach.
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	  $(RUN) -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@$(RUN) -m compileall -q $(PACKAGES)
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache format_bench.egg-info
