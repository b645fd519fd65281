"""One sample in this process: all that comes before the clock, the clock, and all that comes after it.

In the order of docs/method.md: prime, take the input into private memory, bring the machine to rest, clean slate,
clock, probes, verification. It knows one operation, and neither rounds nor what else is measured.
"""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from adapters.contract import Adapter, ImageStorage, TabularFormat
from adapters.offers import Handle
from adapters.services import Served
from bench_runner import registries
from bench_runner.clock import Laps, cpu_ns, now_ns, pause
from bench_runner.machine import linux
from bench_runner.operations import (
    Batches,
    DocumentOperation,
    Operation,
    RepeatedOperation,
    Stage,
    is_repeated,
    operation_of,
    targets,
)
from bench_runner.variants import is_raw_io
from bench_runner.worker import block, document_verify, epochs, image_verify, streams, together, verify
from bench_runner.worker.clean_slate import clean_slate, containers_made, may_collect
from bench_runner.worker.names import columns_differ
from bench_runner.worker.settle import Control, Readiness, Rest, Settler
from bench_runner.worker.verify import Mismatch
from bench_runner.worker.watch import Watch

PHASE_PREPARE, PHASE_CLOCK, PHASE_AFTER, PHASE_READY = range(4)
SEEN_LIMIT_S = 10.0
"""Whoever watches a worker looks every 2 ms; one that has not looked for so long never will."""

COMPARE_GROUP_BYTES = 256 * 1024 * 1024
"""At most about this much of the reference is in memory at once while a result is verified."""

Answer = dict[str, Any]


@dataclass(frozen=True)
class Ready:
    """An operation that has only to be run: primed, its input in private memory, the machine at rest, no memory in any
    pool (rules 1, 2 and 3)."""

    stage: Stage
    operation: Operation
    held: Any
    location: Path
    rest: Rest
    first_call: Mapping[str, int]
    thorough: bool
    """Whether all garbage was collected before the clock."""
    copy: tuple[Any, ...] = ()
    """What tells the stored copy from any that took its place; empty where it is made, or of images and documents,
    whose stores may write while they read."""

    def run(self, laps: Laps) -> Any:
        """What lies inside the clock; the result is to be given to `verified`. Of what is repeated one call, with its
        opening and closing."""
        if is_repeated(self.operation):
            return [self.operation.run(self.stage, self.held[0], self.location, laps)]
        return self.operation.run(self.stage, self.held, self.location, laps)


def prepare(task: Mapping[str, Any]) -> Ready:
    """Everything before the clock, in this process."""
    operation = operation_of(task["operation"])
    adapter = loaded_adapter(task)
    served = task.get("served")
    if served is not None:
        adapter.reach(Served(served["addresses"], served["token"]))
    target = targets.Target(**task["target"])
    targets.apply_strings(target)
    stage = Stage(adapter, target, Path(task["dataset"]), task["digest"], task["rows"], task.get("name", ""))
    before = containers_made()
    first_call = _prime(stage, operation, Path(task["primer"]))
    made = containers_made() - before
    if is_repeated(operation):
        threads = operation.threads_at_once
        beside = 2 * streams.CALLS_BESIDE * (threads > 1)
        held = operation.inputs(stage, stage.rows, threads * (1 + block.REPETITIONS) + beside)
    else:
        held = operation.take_input(stage, stage.rows)
    if operation.changes:
        operation.prepare(Path(task["location"]))
    location = Path(task["location"])
    if served is not None and not served["fresh"]:
        adapter.warm_up(location)
        if task["cold"]:
            # What services read for it must not be what the cold call needs.
            linux.evict_all(adapter.data_of(location))
    operation.begin(stage, location)
    rest = _settle(task)
    thorough = task["thorough"] or may_collect(made * stage.rows / max(stage.primer_rows, 1))
    clean_slate(thorough=thorough)
    may_write = target.is_images or target.is_documents
    copy = () if operation.writes or may_write else _copy_at(adapter.data_of(location))
    return Ready(stage, operation, held, location, rest, first_call, thorough, copy)


def measure(task: Mapping[str, Any], phase: mmap.mmap) -> Iterator[Answer]:
    """One operation under the rules 2, 3, 6, 7, 11, 13, 19 and 20. Yields one answer with everything that was seen."""
    ready = prepare(task)
    if is_repeated(ready.operation):
        yield _calls(ready, ready.operation, task, phase)
        return
    if isinstance(ready.operation, Batches):
        yield _training(ready, ready.operation, task, phase)
        return
    _tell(task, phase, PHASE_READY)
    watch = Watch()
    laps = Laps()

    phase[0] = PHASE_CLOCK
    laps.start()
    started = now_ns()
    result = ready.run(laps)
    laps.stop()
    watch.stop()
    _tell(task, phase, PHASE_AFTER)
    laps.parts["cpu_ns"] += watch.started_cpu_ns()
    figures = {**ready.first_call, **laps.parts, **watch.figures()}
    answer = watch.answer(ready.rest, started, thorough=ready.thorough)
    ready.operation.end(ready.stage, ready.location)  # what a server has read is known once it was waited for
    moved, before = linux.io_bytes(), watch.moved
    if ready.operation.writes or ready.operation.changes:
        figures["dirtied_bytes"] = moved.dirtied - before.dirtied
        written = result if ready.operation.changes else ready.location
        sync_started = now_ns()
        linux.fsync_all(written)
        figures["sync_ns"] = now_ns() - sync_started
        document_verify.refuse_what_shows_nothing(ready.stage.adapter, written, whole=task["whole"])
    else:
        figures["device_read_bytes"] = moved.device_read - before.device_read
        figures["asked_bytes"] = moved.asked_since(before)
        figures |= _distinct(task, ready)
        if isinstance(result, pa.Table):
            figures["result_bytes"] = result.nbytes
    if ready.operation.writes:
        answer |= read_back(ready.stage.adapter, ready.location)
    else:
        if ready.operation.changes:
            before_bytes = 0 if ready.operation.makes_anew else _size_bytes(ready.stage, ready.location)
            figures["growth_bytes"] = _size_bytes(ready.stage, result) - before_bytes
        if ready.operation.makes_anew:
            answer |= read_back(ready.stage.adapter, result)
        result = ready.operation.answer(ready.stage, result, ready.location)
        answer |= _verification(ready, result, figures, last_reader=task["last_reader"])
    answer["figures"] = figures
    yield answer


def _calls(ready: Ready, operation: RepeatedOperation, task: Mapping[str, Any], phase: mmap.mmap) -> Answer:
    """A sample of short calls (rule 19)."""
    stage, location = ready.stage, ready.location
    before = linux.io_bytes()
    opened = block.open_copy(operation, stage, location)
    block.make_ready(operation, stage, opened, ready.held)
    if task["cold"] and operation.reads_before_it_is_asked:
        # Neither the library's memory nor the page cache may hold what was read to make it ready.
        opened.handles = tuple(operation.open_again(stage, handle, location) for handle in opened.handles)
        linux.evict_all(stage.adapter.data_of(location))
        before = linux.io_bytes()

    def call(handle: Handle | None, held: Any) -> tuple[Any, dict[str, int]]:
        return block.one_call(operation, stage, handle, held, location)

    inputs, first, early, late, before_bytes = ready.held, block.Block(), block.Block(), block.Block(), 0
    handles, threads = opened.of_calls, operation.threads_at_once
    figures = {**ready.first_call, **opened.figures}
    once = task["cold"] or (task.get("served") or {"fresh": False})["fresh"]
    if once:
        # After one call, or one of each stream, the next one finds its pages in the cache, and a service that knows it.
        inputs = inputs[:threads]
    else:
        first = block.call_all(call, handles, inputs[: len(handles)])
        before_bytes = linux.io_bytes().asked_since(before) // len(handles)
        figures["first_ns"] = first.walls_ns[0]
        size_bytes = first.results[0].nbytes
        kept = opened.kept and not operation.may_be_long
        calls = block.calls_that_fit(first.walls_ns[0], size_bytes, kept=kept, threads=threads)
        inputs = inputs[len(handles) :]
        if block.has_large_answers(size_bytes, threads):
            # Two of them at once may be more memory than is made ready, and the second would wait for the host.
            began_ns = now_ns()
            verified(ready, first.results, last_reader=False)
            first.results.clear()
            figures["verify_ns"] = now_ns() - began_ns
            ready = replace(ready, held=inputs, rest=_settle(task))
            clean_slate(thorough=ready.thorough)
        if threads > 1:
            early = block.call_all(call, handles, inputs[: streams.CALLS_BESIDE])
            inputs = inputs[streams.CALLS_BESIDE :]
        inputs, spare = inputs[:calls], inputs[calls:]
    _tell(task, phase, PHASE_READY)
    watch = Watch()

    phase[0] = PHASE_CLOCK
    started = now_ns()
    cpu_before_ns = cpu_ns()
    if threads > 1:
        seen = streams.call_at_once(call, handles, inputs, threads)
    else:
        seen = block.call_all(call, handles, inputs)
    own_cpu_ns = cpu_ns() - cpu_before_ns
    watch.stop()
    _tell(task, phase, PHASE_AFTER)
    figures |= seen.figures(own_cpu_ns + watch.started_cpu_ns()) | watch.figures()
    halves = seen
    if threads > 1 and not once:
        late = block.call_all(call, handles, spare[: streams.CALLS_BESIDE])
        halves = streams.both_sides(early, late)
    held_before_bytes = sum(each.nbytes for each in (*first.results, *early.results))
    results = [*first.results, *early.results, *seen.results, *late.results]
    kept = opened.kept
    del handles
    held_bytes = _held_bytes(opened)
    figures["result_bytes"] = sum(each.nbytes for each in seen.results) // len(seen.results)
    if threads > 1:
        figures["empty_ns"] = streams.empty_call_ns(seen.results[-1], len(seen.results), threads)
    else:
        figures["empty_ns"] = block.empty_call_ns(seen.results[-1])
    answer = watch.answer(ready.rest, started, thorough=ready.thorough) | {"held_before_bytes": held_before_bytes}
    calls, calls_ns, result_bytes = (figures[name] for name in ("repetitions", "calls_ns", "result_bytes"))
    if not block.tells_memory(calls, calls_ns, result_bytes, once=once, threads=threads):
        answer["no_private_memory"] = True
    answer["device_bytes_of_all"] = linux.io_bytes().device_read - before.device_read
    figures |= _distinct(task, ready)
    held_bytes += stage.adapter.server_cache_bytes
    seen_reads = task.get("served") is None and not stage.adapter.reads_unseen
    # Raw I/O keeps nothing, and reads of a narrow row no byte beside its values.
    values = operation.needs_values(ready.held[0]) and not is_raw_io(stage.adapter.format)
    answer["cached"] = kept and not task["cold"] and block.is_cached(
        halves, held_bytes, _size_bytes(stage, location), before_bytes, sees_reads=seen_reads, needs_values=values
    )
    # What buffers of a connection take counts too: whoever sees the wire can tell them from values.
    answer["held_bytes"] = held_bytes
    answer |= _verification(ready, results, figures, last_reader=task["last_reader"])
    answer["figures"] = figures
    return answer


def _training(ready: Ready, operation: Batches, task: Mapping[str, Any], phase: mmap.mmap) -> Answer:
    """A sample of all rows in mini-batches, twice, from an open copy. Batches are kept until they are verified, so that
    memory tells nothing of the loader."""
    stage, location = ready.stage, ready.location
    _tell(task, phase, PHASE_READY)
    watch = Watch()
    laps = Laps()

    phase[0] = PHASE_CLOCK
    started = now_ns()
    laps.start()
    source = operation.open(stage, location)
    first = operation.epoch(stage, source, ready.held[0], laps, started)
    between = linux.io_bytes()
    second = operation.epoch(stage, source, ready.held[1][: first.rows], laps)
    laps.stop()
    watch.stop()
    _tell(task, phase, PHASE_AFTER)
    laps.parts["cpu_ns"] += watch.started_cpu_ns()
    moved, both = linux.io_bytes(), [first, second]
    source.close()
    asked_bytes = [between.asked_since(watch.moved), moved.asked_since(between)]
    fetched_bytes = moved.device_read - watch.moved.device_read
    figures = {**ready.first_call, **watch.figures()}
    figures |= epochs.figures(operation, ready.held, both, laps.parts, stage.rows)
    figures["asked_bytes"] = epochs.per_batch(sum(asked_bytes), operation, both)
    figures["device_read_bytes"] = epochs.per_batch(fetched_bytes, operation, both)
    figures["empty_ns"] = block.empty_call_ns(second.batches[-1])
    figures |= _distinct(task, ready)
    answer = watch.answer(ready.rest, started, thorough=ready.thorough)
    answer |= {"no_private_memory": True, "device_bytes_of_all": fetched_bytes}
    answer |= _verification(ready, both, figures, last_reader=task["last_reader"])
    answer["cached"] = not answer["fallback"] and epochs.is_cached(asked_bytes, both)
    answer["figures"] = figures
    return answer


def _tell(task: Mapping[str, Any], phase: mmap.mmap, now: int) -> None:
    """Say where this sample is. Where services are looked at from outside, wait until they were. Raises OSError when
    nobody looks."""
    if task.get("served") is None:
        phase[0] = PHASE_AFTER if now == PHASE_AFTER else phase[0]
        return
    phase[0] = now
    began_ns = now_ns()
    while phase[1] != now:
        if now_ns() - began_ns > SEEN_LIMIT_S * 1e9:
            raise OSError("nobody looks at the services of this sample")
        pause(0.0002)


def _copy_at(location: Path) -> tuple[Any, ...]:
    """The files of a stored copy: names, inodes, sizes, times."""
    found = ((str(path), path.stat()) for path in linux.files_below(location))
    return tuple(sorted((name, about.st_ino, about.st_size, about.st_mtime_ns) for name, about in found))


def _held_bytes(opened: block.Opened) -> int:
    """What closing the handle gives back: neither what pools keep for the next call, nor what allocators have split."""
    clean_slate(thorough=False)
    before = linux.own_memory().private_bytes
    while opened.handles:
        opened.handles[-1].close()
        # Some libraries have no call that closes: what they hold goes when nobody holds the handle.
        opened.handles = opened.handles[:-1]
    clean_slate(thorough=False)
    return before - linux.own_memory().private_bytes


def _distinct(task: Mapping[str, Any], ready: Ready) -> dict[str, int]:
    """After a cold start: what of the stored copy lies in the page cache now."""
    if not task["cold"]:
        return {}
    data = ready.stage.adapter.data_of(ready.location)
    return {"distinct_bytes": sum(linux.resident_file_bytes(path) for path in linux.files_below(data))}


def _verification(ready: Ready, result: Any, figures: dict[str, int], *, last_reader: bool) -> Answer:
    """What the comparison says, and how long it took, with that of what was verified before the clock."""
    started = now_ns()
    answer = verified(ready, result, last_reader=last_reader)
    figures["verify_ns"] = figures.get("verify_ns", 0) + now_ns() - started
    answer["saw_all"] = ready.operation.sees_all
    answer["fallback"] = ready.operation.fallback_in(ready.stage)
    return answer


def _size_bytes(stage: Stage, location: Path) -> int:
    data = stage.adapter.data_of(location) if stage.target.is_documents else location
    return sum(path.stat().st_size for path in linux.files_below(data))


def _settle(task: Mapping[str, Any]) -> Rest:
    """Rule 1, as late as it can be: what is at rest now is not a second later."""
    best = task["best_control"]
    readiness = Readiness(**task["readiness"])
    return Settler(Path(task["scratch"]), best and Control(**best), readiness).settle(task["need_bytes"])


def loaded_adapter(task: Mapping[str, Any]) -> Any:
    """The adapter of a task, with its libraries."""
    adapter = registries.build(task["variant"], threads=task["threads"])
    adapter.load_library()
    return adapter


def _prime(stage: Stage, operation: Operation, primer: Path) -> dict[str, int]:
    """The same operation once on few rows: first-call work is a figure of its own, not the format's cost."""
    held = operation.take_input(stage, stage.primer_rows)
    if operation.changes:
        operation.prepare(primer)
    operation.begin(stage, primer)
    linux.reset_high_water()
    before = linux.high_water_bytes()
    laps = Laps()
    laps.start()
    operation.run(stage, held, primer, laps)
    laps.stop()
    growth = linux.high_water_bytes() - before
    operation.end(stage, primer)
    return {"first_call_ns": laps.parts["wall_ns"], "first_call_rss_bytes": max(growth, 0)}


def read_back(adapter: Adapter, location: Path) -> Answer:
    """Rule 10: the file must be what its variant says."""
    stored = adapter.stored(location)
    asked = adapter.values.get("codec")
    if asked is not None and stored.codec != asked:
        raise Mismatch(f"the file was written with codec {stored.codec}, its variant says {asked}")
    return {"codec": stored.codec, "encodings": list(stored.encodings)}


def verified(ready: Ready, result: Any, *, last_reader: bool) -> Answer:
    """Rules 7 and 11: private memory, the right answer, and once more after the last reader has removed the files.

    Raises Mismatch.
    """
    parts = [(ready.held, result)]
    if is_repeated(ready.operation):
        asked = ready.held[: len(result)]
        if ready.operation.adds_up:
            asked = [ready.operation.expected_rows(ready.stage, each) for each in asked]
        if isinstance(ready.operation, DocumentOperation):
            parts = list(zip(asked, result, strict=True))
        else:
            parts = together.joined(ready.operation, ready.stage.rows, asked, result)
    if isinstance(ready.operation, Batches):
        parts = epochs.together(ready.operation, ready.held, result)
    if ready.stage.adapter.values.get("mapped") != "true":
        for _, part in parts:
            _refuse_mapped(part)
    if ready.copy and ready.copy != _copy_at(ready.stage.adapter.data_of(ready.location)):
        raise Mismatch("the stored copy was replaced or changed while it was read")
    answers = [_compare(ready.stage, ready.operation, held, part) for held, part in parts]
    if last_reader:
        remove(ready.location)
        if answers != [_compare(ready.stage, ready.operation, held, part) for held, part in parts]:
            raise Mismatch("the result changed when its files were removed")
    losses = list(dict.fromkeys(loss for answer in answers for loss in answer["losses"]))
    return {"fidelity": "declared loss" if losses else "exact", "losses": losses}


def _refuse_mapped(result: Any) -> None:
    places = np.array(list(targets.buffers(result)), np.uint64).reshape(-1, 2)
    starts, ends = places[:, 0], places.sum(axis=1, dtype=np.uint64)
    for start, end, path in linux.file_mappings():
        inside = (starts < np.uint64(end)) & (ends > np.uint64(start))
        if inside.any():
            size_bytes = int(places[inside, 1].sum())
            raise Mismatch(
                f"{size_bytes:,} bytes of the result lie in a mapping of {Path(path).name}, not in private memory; "
                "only a variant with mapped=true may do that"
            )


def _compare(stage: Stage, operation: Operation, held: Any, result: Any) -> Answer:
    """Column group by column group, so that the reference is never whole in memory beside the result."""
    if stage.target.is_documents:
        losses = document_verify.compare(stage, operation, held, result)
        return {"fidelity": "declared loss" if losses else "exact", "losses": list(losses)}
    if stage.target.is_images:
        return _compare_images(stage, result, operation.expected_rows(stage, held))
    names = operation.columns_of(stage, held)
    found = list(result.columns if stage.target.kind == "pandas" else result.column_names)
    if found != names:
        raise Mismatch(columns_differ(names, found))
    suffered: dict[str, None] = {}
    rows = operation.expected_rows(stage, held)
    declared = cast(TabularFormat, stage.adapter).losses
    for group in _column_groups(names, stage.dataset.stat().st_size):
        part = result[group] if stage.target.kind == "pandas" else result.select(group)
        expected = operation.expected(stage, group)
        comparison = verify.compare(expected, part, stage.target, declared, rows)
        if comparison.problems:
            raise Mismatch(f"round trip differs: {'; '.join(comparison.problems[:3])}")
        suffered |= dict.fromkeys(comparison.losses)
    return {"fidelity": "declared loss" if suffered else "exact", "losses": list(suffered)}


def _compare_images(stage: Stage, result: Any, numbers: np.ndarray | None) -> Answer:
    adapter = cast(ImageStorage, stage.adapter)
    owned = adapter.values.get("arrays", "owned") == "owned"
    least = adapter.least_psnr_db
    losses = image_verify.compare(stage.dataset, stage.rows, result, owned=owned, least_psnr_db=least, numbers=numbers)
    if adapter.least_psnr_db is not None and not losses:
        raise Mismatch("a loss is declared, and every pixel came back as it was")
    return {"fidelity": "declared loss" if losses else "exact", "losses": list(losses)}


def _column_groups(names: list[str], table_bytes: int) -> Iterator[list[str]]:
    size = max(1, int(len(names) * COMPARE_GROUP_BYTES / max(table_bytes, 1)))
    for start in range(0, len(names), size):
        yield names[start : start + size]


def remove(location: Path) -> None:
    """Remove a stored copy, file or folder."""
    if location.is_dir() and not location.is_symlink():
        shutil.rmtree(location)
    else:
        location.unlink(missing_ok=True)
