"""One sample in this process: all that comes before the clock, the clock, and all that comes after it.

In the order of docs/method.md: prime, take the input into private memory, bring the machine to rest, clean slate,
clock, probes, verification. It knows one operation, and neither rounds nor what else is measured.
"""

from __future__ import annotations

import gc
import mmap
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from adapters.contract import Adapter, ImageStorage, TabularFormat
from bench_runner import registries
from bench_runner.clock import Laps, now_ns
from bench_runner.machine import linux
from bench_runner.machine.process_tree import started_cpu_ns, started_memory, total
from bench_runner.operations import Operation, Stage, operation_of, targets
from bench_runner.worker import image_verify, verify
from bench_runner.worker.settle import Control, Readiness, Rest, Settler
from bench_runner.worker.verify import Mismatch

PHASE_PREPARE, PHASE_CLOCK, PHASE_AFTER = range(3)

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

    def run(self, laps: Laps) -> Any:
        """What lies inside the clock; the result is to be given to `verified`."""
        return self.operation.run(self.stage, self.held, self.location, laps)


def prepare(task: Mapping[str, Any]) -> Ready:
    """Everything before the clock, in this process."""
    operation = operation_of(task["operation"])
    adapter = loaded_adapter(task)
    target = targets.Target(**task["target"])
    targets.apply_strings(target)
    stage = Stage(adapter, target, Path(task["dataset"]), task["digest"], task["rows"])
    before = containers_made()
    first_call = _prime(stage, operation, Path(task["primer"]))
    made = containers_made() - before
    held = operation.take_input(stage, stage.rows)
    rest = _settle(task)
    thorough = task["thorough"] or may_collect(made * stage.rows / max(stage.primer_rows, 1))
    clean_slate(thorough=thorough)
    return Ready(stage, operation, held, Path(task["location"]), rest, first_call, thorough)


def measure(task: Mapping[str, Any], phase: mmap.mmap) -> Iterator[Answer]:
    """One operation under the rules 2, 3, 6, 7, 11, 13 and 20. Yields one answer with everything that was seen."""
    ready = prepare(task)
    figures = dict(ready.first_call)
    # First, so that looking at other processes takes no memory between the reset and the clock.
    started_cpu_before_ns, started_before = started_cpu_ns(), started_memory()
    linux.reset_high_water()
    high_water_before = linux.high_water_bytes()
    before = linux.own_memory()
    device_read_before, dirtied_before = linux.io_bytes()
    collections_before = _full_collections()
    laps = Laps()

    phase[0] = PHASE_CLOCK
    laps.start()
    started = now_ns()
    result = ready.run(laps)
    laps.stop()
    at_end = linux.own_memory()
    high_water = linux.high_water_bytes()
    collected = _full_collections() > collections_before
    phase[0] = PHASE_AFTER
    # Never before the worker's own figures, which must be the same whether anything was started or not.
    laps.parts["cpu_ns"] += max(started_cpu_ns() - started_cpu_before_ns, 0)
    tree_before, tree_at_end = total((before, started_before)), total((at_end, started_memory()))

    device_read, dirtied = linux.io_bytes()
    figures |= laps.parts
    figures["peak_rss_bytes"] = max(high_water - high_water_before, 0)
    answer: Answer = {
        "event": "measured",
        "started_ns": started,
        "private_before_bytes": tree_before.private_bytes,
        "private_end_bytes": tree_at_end.private_bytes,
        "resident_before_bytes": tree_before.resident_bytes,
        "rest": asdict(ready.rest),
        "collected": collected and not ready.thorough,
    }
    if ready.operation.writes:
        figures["dirtied_bytes"] = dirtied - dirtied_before
        sync_started = now_ns()
        linux.fsync_all(ready.location)
        figures["sync_ns"] = now_ns() - sync_started
        answer |= read_back(ready.stage.adapter, ready.location)
    else:
        figures["device_read_bytes"] = device_read - device_read_before
        verify_started = now_ns()
        answer |= verified(ready, result, last_reader=task["last_reader"])
        figures["verify_ns"] = now_ns() - verify_started
        answer["saw_all"] = ready.operation.sees_all
        answer["fallback"] = ready.operation.fallback(ready.stage.adapter)
    answer["figures"] = figures
    yield answer


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
    linux.reset_high_water()
    before = linux.high_water_bytes()
    laps = Laps()
    laps.start()
    operation.run(stage, held, primer, laps)
    laps.stop()
    growth = linux.high_water_bytes() - before
    return {"first_call_ns": laps.parts["wall_ns"], "first_call_rss_bytes": max(growth, 0)}


def clean_slate(*, thorough: bool = True) -> None:
    """Rule 3: nothing that was freed before may hide in a pool, or a 100 MB allocation can show as 0.

    A thorough one looks at all that the process has loaded (some 40 ms), else only at what came since. In a forked
    worker it also copies the collector's marks on what the forkserver has loaded: better here than in the first full
    collection inside the clock, where there may be one.
    """
    gc.collect(2 if thorough else 1)
    for pool in _arrow_pools():
        pool.release_unused()
    linux.trim_heap()


def containers_made() -> int:
    """How many objects that the collector knows have been made and not freed, since some beginning, counted by its
    collections: good for differences alone."""
    collections = sum(generation["collections"] for generation in gc.get_stats())
    return collections * (gc.get_threshold()[0] + 1) + gc.get_count()[0]


def may_collect(containers: float) -> bool:
    """Whether making so many containers, or twice as many, may lead to a full collection."""
    (young, middle, old), (_, _, passed) = gc.get_threshold(), gc.get_count()
    return 2 * containers > (old - passed) * middle * young


def _full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


def _arrow_pools() -> list[pa.MemoryPool]:
    pools = [pa.default_memory_pool()]
    for name in pa.supported_memory_backends():
        pools.append(getattr(pa, f"{name}_memory_pool")())
    return pools


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
    if ready.stage.adapter.values.get("mapped") != "true":
        _refuse_mapped(result)
    answer = _compare(ready.stage, ready.operation, result)
    if last_reader:
        remove(ready.location)
        again = _compare(ready.stage, ready.operation, result)
        if again != answer:
            raise Mismatch("the result changed when its files were removed")
    return answer


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


def _compare(stage: Stage, operation: Operation, result: Any) -> Answer:
    """Column group by column group, so that the reference is never whole in memory beside the result."""
    if stage.target.is_images:
        return _compare_images(stage, result)
    names = operation.expected_columns(stage)
    found = list(result.columns if stage.target.kind == "pandas" else result.column_names)
    if found != names:
        raise Mismatch(f"columns differ: expected {_few(names)}, came back {_few(found)}")
    losses: dict[str, None] = {}
    declared = cast(TabularFormat, stage.adapter).losses
    for group in _column_groups(names, stage.dataset.stat().st_size):
        part = result[group] if stage.target.kind == "pandas" else result.select(group)
        expected = operation.expected(stage, group)
        comparison = verify.compare(expected, part, stage.target, declared)
        if comparison.problems:
            raise Mismatch(f"round trip differs: {'; '.join(comparison.problems[:3])}")
        losses |= dict.fromkeys(comparison.losses)
    return {"fidelity": "declared loss" if losses else "exact", "losses": list(losses)}


def _compare_images(stage: Stage, result: Any) -> Answer:
    adapter = cast(ImageStorage, stage.adapter)
    owned = adapter.values.get("arrays", "owned") == "owned"
    losses = image_verify.compare(stage.dataset, stage.rows, result, owned=owned, least_psnr_db=adapter.least_psnr_db)
    if adapter.least_psnr_db is not None and not losses:
        raise Mismatch("a loss is declared, and every pixel came back as it was")
    return {"fidelity": "declared loss" if losses else "exact", "losses": list(losses)}


def _few(names: list[str]) -> str:
    return ", ".join(map(str, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


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
