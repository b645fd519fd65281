"""Execute one cell (an operation on a data set with a variant) in this process, for asv. asv is a benchmarking tool
that times calls itself, starts its own processes and keeps a history of results.

Data are generated, and results are verified, as in an ordinary run. Each process makes one sample. Importing this
module generates no data and downloads nothing.

A variant that refuses the data, or whose library is not installed, raises NotImplementedError. Anything that would make
a result wrong, such as wrong data or a busy machine, raises another error. After wrong data, all later rounds fail too.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from statistics import median_low
from tempfile import mkdtemp
from typing import Any

import data_generator.cache as data_cache
from adapters.contract import TabularFormat
from adapters.errors import RefusedData, RefusedSetting
from bench_runner.clock import Laps, now_ns
from bench_runner.errors import Failure, in_one_line
from bench_runner.machine import folders, linux
from bench_runner.operations import SAVE, VERIFYING, operation_of
from bench_runner.plan.chain import Chain, Plan
from bench_runner.plan.nulls import with_null_variants, with_numpy_nulls
from bench_runner.plan.planning import make_plan
from bench_runner.plan.selection import chosen_operations
from bench_runner.registries import engine_of
from bench_runner.request import Request
from bench_runner.results.statistics import PROBE_ERRORS
from bench_runner.run.chains import Bench, execute
from bench_runner.run.launcher import Launcher
from bench_runner.run.page_cache import bring_into_cache, warm_doubt
from bench_runner.run.prediction import UNPILOTED_NEED
from bench_runner.run.probe_check import LONG, error_bytes, known_answers
from bench_runner.run.tasks import make_places, measure_task, stored_at
from bench_runner.suites import SUITES
from bench_runner.worker.clean_slate import clean_slate
from bench_runner.worker.messages import MeasureTask
from bench_runner.worker.prepared import Prepared, prepare
from bench_runner.worker.sample import sampler_of
from bench_runner.worker.settle import Control, Settler
from bench_runner.worker.verification import read_back, verified
from data_generator.cache import StoredDataset

_BEHIND = " "
"""Separates a variant from the name of its fallback (the replacement for a missing call). No variant name contains a
blank."""
ROWS_VARIABLE = "FORMAT_BENCH_ROWS"
OPERATIONS_VARIABLE = "FORMAT_BENCH_OPERATIONS"
TIMEOUT_S = 3600
"""Time limit in seconds for each phase of a sample under asv."""
EXECUTIONS = 3
"""Memory figures are the median of this number of executions."""
SETTLE_TRIES = 5
"""Number of attempts to bring the machine to rest. If all attempts fail, the measurement fails, because asv cannot mark
a sample as unusable."""


def rows(suite: str) -> int:
    """Return the number of rows of each table, or the number of images. The environment variable FORMAT_BENCH_ROWS sets
    this number. Without it, the number is `asv_rows` of the suite's kind of data."""
    asked = os.environ.get(ROWS_VARIABLE, "")
    if asked and not (asked.isdecimal() and int(asked)):
        raise ValueError(f"{ROWS_VARIABLE}={asked}: must be a whole number of at least 1, e.g. {ROWS_VARIABLE}=10000")
    return int(asked) if asked else SUITES[suite].kind.asv_rows


def operations(suite: str) -> tuple[str, ...]:
    """Return the operations that asv times. For tables, the environment variable FORMAT_BENCH_OPERATIONS replaces the
    suite's operations. The variable is ignored by other suites, because asv always loads all suites at once."""
    asked = os.environ.get(OPERATIONS_VARIABLE, "")
    if not asked or not SUITES[suite].kind.has_columns:
        return SUITES[suite].asv_operations or SUITES[suite].operations
    chosen = chosen_operations(SUITES[suite], Request(operations=(asked,)))
    for spelled in chosen:
        reason = operation_of(spelled).refused_by_asv()
        if reason is not None:
            raise ValueError(f"{OPERATIONS_VARIABLE}={asked}: {reason}")
    return chosen


@cache
def _plan(suite: str) -> Plan:
    asked = Request(
        rows=rows(suite), threads="default", operations=operations(suite), formats=SUITES[suite].asv_formats
    )
    return make_plan([SUITES[suite]], asked)


@cache
def cells(suite: str) -> Mapping[tuple[str, str], Chain]:
    """Return the chain for each pair of asv parameters (data set, variant). A chain is a save followed by the
    operations that read the saved copy.

    Some libraries refuse columns with masked nulls (pandas' nullable dtypes). Whether a data set has such columns is
    known only after it has been generated. So there are two variants of such a library: one with masked nulls, and one
    with nulls=numpy. Both are listed, and asv shows 'n/a' for the one that does not fit the data set. Variants have
    their full names, because asv identifies the history of a variant by the variant's name, and a shorter name could
    later mean another variant.
    """
    plan = _plan(suite)
    chains = list(plan.chains) + [excluded.chain for excluded in plan.excluded]
    chains += [with_numpy_nulls(chain) for chain in chains if _refuses_masked(chain)]
    return {(chain.dataset, chain.variant): chain for chain in chains}


def variants(suite: str, operation: str = "") -> list[str]:
    """Return the names of a suite's variants, which are the asv parameters of an operation. If the library has no call
    for the operation, the name of the replacement is appended, as in 'avro[...] read-all'. Without this, readers could
    not distinguish such variants, because asv shows only names."""
    chains = {chain.variant: chain for chain in cells(suite).values()}
    return [f"{variant}{_fallback(chain, operation)}" for variant, chain in chains.items()]


def _fallback(chain: Chain, operation: str) -> str:
    if not operation:
        return ""
    engine, settings = engine_of(chain.spelled)
    try:
        adapter = engine(settings)
    except RefusedSetting:
        # The variant is refused or not installed.
        return ""
    found = operation_of(operation).fallback(adapter) if isinstance(adapter, TabularFormat) else ""
    return f"{_BEHIND}{found}" if found else ""


def _refuses_masked(chain: Chain) -> bool:
    engine, _ = engine_of(chain.spelled)
    return issubclass(engine, TabularFormat) and not engine.takes_masked


class Trial:
    """The measurement of this process. Stored copies, figures and failures of earlier processes are in the current
    folder, which asv removes at the end of its run."""

    def __init__(self, suite: str) -> None:
        """`suite` is the name of one of our suites."""
        self._suite = suite
        self._ready: Prepared | None = None
        self._result: Any = None
        self._folder = Path()
        self._figures: Mapping[str, Mapping[str, int]] = {}
        self._fetched_bytes = self._prepared_ns = 0

    def make_data(self) -> None:
        """Generate every data set that is not in the cache. Called once for all processes."""
        _refuse_memory_folder(Path.cwd())
        for dataset in _plan(self._suite).datasets.values():
            data_cache.prepare(dataset, data_cache.default_folder())

    def prepare(self, operation: str, dataset: str, variant: str) -> None:
        """Do everything that must happen before asv starts timing."""
        chain, stored = self._cell(dataset, variant)
        if operation not in chain.operations:
            raise NotImplementedError(f"the operation {operation} is not measured for {variant} on {dataset}")
        with _remembered(_marker(operation, chain)):
            settler = _settler(Path.cwd())
            if operation != SAVE:
                self._folder = self._stored_copy(chain, stored, settler)
                bring_into_cache(stored_at(chain, self._folder), chain.conditions.cache)
            else:
                self._folder = Path(mkdtemp(prefix="save-", dir=Path.cwd()))
                make_places(self._folder)
            task = _task(chain, operation, stored, self._folder, settler)
            try:
                self._ready = prepare(task)
            except BaseException:
                self._remove_saved()
                raise
        self._come_to_rest(settler, task.need_bytes)
        self._fetched_bytes, self._prepared_ns = linux.io_bytes()[0], now_ns()

    def _come_to_rest(self, settler: Settler, need_bytes: int) -> None:
        assert self._ready is not None
        rest = self._ready.rest
        for _ in range(SETTLE_TRIES):
            if rest.settled:
                return
            rest = settler.settle(need_bytes)
            clean_slate()
        if not rest.settled:
            self._remove_saved()
            raise RuntimeError(f"not measured, because the machine was not at rest: {rest.why_not}")

    def run(self) -> None:
        """Run the operation. asv times this call."""
        assert self._ready is not None
        self._result = sampler_of(self._ready.operation).call(self._ready, Laps())

    def finish(self, dataset: str, variant: str) -> None:
        """Verify the timed result (rule 11) and remove a saved copy. Not timed."""
        ready, result = self._ready, self._result
        wall_ns = now_ns() - self._prepared_ns
        fetched_bytes = linux.io_bytes()[0] - self._fetched_bytes
        self._ready = self._result = None
        if ready is None:
            return
        ready.operation.end(ready.stage, ready.location)
        chain, _ = self._cell(dataset, variant)
        written = ready.operation.spelled == SAVE
        try:
            with _remembered(_marker(ready.operation.spelled, chain)):
                if written:
                    read_back(ready.stage.adapter, ready.location)
                    ready = replace(ready, operation=operation_of(VERIFYING), held=None)
                    result = ready.operation.run(ready.stage, None, ready.location, Laps())
                elif ready.operation.sampling in ("once", "write"):
                    result = ready.operation.answer(ready.stage, result, ready.location)
                parts = sampler_of(ready.operation).parts(ready, ready.held, result)
                verified(ready, parts, last_reader=False)
                if written:
                    return
        finally:
            self._remove_saved()
        size_bytes = sum(path.stat().st_size for path in linux.files_below(ready.location))
        if doubt := warm_doubt(fetched_bytes, size_bytes, wall_ns):
            raise RuntimeError(f"not measured: {doubt}")

    def _remove_saved(self) -> None:
        if self._folder.name.startswith("save-"):
            shutil.rmtree(self._folder, ignore_errors=True)

    def execute(self, dataset: str, variant: str) -> None:
        """Execute the variant's chain in ordinary worker processes, to get figures that are not times of calls, such as
        size and memory. asv stores these figures, too."""
        chain, stored = self._cell(dataset, variant)
        known = Path(f"figures-{_key(chain)}.json")
        if not known.exists():
            with _remembered(_marker("chain", chain)):
                figures = _executed(chain, stored)
            known.write_text(json.dumps(figures))
        self._figures = json.loads(known.read_text())

    def size(self) -> int:
        """Return the size of the saved copy in bytes."""
        return int(self._figures[SAVE]["size_bytes"])

    def peak_memory(self, operation: str) -> float:
        """Return the peak private memory of the executions in bytes. Return NaN, which asv shows as n/a, if the memory
        is unknown or too small for the probe to measure (rule 13)."""
        peak_bytes = self._figures.get(operation, {}).get("peak_private_bytes")
        if peak_bytes is None:
            return math.nan
        return peak_bytes if peak_bytes >= PROBE_ERRORS * _probe_error_bytes() else math.nan

    def _cell(self, dataset: str, variant: str) -> tuple[Chain, StoredDataset]:
        """Return the chain of a data set and a variant, with the generated data set. Raises NotImplementedError if the
        chain does not exist or is excluded."""
        variant = variant.partition(_BEHIND)[0]
        if (dataset, variant) not in cells(self._suite):
            raise NotImplementedError(f"{variant} is not measured on {dataset}")
        plan = _plan(self._suite)
        stored = data_cache.prepare(plan.datasets[dataset], data_cache.default_folder())
        chains = tuple(chain for chain in plan.chains if chain.dataset == dataset)
        final = with_null_variants(replace(plan, chains=chains), {dataset: data_cache.columns_with_nulls(stored.path)})
        for chain in final.chains:
            if chain.variant == variant:
                return chain, stored
        reasons = [excluded.failure.reason for excluded in final.excluded if excluded.chain.variant == variant]
        raise NotImplementedError(reasons[0] if reasons else f"{variant} needs data with nulls; {dataset} has none")

    def _stored_copy(self, chain: Chain, stored: StoredDataset, settler: Settler) -> Path:
        """Return the folder of the stored copy that all processes of this cell read. A separate worker saves it
        once."""
        folder = Path.cwd() / f"copy-{_key(chain)}"
        if folder.exists():
            return folder
        making = Path(mkdtemp(prefix="making-", dir=Path.cwd()))
        try:
            make_places(making)
            with closing(Launcher(isolate="spawn", threads=None, preload=[])) as launcher:
                bench = _bench(launcher, settler)
                outcome = launcher.run(_task(chain, SAVE, stored, making, settler), bench.limits())
            if outcome.failure is not None:
                _raise(outcome.failure)
            making.rename(folder)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        return folder


@contextmanager
def _remembered(marker: Path) -> Iterator[None]:
    """If the block fails, make it fail in all later rounds too. If later rounds succeeded, asv would use the figures of
    these rounds and hide the failure. If the variant refuses the data, raise NotImplementedError, which asv expects in
    this case. A NotImplementedError from a library is a failure."""
    if marker.exists():
        raise RuntimeError(f"failed in an earlier round: {marker.read_text()}")
    try:
        yield
    except RefusedData as refused:
        raise NotImplementedError(str(refused)) from refused
    except _Refused as refused:
        raise NotImplementedError(str(refused)) from refused
    except Exception as error:
        text = f"{type(error).__name__}: {in_one_line(error)[:400]}"
        marker.write_text(text)
        raise RuntimeError(text) from error


class _Refused(Exception):
    """The chain is not run, for example because the variant refuses the data. This is not a failure."""


def _marker(what: str, chain: Chain) -> Path:
    return Path(f"failed-{what}-{_key(chain)}")


def _task(chain: Chain, operation: str, stored: StoredDataset, folder: Path, settler: Settler) -> MeasureTask:
    return measure_task(
        chain,
        operation,
        stored,
        folder,
        rows=stored.rows,
        need_bytes=UNPILOTED_NEED * stored.size_bytes,
        last=False,
        settler=settler,
    )


def _executed(chain: Chain, stored: StoredDataset) -> dict[str, dict[str, int]]:
    """Return the median of each figure over EXECUTIONS executions in ordinary workers, as operation -> figure ->
    median. An operation that fails in any execution has no medians. Raises RuntimeError if a save fails."""
    figures: dict[str, list[Mapping[str, int]]] = {}
    with closing(Launcher(isolate="spawn", threads=None, preload=[])) as launcher:
        bench = _bench(launcher, _settler(Path.cwd()))
        for number in range(1, EXECUTIONS + 1):
            samples = execute(
                bench,
                chain,
                stored,
                rows=stored.rows,
                round_number=number,
                position=os.getpid(),
                need_bytes=UNPILOTED_NEED * stored.size_bytes,
            )
            if samples[0].failure is not None:
                _raise(samples[0].failure)
            for sample in samples:
                if sample.failure is None:
                    figures.setdefault(sample.operation, []).append(sample.figures)
    return {
        operation: {name: median_low(each[name] for each in found) for name in set.intersection(*map(set, found))}
        for operation, found in figures.items()
        if len(found) == EXECUTIONS
    }


def _probe_error_bytes() -> int:
    """Return the error of the memory probe on this machine in bytes. The probe is tested with known allocations once in
    a run of asv."""
    known = Path("probe.json")
    if not known.exists():
        with closing(Launcher(isolate="spawn", threads=None, preload=[])) as launcher:
            answers = known_answers(launcher, Path.cwd(), lambda *_: None, LONG)
            known.write_text(json.dumps(error_bytes(answers)))
    return int(json.loads(known.read_text()))


def _raise(failure: Failure) -> None:
    if failure.is_failure:
        raise RuntimeError(f"{failure.kind}: {failure.reason}")
    raise _Refused(failure.reason)


def _bench(launcher: Launcher, settler: Settler) -> Bench:
    return Bench(launcher, settler, Path.cwd(), float(TIMEOUT_S), "asv")


def _settler(folder: Path) -> Settler:
    """Return a Settler, which brings the machine to rest. The first process of asv's run takes the control
    measurements, and the later processes reuse the results."""
    known = folder / "control.json"
    if known.exists():
        return Settler(folder, Control(**json.loads(known.read_text())))
    settler = Settler(folder)
    settler.calibrate()
    assert settler.best is not None
    known.write_text(json.dumps(asdict(settler.best)))
    return settler


def _key(chain: Chain) -> str:
    return sha256(f"{chain.dataset}/{chain.variant}".encode()).hexdigest()[:16]


def _refuse_memory_folder(folder: Path) -> None:
    """Raise RuntimeError if the folder is in memory. asv works in the system's temporary folder, which often is in
    memory."""
    kind = folders.folder_facts(folder).get("filesystem")
    if kind in ("tmpfs", "ramfs"):
        raise RuntimeError(
            f"{folder} is in memory ({kind}), not on a disk: set TMPDIR to a folder on the disk that you want to "
            "measure"
        )
