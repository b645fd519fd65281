"""Execute one chain: save, size, each operation that reads, removal; each in a fresh worker, on a machine at rest.

What comes out is samples, complete with their conditions, or samples with the reason why there are no figures. An
operation that fails costs its own cell alone, but for one that saw all of the data and found something else: then
nobody knows what lies there. This module decides nothing about order or number of rounds.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from adapters.contract import Adapter
from adapters.services import Service
from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.errors import Failure
from bench_runner.machine import environment, linux
from bench_runner.operations import SAVE, VERIFYING, operation_of
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Sample, changed
from bench_runner.run.launcher import Launcher, Limits, Outcome
from bench_runner.run.services.beside import Beside, is_fetched_anew, per_call
from bench_runner.run.services.starting import Running, ServiceFailed, running
from bench_runner.worker.messages import Measured, MeasureTask
from bench_runner.worker.settle import Readiness, Settler
from data_generator.cache import StoredDataset

WARM_RESIDENT_SHARE = 0.99
"""So much of the stored copy must lie in the page cache before a warm read (rule 14)."""
WARM_DEVICE_SHARE = 0.01
"""A warm read may fetch so much of the stored copy from the device (rule 14)."""
COLD_DEVICE_SHARE = 0.90
"""A cold read must fetch at least so much of the stored copy from the device (rule 14)."""
WARM_DEVICE_BYTES_PER_S = 1_000_000
"""A long warm read may fetch so much for each second of it (rule 14): 1 % of the time on a device of 100 MB/s."""
WARM_LONG_SHARE = 0.10
"""However long it takes, a warm read may fetch no more of its copy (rule 14): else a slow cold one would pass."""
DEVICE_SLACK_BYTES = 256 * 1024
"""So much may always be fetched during a warm read (rule 14), because pages of libraries may come at any time."""
ONE_THREAD_LIMIT = 1.05
"""CPU time over wall time that one thread cannot exceed (rule 9)."""
MEMORY_SHARE = 0.9
"""A worker may take this share of the memory that is available when it starts (rule 5)."""


@dataclass(frozen=True)
class Bench:
    """What executing a chain needs of the machine: workers, a working folder at rest, limits."""

    launcher: Launcher
    settler: Settler
    folder: Path
    timeout_s: float
    machine: str
    thorough: set[tuple[str, str]] = field(default_factory=set)
    """(variant, operation) whose full collection of garbage comes before the clock, because one came inside it."""

    def limits(self) -> Limits:
        """The limits of the next worker."""
        return Limits(self.timeout_s, int(environment.usable_memory_bytes() * MEMORY_SHARE))


class ChainFailed(Exception):
    """Carries the Failure of the operation that went wrong."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def execute(
    bench: Bench,
    chain: Chain,
    dataset: StoredDataset,
    *,
    rows: int,
    round_number: int,
    position: int,
    need_bytes: int,
    wanted: Sequence[str] | None = None,
) -> list[Sample]:
    """One execution of a chain on the first `rows` rows; one sample for each operation, in order.

    `wanted` are the operations whose cells want a sample, all of the chain's if None; what these need is executed as
    well, and counts too where the chain has it. `need_bytes` is the memory that a sample is expected to use. A save
    counts only when an operation that sees all of the data passes, so all samples come out together.
    """
    operations = chain.needed_for(chain.operations if wanted is None else wanted)
    verified = VERIFYING in operations
    samples: list[Sample] = []
    with _chain_folder(bench.folder, position) as folder:
        for number, operation in enumerate(operations):
            blank = Sample(
                suite=chain.suite,
                operation=operation,
                dataset=chain.dataset,
                dataset_digest=dataset.digest,
                rows=rows,
                variant=chain.variant,
                library=chain.library,
                conditions=chain.conditions,
                machine=bench.machine,
                round=round_number,
                position=position + number,
                in_service=operation not in chain.operations or (operation == SAVE and not verified),
            )
            saved = samples[0].failure if samples else None
            if saved is not None:
                samples.append(changed(blank, failure=_consequence(saved)))
                continue
            last = number == len(operations) - 1
            samples.append(_tried(bench, chain, blank, folder, dataset, need_bytes, last))
    return _judged(samples)


def _tried(
    bench: Bench,
    chain: Chain,
    blank: Sample,
    folder: Path,
    dataset: StoredDataset,
    need_bytes: int,
    last: bool,
) -> Sample:
    try:
        return _operation(bench, chain, blank, folder, dataset, need_bytes, last)
    except ChainFailed as failed:
        return changed(blank, failure=failed.failure)
    except OSError as error:
        kind = "disk" if error.errno == errno.ENOSPC else "error"
        return changed(blank, failure=Failure(kind=kind, reason=f"{type(error).__name__}: {error}"))


def _consequence(failure: Failure) -> Failure:
    """What an operation says when the save that it needs went wrong."""
    if not failure.is_failure:
        return failure
    return Failure(kind="skipped", reason=f"its {SAVE} failed: {failure.reason}"[:400])


def _judged(samples: Sequence[Sample]) -> list[Sample]:
    """A save that nothing verified has no figures: nobody knows what it stored. Where an operation that saw all of the
    data found something else, nothing of the chain has any."""
    seeing = [sample for sample in samples if sample.operation == VERIFYING]
    failures = [sample.failure for sample in seeing if sample.failure is not None]
    for failure in failures:
        if failure.kind == "mismatch":
            return [_without_figures(sample, failure) for sample in samples]
    if failures and len(failures) == len(seeing):
        return [_without_figures(samples[0], failures[0]), *samples[1:]]
    return list(samples)


def _without_figures(sample: Sample, failure: Failure) -> Sample:
    """A sample of a chain whose stored copy nobody vouches for."""
    if sample.failure is not None:
        return sample
    kind = "skipped" if failure.is_failure else failure.kind
    unverified = Failure(kind=kind, reason=f"not verified, because the read failed: {failure.reason}"[:400])
    return changed(
        sample,
        figures={},
        fidelity=None,
        saw_all=False,
        losses=(),
        codec=None,
        encodings=(),
        unsettled=False,
        failure=unverified,
    )


@contextmanager
def stored_copy(bench: Bench, chain: Chain, dataset: StoredDataset, *, position: int) -> Iterator[Path]:
    """What the save of a chain stores, synced, for whoever wants to look at it; gone afterwards. Raises ChainFailed."""
    with _chain_folder(bench.folder, position) as folder:
        task = worker_task(
            chain,
            SAVE,
            dataset,
            folder,
            rows=dataset.rows,
            need_bytes=dataset.size_bytes,
            last=False,
            settler=bench.settler,
        )
        outcome = bench.launcher.run(task, bench.limits())
        if outcome.failure is not None:
            raise ChainFailed(outcome.failure)
        yield stored_at(chain, folder)


def make_places(folder: Path) -> None:
    """The places below a chain's folder that its workers expect."""
    for name in ("stored", "primer", "scratch"):
        (folder / name).mkdir(parents=True)


@contextmanager
def _chain_folder(work_folder: Path, position: int) -> Iterator[Path]:
    """A folder of its own for each execution: a fresh path for every save (rule 4), gone afterwards."""
    folder = work_folder / f"chain-{position}"
    try:
        make_places(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def worker_task(
    chain: Chain,
    operation: str,
    dataset: StoredDataset,
    folder: Path,
    *,
    rows: int,
    need_bytes: int,
    last: bool,
    settler: Settler,
    thorough: bool = True,
) -> MeasureTask:
    """What a worker has to be told to measure one operation of the chain in `folder` (see `_chain_folder`)."""
    return MeasureTask(
        scratch=folder / "scratch",
        confine=folder,
        printed=folder / "printed",
        starts_processes=bool(operation_of(operation).needs),
        operation=operation,
        variant=chain.spelled,
        target=chain.target,
        dataset=dataset.path,
        dataset_name=chain.dataset,
        dataset_digest=dataset.digest,
        rows=rows,
        whole=rows == dataset.rows,
        location=stored_at(chain, folder),
        primer=folder / "primer" / f"table{chain.suffix}",
        last_reader=last,
        need_bytes=need_bytes,
        best_control=settler.best,
        readiness=settler.readiness,
        thorough=thorough,
        cold=chain.conditions.cache == "cold",
    )


def stored_at(chain: Chain, folder: Path) -> Path:
    """Where in its folder a chain stores its copy."""
    return folder / "stored" / f"table{chain.suffix}"


def _operation(
    bench: Bench,
    chain: Chain,
    blank: Sample,
    folder: Path,
    dataset: StoredDataset,
    need_bytes: int,
    last: bool,
) -> Sample:
    began = now_ns()
    operation = operation_of(blank.operation)
    location = stored_at(chain, folder)
    figures: dict[str, int] = {}
    bench.settler.examine_more(need_bytes, environment.usable_memory_bytes)
    task = worker_task(
        chain,
        operation.spelled,
        dataset,
        folder,
        rows=blank.rows,
        need_bytes=need_bytes,
        last=last,
        settler=bench.settler,
        thorough=(chain.variant, operation.spelled) in bench.thorough,
    )
    adapter = _adapter(chain)
    saves = operation.spelled == SAVE
    services = () if saves or not chain.conditions.network else adapter.services(location)
    with _serving(bench, chain, services, blank.position) as found:
        if not saves:
            # Behind the start of services, which may read of the copy what they are to know.
            figures |= bring_into_cache(adapter.data_of(location), chain.conditions.cache)
        outcome, beside = _run(bench, chain, task, found)
    if outcome.failure is not None:
        raise ChainFailed(outcome.failure)
    measured = outcome.answer(Measured)
    rest = measured.rest
    bench.settler.learn_from(rest)
    figures |= measured.figures | _outside_figures(outcome, measured)
    if beside is not None:
        figures |= per_call(beside.figures, figures.get("repetitions", 1))
    taken_bytes = _added_bytes(outcome, measured) + measured.held_before_bytes + figures.get("dirtied_bytes", 0)
    readiness = bench.settler.readiness
    beyond_bytes = readiness.most_bytes if beyond_what_was_ready(taken_bytes, readiness) else 0
    why_not = rest.why_not and f"the machine was not at rest: {rest.why_not}"
    if saves:
        _refuse_strays(folder, location)
        figures |= _sizes(adapter.sized_at(location))
    else:
        # Of a part of the data less than the whole copy may be fetched, however cold it was.
        part = operation.spelled != VERIFYING
        moved = figures
        if measured.device_bytes_of_all is not None:
            moved = {**figures, "device_read_bytes": measured.device_bytes_of_all, "wall_ns": figures["calls_ns"]}
        if beside is not None:
            # Who serves the copy reads it; what the worker reads of it by itself, such as a schema, is fetched too.
            moved = {**moved, "device_read_bytes": moved.get("device_read_bytes", 0) + beside.device_bytes}
        size_bytes = figures.pop("size_bytes")
        if operation.sampling != "write":
            why_not = why_not or _device_doubt(moved, chain.conditions.cache, size_bytes, part=part)
    if measured.collected:
        bench.thorough.add((chain.variant, operation.spelled))
        why_not = why_not or "a full collection of garbage came into the clock, from the next sample on before it"
    if chain.conditions.threads == "1":
        refuse_more_than_one_core(figures)
    accounted_ns = changed(blank, figures=figures).taken_ns
    figures["harness_ns"] = max(now_ns() - began - accounted_ns, 0)
    return changed(
        blank,
        figures=figures,
        fidelity=measured.fidelity,
        saw_all=measured.saw_all,
        fallback=measured.fallback,
        cached=measured.cached and not is_fetched_anew(figures, measured.held_bytes),
        losses=tuple(measured.losses),
        codec=measured.codec,
        encodings=tuple(measured.encodings),
        warnings=tuple(_warnings(outcome, why_not, beyond_bytes=beyond_bytes)),
        unsettled=bool(why_not),
    )


def _adapter(chain: Chain) -> Adapter:
    """To be asked about itself: nothing is loaded."""
    engine, settings = registries.engine_of(chain.spelled)
    return engine(settings)


@contextmanager
def _serving(bench: Bench, chain: Chain, services: Sequence[Service], position: int) -> Iterator[Running | None]:
    """Services of one operation, started for it alone; None where there are none."""
    if not services:
        yield None
        return
    try:
        with running(services, chain.conditions.network, bench.folder / f"services-{position}") as found:
            yield found
    except ServiceFailed as failed:
        raise ChainFailed(Failure(kind="crash", reason=str(failed))) from failed


def _run(bench: Bench, chain: Chain, task: MeasureTask, found: Running | None) -> tuple[Outcome, Beside | None]:
    """The worker, and what was seen of the services that it asked, where there are any."""
    if found is None:
        return bench.launcher.run(task, bench.limits()), None
    fresh = chain.conditions.service == "fresh"
    beside = Beside(found.process_ids, found.counters)
    try:
        asking = msgspec.structs.replace(task, served=found.served, fresh_services=fresh)
        outcome = bench.launcher.run(asking, bench.limits(), beside=beside)
        found.check()
        return outcome, beside
    finally:
        beside.close()


def refuse_more_than_one_core(figures: Mapping[str, int]) -> None:
    """Rule 9: under threads=1 a sample whose CPU time exceeds its wall time is not one."""
    wall_ns: float = figures["wall_ns"]
    if "repetitions" in figures and "epoch_rows" not in figures:
        # There it is the median of calls, and CPU time their mean.
        wall_ns = figures["calls_ns"] / figures["repetitions"]
    cores = figures["cpu_ns"] / max(wall_ns, 1)
    if cores > ONE_THREAD_LIMIT:
        raise ChainFailed(Failure(kind="threads", reason=f"used {cores:.2f} cores under the condition threads=1"))


def _outside_figures(outcome: Outcome, measured: Measured) -> dict[str, int]:
    # What the worker has started has no high-water mark of its own that could be read when it has ended.
    of_the_tree = outcome.peak_tree_resident_bytes - measured.resident_before_bytes
    private = {"peak_private_bytes": _added_bytes(outcome, measured)}
    rest = measured.rest
    return {
        **(private if measured.tells_memory else {}),
        "peak_rss_bytes": max(measured.figures["peak_rss_bytes"], of_the_tree),
        "prepare_ns": measured.started_ns - outcome.launched_ns - rest.settle_ns,
        "settle_ns": rest.settle_ns,
        "control_write_ns": rest.control.write_ns,
        "control_allocate_ns": rest.control.allocate_ns,
    }


def _added_bytes(outcome: Outcome, measured: Measured) -> int:
    """Of private memory, inside the clock."""
    highest = max(outcome.peak_private_bytes, measured.private_end_bytes)
    return max(highest - measured.private_before_bytes, 0)


def beyond_what_was_ready(taken_bytes: int, readiness: Readiness) -> bool:
    """Whether a sample has taken more memory since the machine came to rest than is made ready (rule 1), on a machine
    whose host takes it back: touching the rest of it is a part of its time, and may be most of it."""
    return readiness.touches and taken_bytes > readiness.most_bytes


def _warnings(outcome: Outcome, why_not: str, *, beyond_bytes: int) -> Iterator[str]:
    if beyond_bytes:
        ready = f"{beyond_bytes // 10**6} MB of memory that are made ready before a sample"
        yield f"took more than the {ready}: its times may hold waiting for this machine's host"
    if outcome.printed:
        yield f"the library printed: {outcome.printed.splitlines()[0][:200]}"
    if why_not:
        yield f"not counted, {why_not}"


def _sizes(location: Path) -> dict[str, int]:
    files = [path.stat() for path in linux.files_below(location)]
    if not files:
        raise ChainFailed(Failure(kind="mismatch", reason=f"the save left nothing at its place, {location.name}"))
    return {
        "size_bytes": sum(file.st_size for file in files),
        "allocated_bytes": sum(file.st_blocks * 512 for file in files),
        "files_count": len(files),
    }


def _refuse_strays(folder: Path, location: Path) -> None:
    """A save that writes outside its place has a wrong size, and two runs could not coexist."""
    strays = [path for path in (folder / "stored").iterdir() if path != location]
    strays += (folder / "scratch").iterdir()
    strays += [path for path in folder.iterdir() if path.name not in ("stored", "primer", "scratch", "printed")]
    if strays:
        names = ", ".join(sorted(os.fspath(path.relative_to(folder)) for path in strays)[:3])
        raise ChainFailed(Failure(kind="mismatch", reason=f"the save wrote outside its place: {names}"))


# --- rule 14: warm is proven like cold ---------------------------------------------------------------------------


def bring_into_cache(location: Path, wanted: str) -> dict[str, int]:
    """Bring the stored copy into the wanted state, and say how much of it lies in the page cache.

    It was synced by its save's worker, which has ended: no process maps it.
    """
    if wanted == "cold":
        for path in linux.files_below(location):
            linux.evict_file(path)
    resident, size = _residency(location)
    if wanted == "warm" and resident < size:
        for path in linux.files_below(location):
            linux.read_through(path)
        resident, size = _residency(location)
    if wanted == "warm" and resident < WARM_RESIDENT_SHARE * size:
        raise ChainFailed(
            Failure(kind="cache", reason=f"only {resident / size:.0%} of the stored copy stays in the page cache")
        )
    if wanted == "cold" and resident > 0:
        raise ChainFailed(Failure(kind="cache", reason=f"{resident:,} bytes of the stored copy cannot be evicted"))
    return {"resident_before_bytes": resident, "size_bytes": size}


def _residency(location: Path) -> tuple[int, int]:
    files = list(linux.files_below(location))
    return sum(linux.resident_file_bytes(path) for path in files), sum(path.stat().st_size for path in files)


def _device_doubt(figures: Mapping[str, int], wanted: str, size: int, *, part: bool = False) -> str:
    """Why a warm read is not counted: the device was read from while it ran. Empty where all is well.

    It is no failure of the format: the pages are mostly those of libraries that a large worker drove out of the page
    cache, and the next round finds them there. A cold read that was not cold is one, because nothing would mend it.
    """
    fetched = figures["device_read_bytes"]
    # What a part needs nobody outside the format knows: it must have come from the device, whatever it is.
    needed = figures["distinct_bytes"] if wanted == "cold" and part else size
    if "node_cpu_ns" not in figures:
        # What a service knows already it need not read; who opens a copy himself has to.
        needed = max(needed, 1)
    if wanted == "cold" and fetched < COLD_DEVICE_SHARE * needed:
        reason = f"a cold read fetched only {fetched:,} of {needed:,} bytes from the device"
        raise ChainFailed(Failure(kind="cache", reason=reason))
    return warm_doubt(fetched, size, figures["wall_ns"]) if wanted == "warm" else ""


def warm_doubt(fetched_bytes: int, size_bytes: int, wall_ns: int) -> str:
    """Why a read that fetched so much of its copy from the device in this time was not warm; empty if it was."""
    of_its_time = min(WARM_DEVICE_BYTES_PER_S * wall_ns / 1e9, WARM_LONG_SHARE * size_bytes)
    if fetched_bytes <= max(WARM_DEVICE_SHARE * size_bytes, DEVICE_SLACK_BYTES, of_its_time):
        return ""
    return f"a warm read fetched {fetched_bytes:,} of {size_bytes:,} bytes from the device"
