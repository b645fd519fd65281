"""The user's own table as a data set: sampled once, cached, sampled again after a change; a share of it."""

from __future__ import annotations

import os
import signal
import struct
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_generator import cache
from data_generator.catalogue import resolve
from data_generator.imported.read_options import ReadOptions
from data_generator.imported.tables import table_worker
from data_generator.imported.tables.sampling import blocks
from tests.data_generator.imported.refused import refused, table
from tests.data_generator.imported.tables.table_files import numbered, write

ROWS = 10_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(numbered(ROWS), tmp_path / "table.parquet")


@pytest.mark.usefixtures("own_process")
def test_a_table_is_taken_as_it_is(path: Path) -> None:
    dataset = resolve("table", {}, source=path)
    assert table(dataset).equals(numbered(ROWS))
    assert (dataset.name, dataset.rows, dataset.schema) == ("table", ROWS, numbered(1).schema)
    said = {key: dataset.source[key] for key in ("path", "input_rows", "sampled_rows", "blocks")}
    assert said == {"path": str(path), "input_rows": "10000", "sampled_rows": "10000", "blocks": "1"}


def test_rows_is_the_size_of_the_sample(path: Path) -> None:
    dataset = resolve("table", {}, rows=160, source=path)
    expected = [row for block in blocks(ROWS, 160) for row in range(block.start, block.end)]
    assert table(dataset)["place"].to_pylist() == expected
    assert (dataset.rows, dataset.source["input_rows"], dataset.source["blocks"]) == (160, "10000", "16")


def test_a_share_is_the_first_part_of_each_block(path: Path) -> None:
    dataset = resolve("table", {"share": "0.25"}, rows=160, source=path)
    starts = [block.start for block in blocks(ROWS, 160)]
    # A quarter of 10 rows is 2 (Python rounds to even).
    expected = [start + place for start in starts for place in range(2)]
    assert table(dataset)["place"].to_pylist() == expected
    assert (dataset.name, dataset.rows) == ("table[share=0.25]", 32)
    assert (dataset.source["input_rows"], dataset.source["sampled_rows"]) == ("10000", "32")


def test_a_share_of_a_whole_table_is_its_first_part(path: Path) -> None:
    dataset = resolve("table", {"share": "0.5"}, source=path)
    assert table(dataset).equals(numbered(ROWS).slice(0, ROWS // 2).combine_chunks())


def test_a_share_of_all_is_the_table_itself(path: Path) -> None:
    assert resolve("table", {"share": "1.0"}, source=path).name == "table"


def test_a_table_that_has_not_changed_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve("table", {}, source=path)
    expected = table(first)

    def started(*_: object) -> None:
        raise AssertionError("the table is read again")

    monkeypatch.setattr(table_worker, "started", started)
    again = resolve("table", {}, source=path)
    assert (again.rows, again.schema, again.source) == (first.rows, first.schema, first.source)
    assert table(again).equals(expected)
    assert resolve("table", {"share": "0.1"}, source=path).rows == ROWS // 10


def test_a_table_that_has_changed_is_read_again(path: Path) -> None:
    first = cache.prepare(resolve("table", {}, source=path), cache.default_folder())
    write(numbered(50), path)
    second = cache.prepare(resolve("table", {}, source=path), cache.default_folder())
    assert (second.rows, first.digest == second.digest) == (50, False)


def test_a_table_that_is_read_otherwise_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("1,5\n2,6\n")
    found = [
        resolve("table", {}, source=path, options=options)
        for options in (ReadOptions(), ReadOptions(header=False), ReadOptions(columns={"5": "text"}), ReadOptions())
    ]
    assert [each.rows for each in found] == [1, 2, 1, 1]
    assert table(found[1]).to_pydict() == {"0": [1, 2], "1": [5, 6]}
    assert table(found[2]).to_pydict() == {"1": [2], "5": ["6"]}
    assert table(found[0]).equals(table(found[3]))


def test_a_damaged_cache_is_made_again(path: Path) -> None:
    resolve("table", {}, source=path)
    for suffix, left in (
        *((".arrow", b"ARROW1"), (".arrow", None)),
        *((".facts", b""), (".facts", b"[1]"), (".facts", b'{"rows": 9}')),
    ):
        (kept,) = cache.default_folder().glob(f"*{suffix}")
        if left is None:
            kept.unlink()
        else:
            kept.write_bytes(left)
        assert table(resolve("table", {}, source=path)).equals(numbered(ROWS)), (suffix, left)


def test_a_sample_that_the_cache_loses_after_the_plan_is_taken_again(path: Path) -> None:
    dataset = resolve("table", {}, source=path)
    (kept,) = cache.default_folder().glob("*.arrow")
    kept.unlink()
    assert table(dataset).equals(numbered(ROWS))


def test_a_table_that_changes_while_it_is_read_is_refused(path: Path) -> None:
    def change(rows: int) -> None:
        os.utime(path, ns=(1, 1))

    refused("table", path, "changed while it was read", on_rows=change)


@pytest.mark.usefixtures("own_process")
def test_the_users_file_is_only_read(path: Path) -> None:
    path.chmod(0o444)
    before = path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())
    resolve("table", {}, source=path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before[:2]
    assert sorted(path.parent.iterdir()) == sorted([*before[2], cache.default_folder()])


def test_progress_is_reported_in_rows(tmp_path: Path) -> None:
    heard: list[int] = []
    resolve("table", {}, source=write(numbered(500), tmp_path / "table.csv"), on_rows=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 500


def test_what_is_to_be_said_is_kept_with_the_sample(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,2\nx,2\n")
    first = resolve("table", {}, source=path)
    (remark,) = first.remarks
    assert "(line 4: 'x')" in remark
    assert resolve("table", {}, source=path).remarks == first.remarks
    assert resolve("table", {"share": "0.5"}, source=path).remarks == first.remarks


def test_nested_columns_are_kept(tmp_path: Path) -> None:
    values = [{"x": [1, 2], "y": {"z": "one"}, "w": [("k", 1)]}, {"x": None, "y": None, "w": None}] * 40
    kinds = pa.schema(
        [("x", pa.list_(pa.int64())), ("y", pa.struct([("z", pa.string())])), ("w", pa.map_(pa.string(), pa.int64()))]
    )
    made = pa.Table.from_pylist(values, schema=kinds)
    pq.write_table(made, tmp_path / "table.parquet", row_group_size=7)
    assert table(resolve("table", {}, source=tmp_path / "table.parquet")).equals(made)
    part = resolve("table", {"share": "0.3"}, rows=32, source=tmp_path / "table.parquet")
    assert table(part).to_pylist()[:2] == values[:2] or table(part).num_rows == 16
    assert table(part).equals(table(part))


def test_without_a_path_it_says_what_is_taken() -> None:
    refused("table", None, r"table needs data\.\n  A table is read from CSV")


# --- the process ----------------------------------------------------------------------------------------------------


def replace_worker(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Run this code instead of the real process; `where` sets the position, and `frame` answers."""
    prepared = """
        import json, mmap, os, signal, struct, sys, time
        page = mmap.mmap(int(sys.argv[3]), mmap.PAGESIZE)
        def where(text): page[: len(text) + 1] = text.encode() + b"\\0"
        def frame(kind, content): os.write(1, struct.pack("<cQ", kind, len(content)) + content)
        facts = {"input_rows": 2, "rows": 2, "blocks": 1, "remarks": []}
        def answer(kind, **changed): frame(kind, json.dumps({**facts, **changed}).encode())
    """
    whole = textwrap.dedent(prepared) + textwrap.dedent(code)
    monkeypatch.setattr(table_worker, "COMMAND", (sys.executable, "-P", "-c", whole))


def test_a_crash_of_the_parser_costs_two_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, f"where('{path}, row group 3'); os.kill(os.getpid(), {int(signal.SIGSEGV)})")
    said = refused("table", path, "ended with a crash of the decoder")
    assert said.startswith(
        f"{path}, row group 3: the reading process ended with a crash of the decoder (Segmentation fault)."
    )


def test_no_answer_in_time_ends_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_worker, "STALL_S", 0.3)
    replace_worker(monkeypatch, "time.sleep(600)")
    refused("table", path, "sent nothing for 0.3 s")


SCHEMA = pa.schema([("a", pa.int64())]).serialize().to_pybytes()
BATCH = pa.record_batch({"a": [1, 2]}).serialize().to_pybytes()
TEXT = pa.schema([("a", pa.string())]).serialize().to_pybytes()
UNSOUND = pa.record_batch(
    [
        pa.Array.from_buffers(
            pa.string(), 2, [None, pa.py_buffer(struct.pack("<3i", 0, 1 << 30, 3)), pa.py_buffer(b"abc")]
        )
    ],
    names=["a"],
)
VIEWS = pa.schema([("a", pa.string_view())]).serialize().to_pybytes()


@pytest.mark.parametrize(
    "code",
    [
        "frame(b'x', b'')",
        "frame(b'p', b'many')",
        "frame(b'n', b'{}')",
        "answer(b'n', rows=3)",
        "answer(b'n', rows=-1)",
        "answer(b'n', rows=True)",
        "answer(b'n', remarks=[7])",
        "answer(b'n'); frame(b's', b'no schema')",
        f"answer(b'n'); frame(b's', {VIEWS!r})",
        f"answer(b'n'); frame(b's', {SCHEMA!r}); frame(b'b', b'no batch')",
        f"answer(b'n'); frame(b's', {TEXT!r}); frame(b'b', {UNSOUND.serialize().to_pybytes()!r})",
        "os.write(1, struct.pack('<cQ', b'n', 1 << 60))",
    ],
)
def test_answers_that_make_no_sense_are_refused(code: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, f"{code}; time.sleep(60)")
    refused("table", path, "gave an invalid answer")


def test_fewer_rows_than_said_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_worker(monkeypatch, f"answer(b'n', input_rows=9, rows=9); frame(b's', {SCHEMA!r}); frame(b'e', b'')")
    refused("table", path, "0 rows of the sample were read, but 9 were expected")


def test_remarks_cannot_write_to_the_terminal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "answer(b'n', remarks=['a\\x1b[2Jb\\nc\\x07'])"
    replace_worker(monkeypatch, f"{said}; frame(b's', {SCHEMA!r}); frame(b'b', {BATCH!r}); frame(b'e', b'')")
    assert resolve("table", {}, source=path).remarks == ("a\\x1b[2Jb\nc\\x07",)


@pytest.mark.usefixtures("own_process")
def test_a_sample_that_needs_too_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some kilobytes whose 64 rows are the same 32 MB."""
    monkeypatch.setattr(table_worker, "MEMORY_BYTES", 600 << 20)
    large = pa.DictionaryArray.from_arrays(pa.array([0] * 64, pa.int32()), pa.array([bytes(32 << 20)]))
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"a": large}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1 << 20
    said = refused("table", path, "bomb.parquet")
    assert "needs more memory" in said or "a crash of the decoder" in said


def test_the_process_may_write_nothing(tmp_path: Path) -> None:
    import subprocess

    code = f"""
from data_generator.imported.confinement import forbid_writing
here = forbid_writing()
for attempt in (lambda: open({str(tmp_path / "new")!r}, "w"), lambda: __import__("os").mkdir({str(tmp_path / "d")!r})):
    try:
        attempt()
    except PermissionError:
        print("forbidden")
print(here)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if done.stdout.endswith("False\n"):
        pytest.skip("this kernel has no Landlock")
    assert done.stdout.splitlines() == ["forbidden", "forbidden", "True"]
    assert list(tmp_path.iterdir()) == []
