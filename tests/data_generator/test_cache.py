"""The cache: its files are complete, unchanged, and read into private memory."""

import json
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from data_generator import cache
from data_generator.cache import default_folder, prepare, read_table
from data_generator.catalogue import resolve
from data_generator.digest import TableDigest
from data_generator.errors import DataError


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


def test_made_once_then_found(counted, tmp_path: Path) -> None:
    dataset, made = counted()
    first = prepare(dataset, tmp_path / "kept")
    second = prepare(dataset, tmp_path / "kept")
    assert made == [1000]
    assert first == second
    assert first.size_bytes == first.path.stat().st_size
    assert (first.rows, first.schema) == (1000, dataset.schema)
    assert files(tmp_path / "kept") == [".arrow", ".json"]
    assert read_table(first.path).equals(pa.Table.from_batches(dataset.batches()))


def test_progress_is_reported_in_rows(counted, tmp_path: Path) -> None:
    heard: list[int] = []
    prepare(counted()[0], tmp_path, on_rows=heard.append)
    assert heard == [300, 600, 900, 1000]


def test_another_version_row_count_or_name_is_another_file(counted, tmp_path: Path) -> None:
    paths = {prepare(counted(*given)[0], tmp_path).path for given in [(1000,), (900,), (1000, 300, 2)]}
    assert len(paths) == 3


def test_another_source_is_another_file(counted, tmp_path: Path) -> None:
    dataset, made = counted()
    sources = ({}, {"path": "a", "mtime_ns": "1"}, {"path": "a", "mtime_ns": "2"}, {"mtime_ns": "1", "path": "a"})
    paths = [prepare(replace(dataset, source=source), tmp_path).path for source in sources]
    assert len(set(paths)) == len(made) == 3
    assert paths[1] == paths[3]


def test_a_file_next_to_it_names_its_origin(counted, tmp_path: Path) -> None:
    stored = prepare(counted()[0], tmp_path)
    about = json.loads(stored.path.with_suffix(".json").read_text())
    assert about == {
        "dataset": "counted",
        "rows": 1000,
        "version": 1,
        "source": {},
        "digest": stored.digest,
        "pyarrow": pa.__version__,
    }


def flip_a_value(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b"text 500")] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def forget(path: Path) -> None:
    path.with_suffix(".json").unlink()


def spoil_the_note(path: Path) -> None:
    path.with_suffix(".json").write_text("{")


def lie_about_the_digest(path: Path) -> None:
    path.with_suffix(".json").write_text('{"digest": "00"}')


def other_schema(path: Path) -> None:
    with pa.ipc.new_file(str(path), pa.schema([("x", pa.int8())])) as writer:
        writer.write_batch(pa.record_batch({"x": pa.array([1], pa.int8())}))


@pytest.mark.parametrize(
    "damage", [flip_a_value, cut, empty, forget, spoil_the_note, lie_about_the_digest, other_schema, Path.unlink]
)
def test_a_broken_file_is_noticed_and_made_again(damage, counted, tmp_path: Path) -> None:
    dataset, made = counted()
    stored = prepare(dataset, tmp_path)
    damage(stored.path)
    again = prepare(dataset, tmp_path)
    assert made == [1000, 1000]
    assert again == stored
    assert read_table(again.path).equals(pa.Table.from_batches(dataset.batches()))


def test_an_interrupted_making_leaves_nothing(counted, tmp_path: Path) -> None:
    def interrupt(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(counted()[0], tmp_path, on_rows=interrupt)
    assert files(tmp_path) == []


def test_nothing_is_seen_before_it_is_whole(counted, tmp_path: Path) -> None:
    seen: list[list[str]] = []
    prepare(counted()[0], tmp_path, on_rows=lambda rows: seen.append(files(tmp_path)))
    assert seen == [[".partial"]] * 4


def test_what_a_killed_run_left_is_removed_but_not_what_a_live_one_writes(counted, tmp_path: Path) -> None:
    abandoned, young = tmp_path / "a.arrow.1.partial", tmp_path / "b.arrow.2.partial"
    abandoned.write_text("half")
    young.write_text("half")
    long_ago = time.time() - 3600
    os.utime(abandoned, (long_ago, long_ago))

    def while_writing(rows: int) -> None:
        for partial in tmp_path.glob("counted*.partial"):
            os.utime(partial, (long_ago, long_ago))
        cache.remove_abandoned(tmp_path)

    prepare(counted()[0], tmp_path, on_rows=while_writing)
    assert files(tmp_path) == [".arrow", ".json", ".partial"]
    assert young.exists()


def test_a_full_disk_is_said_and_leaves_nothing(counted, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        with pytest.raises(DataError, match=r"cannot be stored in .*the disk is full\.\n.*FORMAT_BENCH_CACHE"):
            prepare(counted(200_000, 100_000)[0], small)
        assert files(small) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_limit_on_file_size_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    code = """
        import resource, signal, sys
        from pathlib import Path
        from data_generator.cache import prepare
        from data_generator.catalogue import resolve
        from data_generator.errors import DataError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            prepare(resolve("eq", {}, rows=50_000), Path(sys.argv[1]))
        except DataError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "kept")], capture_output=True, text=True
    )
    assert "largest size allowed" in done.stdout, done.stderr
    assert files(tmp_path / "kept") == []


def test_a_folder_that_cannot_be_made_is_said(counted, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be stored in"):
        prepare(counted()[0], tmp_path / "file" / "kept")


def test_two_runs_at_the_same_time_end_with_one_good_file(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from data_generator.cache import prepare; "
        "from data_generator.catalogue import resolve; "
        "print(prepare(resolve('eq', {}, rows=200_000), Path(sys.argv[1])).digest)"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    digests = {run.communicate(timeout=60)[0].strip() for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    assert files(tmp_path) == [".arrow", ".json"]
    assert digests == {prepare(resolve("eq", {}, rows=200_000), tmp_path).digest}


def test_the_folder_is_the_users_cache_or_the_one_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert default_folder() == tmp_path / "cache"
    monkeypatch.delenv("FORMAT_BENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "format-bench" / "datasets"


@pytest.mark.parametrize("rows", [None, 0, 1, 299, 300, 301, 999, 1000, 5000])
def test_the_first_rows_and_the_columns_asked_for_are_read(rows: int | None, counted, tmp_path: Path) -> None:
    dataset, _ = counted()
    whole = pa.Table.from_batches(dataset.batches())
    got = read_table(prepare(dataset, tmp_path).path, rows, ["text", "number"])
    expected = whole.select(["text", "number"]).slice(0, rows)
    assert got.equals(expected)
    got.validate(full=True)
    sizes = [len(chunk) for chunk in expected["text"].chunks if len(chunk)]
    assert [len(chunk) for chunk in got["text"].chunks] == sizes


def mapped_ranges(path: Path) -> list[tuple[int, int]]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    ends = [line.split()[0].split("-") for line in lines if line.endswith(str(path))]
    return [(int(low, 16), int(high, 16)) for low, high in ends]


def file_backed() -> list[tuple[int, int]]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    ends = [line.split()[0].split("-") for line in lines if len(line.split()) > 5 and line.split()[5].startswith("/")]
    return [(int(low, 16), int(high, 16)) for low, high in ends]


@pytest.mark.parametrize("rows", [None, 150_000, 100])
@pytest.mark.rule(3)
def test_a_table_is_read_into_private_memory(rows: int | None, counted, tmp_path: Path) -> None:
    stored = prepare(counted(200_000, 100_000)[0], tmp_path)
    table = read_table(stored.path, rows)
    assert mapped_ranges(stored.path) == []
    ranges = file_backed()
    buffers = [b for column in table.columns for chunk in column.chunks for b in chunk.buffers() if b is not None]
    assert len(buffers) >= 5
    for buffer in buffers:
        assert not any(low <= buffer.address < high for low, high in ranges)


def test_no_more_rows_and_columns_than_asked_for_are_ever_in_memory(tmp_path: Path) -> None:
    stored = prepare(resolve("eq", {}, rows=1_000_000), tmp_path)
    code = (
        "import sys, pyarrow as pa; from pathlib import Path; from data_generator.cache import read_table; "
        "table = read_table(Path(sys.argv[1]), int(sys.argv[2]), ['int_1', 'str_2']); "
        "print(pa.default_memory_pool().max_memory() / table.nbytes)"
    )
    for rows in ("10000", "1000000"):
        command = [sys.executable, "-c", code, str(stored.path), rows]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert float(done.stdout) < 4, rows


def digest(*arrays: pa.Array, name: str = "a", nullable: bool = True) -> str:
    schema = pa.schema([pa.field(name, arrays[0].type, nullable)])
    made = TableDigest(schema)
    for array in arrays:
        made.update(pa.RecordBatch.from_arrays([array], schema=schema))
    return made.hexdigest()


def test_the_digest_is_of_the_values_not_of_their_place() -> None:
    for values in ([1, None, 3, 4, 5, 6, 7, 8, 9, 10], ["a", None, "ccc", ""] * 3, [True, None, False] * 5):
        array = pa.array(values)
        longer = pa.concat_arrays([array.slice(0, 3), array])
        assert digest(longer.slice(3)) == digest(array)


def test_the_digest_sees_every_difference() -> None:
    base = pa.array([1, 2, 3, 4])
    texts = pa.array(["ab", "c"])
    seen = [
        digest(base),
        digest(base, name="b"),
        digest(base, nullable=False),
        digest(pa.array([1, 2, 4, 3])),
        digest(pa.array([1, 2, 3])),
        digest(pa.array([1, 2, 3, None])),
        digest(pa.array([1, 2, 3, 0])),
        digest(base.cast(pa.int32())),
        digest(base.slice(0, 2), base.slice(2)),
        digest(texts),
        digest(pa.array(["a", "bc"])),
        digest(texts.cast(pa.large_string())),
        digest(pa.array([True, False])),
        digest(pa.array([True, True])),
    ]
    assert len(set(seen)) == len(seen)


NESTED = [
    pa.array([[1, 2], None, [], [3], [4, None]], pa.list_(pa.int8())),
    pa.array([{"x": 1}, None, {"x": None}, {"x": 4}, {"x": 5}], pa.struct([("x", pa.int8())])),
    pa.array([[("k", 1)], None, [], [("l", 2), ("m", None)], [("n", 3)]], pa.map_(pa.string(), pa.int8())),
    pa.array([[{"x": ["a"]}], [], None, [{"x": None}, {"x": ["b", "c"]}], []]),
]


@pytest.mark.parametrize("array", NESTED, ids=[str(array.type) for array in NESTED])
def test_the_digest_of_nested_columns_sees_values_and_no_layout(array: pa.Array) -> None:
    part = array.slice(3)
    assert digest(part) == digest(pa.array(part.to_pylist(), array.type))
    seen = [digest(array.slice(place, 1)) for place in range(5)]
    assert len(set(seen)) == len({str(value) for value in array.to_pylist()})


def test_columns_without_a_defined_digest_are_refused() -> None:
    with pytest.raises(TypeError, match="No digest is defined for the type list_view"):
        TableDigest(pa.schema([("a", pa.list_view(pa.int8()))]))


def test_values_survive_numpy(counted, tmp_path: Path) -> None:
    flags = read_table(prepare(counted()[0], tmp_path).path)["flag"].to_numpy()
    assert np.array_equal(np.flatnonzero(flags), np.arange(0, 1000, 3))
