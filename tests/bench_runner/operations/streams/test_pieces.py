"""Tables in pieces: the source of the pieces, the pages that are touched, and the digest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench_runner import clock
from bench_runner.clock import Laps
from bench_runner.operations import targets
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.pages import touching
from bench_runner.operations.streams import pieces
from bench_runner.operations.streams.tables import StreamSave
from bench_runner.operations.targets import Target
from data_generator.generated.kinds import KINDS
from formats.parquet.engines import ParquetPyarrow

ROWS = 1_000


def table_of_all_types() -> pa.Table:
    """Return plain and nested columns of all types, with nulls, zeros and empty values."""
    some = range(ROWS)
    words = pa.array([None if row % 11 == 0 else "ab" * (row % 4) for row in some])
    lists = pa.array([None if row % 5 == 0 else [row, None][: row % 3] for row in some], pa.list_(pa.int32()))
    return pa.table(
        {
            "i": pa.array([None if row % 7 == 0 else row for row in some], pa.int64()),
            "b": pa.array([None if row % 3 == 0 else row % 2 == 0 for row in some]),
            "s": words,
            "view": words.cast(pa.string_view()),
            "category": words.dictionary_encode(),
            "l": lists,
            "fixed": pa.array([[row, row + 1] for row in some], pa.list_(pa.float32(), 2)),
            "x": pa.array([None if row % 9 == 0 else {"a": row, "b": [str(row)]} for row in some]),
            "m": pa.array([[("k", row)] * (row % 3) for row in some], pa.map_(pa.string(), pa.int64())),
            "d": pa.array([None if row % 2 else row for row in some]).cast(pa.decimal128(25, 2)),
            "null": pa.nulls(ROWS),
        }
    )


def digest(table: pa.Table, *sizes: int) -> str:
    """Return the digest of the table divided into pieces. The sizes are used in turn."""
    made = pieces.StreamDigest()
    start = turn = 0
    while start < table.num_rows:
        made.update(table.slice(start, sizes[turn % len(sizes)]))
        start, turn = start + sizes[turn % len(sizes)], turn + 1
    return made.hexdigest()


def test_a_digest_does_not_depend_on_where_batches_end() -> None:
    table = table_of_all_types()
    whole = digest(table, ROWS)
    assert {digest(table, 1), digest(table, 7, 64, 3), digest(table.slice(0), 333), whole} == {whole}
    for name in table.column_names:
        column = table.select([name])
        assert digest(column, 5, 13) == digest(column, ROWS), name


@pytest.mark.parametrize("name", table_of_all_types().column_names)
def test_a_digest_sees_each_row_and_its_place(name: str) -> None:
    column = table_of_all_types().select([name])
    right = digest(column, 100)
    assert digest(column.slice(0, ROWS - 1), 100) != right
    assert digest(pa.concat_tables([column, column.slice(ROWS - 1)]), 100) != right
    for left, other in ((1, 2), (6, 7), (500, 501), (0, 998)):
        if column.column(0)[left] == column.column(0)[other]:
            continue
        # Swap two rows by slicing, because pyarrow's take does not support string views.
        between = column.slice(left + 1, other - left - 1)
        pieces = [column.slice(0, left), column.slice(other, 1), between, column.slice(left, 1)]
        again = pa.concat_tables([*pieces, column.slice(other + 1)])
        assert again.num_rows == ROWS
        assert digest(again, 100) != right, (left, other)


def test_a_digest_includes_types_and_names_but_not_values_below_a_null() -> None:
    def plain(values: list[int], kind: Any = None, name: str = "a") -> str:
        return digest(pa.table({name: pa.array(values, kind)}), 10)

    assert len({plain([1, 2]), plain([1, 2], pa.uint32()), plain([1, 2], name="b"), plain([2, 1])}) == 4
    there = pa.array([True, False, True])
    below = [pa.array([1, value, 3], pa.int64()) for value in (2, 99)]
    hidden = [
        pa.Array.from_buffers(
            pa.int64(), 3, [pa.py_buffer(np.packbits([1, 0, 1], bitorder="little")), each.buffers()[1]]
        )
        for each in below
    ]
    assert hidden[0].is_valid().equals(there)
    assert len({digest(pa.table({"a": each}), 2) for each in hidden}) == 1
    assert len({digest(pa.table({"a": each}), 2) for each in below}) == 2


def test_a_digest_sees_where_a_type_changes() -> None:
    """Readers of text formats infer the type of each batch separately."""

    def changed_at(row: int) -> str:
        made = pieces.StreamDigest()
        made.update(pa.table({"a": pa.array([1] * row, pa.int64())}))
        made.update(pa.table({"a": pa.array([1.0] * (6 - row))}))
        return made.hexdigest()

    assert len({changed_at(row) for row in (1, 2, 3)}) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_has_a_digest_and_is_touched(kind: str) -> None:
    for nulls in KINDS[kind].nulls:
        table = KINDS[kind].table(nulls)
        rows = table.num_rows
        pieces.touch(table.slice(rows // 3, rows // 3))
        assert digest(table, max(1, rows // 4)) == digest(table, rows)


def test_a_piece_is_touched_within_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"i": np.arange(100_000), "s": [f"text {row:08}" for row in range(100_000)]})
    touched: list[tuple[int, int]] = []
    monkeypatch.setattr(touching, "library", lambda: None)
    monkeypatch.setattr(targets, "touch_pages", lambda address, size_bytes: touched.append((address, size_bytes)))
    piece = table.slice(50_000, 1_000)
    pieces.touch(piece)
    column, texts = (table.column(name).chunk(0) for name in ("i", "s"))
    assert touched == [
        (column.buffers()[1].address + 50_000 * 8, 1_000 * 8),
        (texts.buffers()[1].address + 50_000 * 4, 1_001 * 4),
        (texts.buffers()[2].address + 50_000 * 13, 1_000 * 13),
    ]


def test_batches_of_guessed_types_are_joined_by_the_type_that_holds_all() -> None:
    batches = [
        pa.table({"i": [1, 2], "b": [True, False], "s": ["a", "b"]}),
        pa.table({"i": [1.5, None], "b": [None, 1.0], "s": pa.array([None, None], pa.float64())}),
        pa.table({"i": pa.array([None], pa.float64()), "b": [None], "s": ["c"]}),
    ]
    joined = pieces.joined(batches)
    assert joined.to_pydict() == {
        "i": [1.0, 2.0, 1.5, None, None],
        "b": [1.0, 0.0, None, 1.0, None],
        "s": ["a", "b", None, None, "c"],
    }
    with pytest.raises(pa.ArrowException):
        pieces.joined([pa.table({"a": [1]}), pa.table({"a": ["text"]})])


# --- the source of batches -------------------------------------------------------------------------------------------


@pytest.fixture
def stage(tmp_path: Path) -> OperationContext:
    """A cached data set of two batches."""
    table = pa.table({"i": np.arange(40_000), "s": [f"text {row}" for row in range(40_000)]})
    path = tmp_path / "data.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=25_000)
    adapter: Any = None
    return OperationContext(adapter, Target("arrow"), path, "digest", table.num_rows)


OF_OTHERS_BYTES = 10_000
"""Tolerance for other allocations in the pool. In a run of the whole suite they were once 256 bytes. Batches have at
least 110,000 bytes."""


def test_batches_come_in_order_and_fresh(stage: OperationContext) -> None:
    """If a batch used memory that existed before, a writer that keeps the batch would show no growth."""
    before = pa.total_allocated_bytes()
    held = []
    for batch in pieces.source(stage, 30_000, 10_000, Laps()):
        held.append(batch)
        assert pa.total_allocated_bytes() - before > sum(each.nbytes for each in held) - OF_OTHERS_BYTES
        del batch
    # Batches also end where batches of the stored data set end.
    assert [batch.num_rows for batch in held] == [10_000, 10_000, 5_000, 5_000]
    assert pa.Table.from_batches(held).equals(stage.table(30_000))
    held.clear()
    assert abs(pa.total_allocated_bytes() - before) < OF_OTHERS_BYTES
    for batch in pieces.source(stage, 40_000, 10_000, Laps()):
        assert pa.total_allocated_bytes() - before < 2 * batch.nbytes
        del batch


def test_a_stream_that_is_saved_counts_what_has_come(stage: OperationContext, tmp_path: Path) -> None:
    class Writer(ParquetPyarrow):
        def save_stream(self, schema: pa.Schema, batches: Any, location: Path) -> None:
            assert schema == stage.schema
            location.write_text(str(sum(batch.num_rows for batch in batches)))

    operation = StreamSave(10_000)
    location = tmp_path / "stored" / "t"
    operation.prepare(location)
    (tmp_path / "stored-stream-save" / "left over").touch()
    operation.prepare(location)
    laps = Laps()
    laps.start()
    place = operation.run(replace(stage, adapter=Writer()), 40_000, location, laps)
    laps.stop()
    assert [path.name for path in place.parent.iterdir()] == ["t"]
    assert place.read_text() == "40000"
    assert laps.parts["batches_count"] == 5
    assert laps.parts["result_bytes"] == pytest.approx(stage.table(40_000).nbytes, rel=0.01)


# --- pausing the clock -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others_ns", "paused_ns"),
    [(0, 1_000), (300, 700), (5_000, 0)],
    ids=["nobody else works", "another thread works", "several work"],
)
def test_a_pause_counts_neither_in_wall_nor_cpu_time(
    monkeypatch: pytest.MonkeyPatch, others_ns: int, paused_ns: int
) -> None:
    """The work of other threads of the process still counts during a pause."""
    passed = {"wall": 0, "cpu": 0, "thread": 0}
    monkeypatch.setattr(clock, "now_ns", lambda: passed["wall"])
    monkeypatch.setattr(clock, "cpu_ns", lambda: passed["cpu"])
    monkeypatch.setattr(clock, "thread_cpu_ns", lambda: passed["thread"])

    def work(wall: int, thread: int, others: int = 0) -> None:
        passed["wall"] += wall
        passed["thread"] += thread
        passed["cpu"] += thread + others

    laps = Laps()
    laps.start()
    work(50, 40)
    with laps.paused():
        work(1_000, 900, others_ns)
    work(20, 20)
    laps.lap("engine_ns")
    with laps.paused():
        work(500, 500)
    work(7, 7)
    laps.stop()
    assert laps.parts == {
        "paused_ns": paused_ns + 500,
        "engine_ns": 70 + 1_000 - paused_ns,
        "wall_ns": 77 + 1_000 - paused_ns,
        "cpu_ns": 67 + others_ns,
    }
