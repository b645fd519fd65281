"""The order of events in a worker: before, during and after the measured time."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from msgspec.structs import replace

from adapters.contract import Native, Records, Stored, TabularFormat
from adapters.offers import Offers
from bench_runner.clock import Laps
from bench_runner.data_kinds import TABLES
from bench_runner.machine import linux
from bench_runner.operations import OPERATIONS, READ_ALL, Operation, OperationContext, operation_of, targets
from bench_runner.operations.tables.project import chosen_columns
from bench_runner.operations.targets import Target
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.suites import SUITES
from bench_runner.worker import clean_slate, prepared, verification, verify
from bench_runner.worker import sample as worker
from bench_runner.worker.messages import ImportTask, MeasureTask
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK, PHASE_PREPARE
from bench_runner.worker.prepared import Prepared
from bench_runner.worker.sampling import block, joined
from bench_runner.worker.settle import Control, Readiness, Rest, Settler
from bench_runner.worker.verification import Pair, Verified, verified
from data_generator.cache import StoredDataset, prepare, read_table
from data_generator.catalogue import resolve

ROWS = 5_000
REST = Rest(Control(1, 1), settled=True, settle_ns=0)


class Order:
    """Events in order, each with the phase in which it happened."""

    def __init__(self, patch: pytest.MonkeyPatch, phase: mmap.mmap) -> None:
        self.seen: list[tuple[str, int]] = []
        self._patch, self._phase = patch, phase

    def note(self, what: str) -> None:
        self.seen.append((what, self._phase[0]))

    def spy(self, owner: Any, name: str) -> None:
        """Record each call of `owner.name` under that name, and make the call."""
        real = getattr(owner, name)

        def noted(*arguments: Any, **named: Any) -> Any:
            self.note(name)
            return real(*arguments, **named)

        self._patch.setattr(owner, name, noted)


class SpyAdapter:
    """A format that keeps tables in memory and records its calls. Its files are empty."""

    native = native_read = Native.ARROW
    losses = ()
    offers = Offers()
    server_cache_bytes = 0
    reads_unseen = False
    format = "spy"

    def __init__(self, order: Order) -> None:
        self._order = order
        self.values: dict[str, str] = {}
        self._kept: dict[Path, pa.Table] = {}

    def data_of(self, location: Path) -> Path:
        return location

    sized_at = data_of

    def begin(self, location: Path) -> None: ...

    def end(self, location: Path) -> None: ...

    def save(self, table: pa.Table, location: Path) -> None:
        self._order.note(f"save {table.num_rows} rows")
        location.touch()
        self._kept[location] = table

    def read(self, location: Path) -> pa.Table:
        table = self._kept[location]
        self._order.note(f"read {table.num_rows} rows")
        return table

    def stored(self, location: Path) -> Stored:
        self._order.note("stored")
        return Stored()


@pytest.fixture(autouse=True)
def _at_rest(monkeypatch: pytest.MonkeyPatch, usual_collection: None) -> None:
    monkeypatch.setattr(Settler, "settle", lambda self, need_bytes: REST)


@pytest.fixture
def phase() -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        yield page


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch, phase: mmap.mmap) -> Order:
    made = Order(monkeypatch, phase)
    adapter = SpyAdapter(made)
    monkeypatch.setattr(prepared, "loaded_adapter", lambda task: adapter)
    made.spy(linux, "fsync_all")
    made.spy(Settler, "settle")
    made.spy(linux, "reset_high_water")
    made.spy(linux, "trim_heap")
    made.spy(targets, "make")
    made.spy(targets, "to_native")
    made.spy(targets, "from_native")
    made.spy(targets, "touch")
    made.spy(verification, "remove")
    made.spy(verify, "compare")
    for name in ("start", "stop"):
        made.spy(Laps, name)
    return made


@pytest.fixture
def task(tmp_path: Path, dataset: StoredDataset) -> MeasureTask:
    return MeasureTask(
        scratch=tmp_path,
        confine=tmp_path,
        printed=tmp_path / "printed",
        operation="save",
        variant="spy",
        target=Target(kind="arrow"),
        dataset=dataset.path,
        dataset_name=dataset.name,
        dataset_digest=dataset.digest,
        rows=ROWS,
        whole=True,
        location=tmp_path / "table",
        primer=tmp_path / "primer",
        last_reader=True,
        need_bytes=0,
        best_control=None,
        readiness=Readiness(True, ""),
        thorough=True,
        cold=False,
    )


@pytest.mark.rule(1)
def test_the_life_of_a_save(order: Order, task: MeasureTask, phase: mmap.mmap) -> None:
    """A save is primed on few rows. Then the input is loaded, the machine comes to rest, and pools and the peak are
    reset.

    The sync follows the timed call (rules 1, 2, 3 and 6)."""
    (answer,) = worker.measure(task, phase)
    assert order.seen == [
        ("make", PHASE_PREPARE),
        ("reset_high_water", PHASE_PREPARE),
        ("start", PHASE_PREPARE),
        ("to_native", PHASE_PREPARE),
        (f"save {TABLES.primer_rows} rows", PHASE_PREPARE),
        ("stop", PHASE_PREPARE),
        ("make", PHASE_PREPARE),
        ("settle", PHASE_PREPARE),
        ("trim_heap", PHASE_PREPARE),
        ("reset_high_water", PHASE_PREPARE),
        ("start", PHASE_CLOCK),
        ("to_native", PHASE_CLOCK),
        (f"save {ROWS} rows", PHASE_CLOCK),
        ("stop", PHASE_CLOCK),
        ("fsync_all", PHASE_AFTER),
        ("stored", PHASE_AFTER),
    ]
    assert {"wall_ns", "cpu_ns", "engine_ns", "convert_ns", "sync_ns", "first_call_ns"} <= set(answer.figures)


def test_the_life_of_a_read(order: Order, task: MeasureTask, phase: mmap.mmap) -> None:
    """Touching every page is timed. Verification follows, once with the files and once without (rules 7 and 11)."""
    list(worker.measure(task, phase))
    order.seen.clear()
    phase[0] = PHASE_PREPARE
    (answer,) = worker.measure(replace(task, operation="read"), phase)
    inside = [what for what, when in order.seen if when == PHASE_CLOCK]
    assert inside == ["start", f"read {ROWS} rows", "from_native", "touch", "stop"]
    before = [what for what, when in order.seen if when == PHASE_PREPARE]
    primed = ["reset_high_water", "start", f"read {TABLES.primer_rows} rows", "from_native", "touch", "stop"]
    assert before == [*primed, "settle", "trim_heap", "reset_high_water"]
    assert [what for what, when in order.seen if when == PHASE_AFTER] == ["compare", "remove", "compare"]
    assert not task.location.exists()
    assert answer.fidelity == "exact"
    parts = ("engine_ns", "convert_ns", "touch_ns")
    assert all(answer.figures[part] > 0 for part in parts)
    assert sum(answer.figures[part] for part in parts) <= answer.figures["wall_ns"]


def test_a_server_runs_from_before_the_machine_comes_to_rest_until_behind_the_clock(
    order: Order, task: MeasureTask, phase: mmap.mmap
) -> None:
    for name in ("begin", "end"):
        order.spy(Operation, name)
    list(worker.measure(task, phase))
    around = ("begin", "end", "settle", "start", "stop", "fsync_all")
    assert [(what, when) for what, when in order.seen if what in around] == [
        ("begin", PHASE_PREPARE),
        ("start", PHASE_PREPARE),
        ("stop", PHASE_PREPARE),
        ("end", PHASE_PREPARE),
        ("begin", PHASE_PREPARE),
        ("settle", PHASE_PREPARE),
        ("start", PHASE_CLOCK),
        ("stop", PHASE_CLOCK),
        ("end", PHASE_AFTER),
        ("fsync_all", PHASE_AFTER),
    ]


class Keeping(TabularFormat):
    """A format that keeps its input in memory, in the type that `native` names. It offers no calls for operations."""

    format = "keeping"
    engine = "memory"
    title = "Keeping"
    distributions = ()
    suffix = ".kept"
    capabilities = frozenset()

    def __init__(self, native: Native) -> None:
        super().__init__()
        self.native = native  # type: ignore[misc]
        self._kept: dict[Path, Any] = {}

    def load_library(self) -> None:
        """Do nothing."""

    def save(self, held: Any, location: Path) -> None:
        location.touch()
        self._kept[location] = (held.schema, list(held.rows)) if self.native is Native.RECORDS else held

    def read(self, location: Path) -> Any:
        kept = self._kept[location]
        return Records(kept[0], iter(kept[1])) if self.native is Native.RECORDS else kept

    def stored(self, location: Path) -> Stored:
        return Stored()


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
@pytest.mark.parametrize("native", [Native.PANDAS, Native.ARROW, Native.POLARS, Native.RECORDS])
def test_without_a_call_for_it_columns_are_selected_from_everything(
    native: Native, kind: str, task: MeasureTask, phase: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right columns are selected, in the requested order, whatever the engine returns. The answer is marked as a
    fallback."""
    adapter = Keeping(native)
    monkeypatch.setattr(prepared, "loaded_adapter", lambda task: adapter)
    results: list[Any] = []

    def noted(ready: Prepared, parts: Sequence[Pair], **given: Any) -> Verified:
        results.extend(part.given for part in parts)
        return verified(ready, parts, **given)

    monkeypatch.setattr(worker, "verified", noted)
    task = replace(task, target=Target(kind=kind))
    list(worker.measure(task, phase))
    (answer,) = worker.measure(replace(task, operation="project[columns=3]"), phase)
    stored = read_table(task.dataset, 0).schema
    asked = chosen_columns(stored, task.dataset_digest, 3)
    assert asked != [name for name in stored.names if name in asked], "another order than the stored one"
    (result,) = results
    assert list(result.columns if kind == "pandas" else result.column_names) == asked
    assert len(result) == ROWS
    assert (answer.fallback, answer.fidelity, answer.saw_all) == (READ_ALL, "exact", False)


@dataclass(frozen=True)
class Count(Operation):
    """Return the number of rows. A new reading operation has to define nothing else."""

    name: ClassVar[str] = "count"
    meaning: ClassVar[str] = "count the rows"
    right: ClassVar[int] = 0

    def run(self, stage: OperationContext, held: None, location: Path, laps: Laps) -> pa.Table:
        rows = stage.adapter.read(location).num_rows
        laps.lap("engine_ns")
        return pa.table({"rows": [rows]})

    def expected_columns(self, stage: OperationContext, held: None = None) -> list[str]:
        return ["rows"]

    def expected(self, stage: OperationContext, columns: Sequence[str]) -> pa.Table:
        return pa.table({"rows": [stage.rows + self.right]})


@pytest.mark.parametrize("off", [0, 1])
def test_a_new_operation_is_a_class_and_a_row(
    off: int, order: Order, task: MeasureTask, phase: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operation is planned, measured and verified although no other code names it."""
    monkeypatch.setitem(OPERATIONS, "count", Count)  # type: ignore[arg-type]
    monkeypatch.setattr(Count, "right", off)
    chain, *_ = make_plan([SUITES["tabular"]], Request(rows=10, target="arrow", operations=("count",))).chains
    assert chain.operations == ("save", "count")
    list(worker.measure(task, phase))
    counting = worker.measure(replace(task, operation="count"), phase)
    with pytest.raises(verify.Mismatch) if off else nullcontext():
        assert next(counting).fidelity == "exact"


@pytest.mark.rule(11)
def test_only_the_last_reader_removes_the_stored_copy(order: Order, task: MeasureTask, phase: mmap.mmap) -> None:
    list(worker.measure(task, phase))
    list(worker.measure(replace(task, operation="read", last_reader=False), phase))
    assert task.location.exists()


@pytest.mark.rule(2)
def test_a_table_smaller_than_the_primer_is_primed_whole(order: Order, task: MeasureTask, phase: mmap.mmap) -> None:
    list(worker.measure(replace(task, rows=10), phase))
    assert [what for what, _ in order.seen if what.startswith("save")] == ["save 10 rows", "save 10 rows"]


@pytest.mark.rule(11)
def test_a_result_that_is_another_the_second_time_is_a_mismatch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dataset: StoredDataset
) -> None:
    """The results must be equal even if both comparisons pass with different losses (rule 11)."""
    answers = [(), ("rounded",)]
    monkeypatch.setitem(verification.COMPARISONS, "tables", lambda *arguments: answers.pop(0))
    order = Order(monkeypatch, mmap.mmap(-1, mmap.PAGESIZE))
    stage = OperationContext(SpyAdapter(order), Target("arrow", "str", "masked"), dataset.path, "d", ROWS)  # type: ignore[arg-type]
    location = tmp_path / "table"
    location.touch()
    ready = Prepared(stage, operation_of("read"), None, location, REST, {}, True)
    with pytest.raises(verify.Mismatch, match="changed when the stored files were removed"):
        verified(ready, [Pair(None, pa.table({}), [])], last_reader=True)


@pytest.mark.parametrize("threads", [None, 1])
def test_an_adapter_is_told_how_many_threads_it_has(threads: int | None) -> None:
    """Some libraries take the number of threads as an argument of each call, not from the environment."""
    task = ImportTask(
        variant="feather[engine=pyarrow,codec=none]", threads=threads, scratch=Path(), confine=Path(), printed=Path()
    )
    assert prepared.loaded_adapter(task).threads == threads


@pytest.mark.parametrize("codec", [None, "none", "gzip"])
def test_a_file_without_the_codec_of_its_variant_is_a_mismatch(
    codec: str | None, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = SpyAdapter(order)
    adapter.values["codec"] = "zstd"
    monkeypatch.setattr(adapter, "stored", lambda location: Stored(codec=codec))
    with pytest.raises(verify.Mismatch, match=f"written with codec={codec}, but its variant sets codec=zstd"):
        verification.read_back(adapter, Path("table"))


@pytest.mark.rule(3)
def test_a_clean_slate_empties_every_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """First the garbage collector runs, then pools are emptied, then the C library's heap is trimmed (rule 3)."""
    done: list[str] = []

    class Pool:
        def __init__(self, name: str) -> None:
            self._name = name

        def release_unused(self) -> None:
            done.append(self._name)

    monkeypatch.setattr(clean_slate, "_arrow_pools", lambda: [Pool("one"), Pool("two")])
    monkeypatch.setattr(linux, "trim_heap", lambda: done.append("heap"))
    monkeypatch.setattr("gc.collect", lambda generation: done.append(f"collector {generation}"))
    clean_slate.clean_slate()
    assert done == ["collector 2", "one", "two", "heap"]
    clean_slate.clean_slate(thorough=False)
    assert done[4:] == ["collector 1", "one", "two", "heap"]


@pytest.mark.rule(3)
def test_containers_are_counted_and_many_of_them_collect() -> None:
    before = clean_slate.containers_made()
    kept = [[number] for number in range(50_000)]
    assert 49_000 < clean_slate.containers_made() - before < 53_000, len(kept)
    gc.collect()
    assert not clean_slate.may_collect(10_000)
    assert clean_slate.may_collect(100_000)
    collections = gc.get_stats()[2]["collections"]
    made = [[number] for number in range(10_000)]
    assert gc.get_stats()[2]["collections"] == collections, len(made)


@pytest.mark.parametrize("many", [False, True])
def test_objects_made_while_priming_decide_whether_all_garbage_is_collected(
    many: bool, order: Order, task: MeasureTask, phase: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Priming makes enough objects per row to cause a full collection in the timed call, or hardly any objects."""
    collected: list[bool] = []
    kept: list[object] = []
    monkeypatch.setattr(prepared, "clean_slate", lambda thorough: collected.append(thorough))

    def save(self: SpyAdapter, held: Any, location: Path) -> None:
        location.touch()
        kept.extend([row] for row in range(50_000 if many else 10))

    monkeypatch.setattr(SpyAdapter, "save", save)
    gc.collect()
    list(worker.measure(replace(task, thorough=False), phase))
    assert collected == [many]


@pytest.mark.parametrize(("thorough", "told"), [(False, True), (True, False)])
@pytest.mark.rule(3)
def test_an_unexpected_full_collection_is_reported(
    thorough: bool, told: bool, order: Order, task: MeasureTask, phase: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a forked worker, a full collection in the timed call would copy pages of the forkserver."""
    monkeypatch.setattr(prepared, "may_collect", lambda containers: False)
    monkeypatch.setattr(SpyAdapter, "save", lambda self, held, location: (location.touch(), gc.collect()))
    (answer,) = worker.measure(replace(task, thorough=thorough), phase)
    assert answer.collected is told


@pytest.mark.rule(3)
def test_every_pool_of_arrow_is_known() -> None:
    names = {pool.backend_name for pool in clean_slate._arrow_pools()}
    assert names == {*pa.supported_memory_backends(), pa.default_memory_pool().backend_name}
    assert "system" in names


@pytest.mark.parametrize(
    "operation",
    ["read", "project[columns=3]", "take[rows=5,handle=kept]", "take[rows=5,handle=reopened,columns=2]", "scan"],
)
def test_nothing_of_the_data_set_is_read_inside_the_clock(
    operation: str, order: Order, task: MeasureTask, phase: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs are read before the timed call, and the right answer before or after it."""
    list(worker.measure(task, phase))
    phases = []
    whole = OperationContext.table

    def table(self: OperationContext, *given: Any) -> pa.Table:
        phases.append(phase[0])
        return whole(self, *given)

    monkeypatch.setattr(OperationContext, "table", table)
    list(worker.measure(replace(task, operation=operation), phase))
    assert PHASE_CLOCK not in phases
    assert PHASE_AFTER in phases


@pytest.mark.parametrize("large", [True, False])
def test_of_large_answers_one_is_held_at_a_time(
    large: bool, task: MeasureTask, phase: mmap.mmap, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first result is verified and dropped before the timed call. Then the machine has to come to rest again.

    Two large results together may exceed the memory that was made ready."""
    queries = prepare(resolve("snowset", {"block_rows": "500"}, rows=5_000), cache_folder)
    variant = "parquet[engine=near-storage,codec=snappy,reader=ranges,row_group_rows=500]"
    task = replace(
        task,
        dataset=queries.path,
        dataset_digest=queries.digest,
        dataset_name=queries.name,
        rows=5_000,
        variant=variant,
    )
    list(worker.measure(task, phase))
    phase[0] = PHASE_PREPARE
    seen: list[tuple[str, int]] = []
    join, settle = joined.joined, Settler.settle

    def joining(parts: Sequence[Pair], rows: int) -> Sequence[Pair]:
        seen.append(("verified in its phase", phase[0]))
        seen.append(("answers", len(parts)))
        return join(parts, rows)

    def settled(self: Settler, need_bytes: int) -> Rest:
        seen.append(("settled", 1))
        return settle(self, need_bytes)

    monkeypatch.setattr(joined, "joined", joining)
    monkeypatch.setattr(Settler, "settle", settled)
    monkeypatch.setattr(block, "MOST_RESULT_BYTES", 500_000 if large else 10**9)
    (answer,) = worker.measure(replace(task, operation="query[groups=0.5,block_rows=500]"), phase)
    answers = [count for what, count in seen if what == "answers"]
    assert [what for what, _ in seen].count("settled") == 1 + large
    assert answers == ([1, 1] if large else [1 + answer.figures["repetitions"]])
    assert seen[1] == (("verified in its phase", PHASE_PREPARE) if large else ("verified in its phase", PHASE_AFTER))
    assert answer.figures["repetitions"] == 1 or not large
    assert (answer.held_before_bytes == 0) == large
    assert answer.figures["verify_ns"] > 0
    assert answer.fidelity == "exact"
