"""The client of V2: row groups from parts, and every way in which parts may be wrong."""

import io
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from libraries.near_storage.errors import DamagedError, RequestError
from libraries.near_storage.reading import by_ranges, byte_range_access
from libraries.near_storage.tests.reading.stored import Stored, stored

ROWS = 1000
COLUMNS = ["number", "word", "nested", "real"]


def table(rows=ROWS):
    numbers = np.random.default_rng(1).integers(0, 50, rows)
    return pa.table(
        {
            "number": np.arange(rows),
            "word": pa.array([f"word {number}" for number in numbers]),
            "nested": pa.array([{"x": int(number), "y": [int(number)] * 2} for number in numbers]),
            "real": np.random.default_rng(2).random(rows),
            "nothing": pa.nulls(rows),
        }
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(table(), path, row_group_size=300)
    return path


def parts_of(file: Stored, groups, columns, **options):
    """Return parts as rows that a test may change, to be made into batches again."""
    return [part._replace(data=bytes(part.data)) for batch in file.parts(groups, columns, **options)
            for part in by_ranges.each(batch)]  # fmt: skip


def batches_of(parts, at_once=3):
    for start in range(0, len(parts), at_once):
        columns = zip(*parts[start : start + at_once], strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, by_ranges.PARTS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=by_ranges.PARTS)


def rebuilt(file: Stored, parts, groups, columns, **options):
    found = byte_range_access.batches(file.footer, parts, groups, columns, **options)
    return pa.Table.from_batches(found, pa.schema([file.footer.schema.field(name) for name in columns]))


@pytest.mark.parametrize("columns", [[*COLUMNS, "nothing"], ["real"], ["nested"], ["word", "real"], ["nothing"]])
@pytest.mark.parametrize("groups", [[0, 1, 2, 3], [1, 3], [2]])
@pytest.mark.parametrize(("batch_bytes", "batch_rows"), [(1 << 20, 65_536), (500, 100), (5000, 450)])
def test_the_kept_row_groups_come_back(path, columns, groups, batch_bytes, batch_rows):
    with stored(path) as file:
        parts = file.parts(groups, columns, batch_bytes=batch_bytes)
        found = list(
            byte_range_access.batches(file.footer, parts, groups, columns, file.digests, batch_rows, 10 * batch_bytes)
        )
    expected = pa.concat_tables([table().slice(300 * group, 300) for group in groups]).select(columns)
    assert pa.Table.from_batches(found).equals(expected)
    assert max(batch.num_rows for batch in found) <= batch_rows


def test_rows_without_columns_are_counted(path):
    with stored(path) as file:
        found = list(byte_range_access.batches(file.footer, file.parts([0, 3], []), [0, 3], []))
    assert sum(batch.num_rows for batch in found) == 400


def test_empty_row_groups(tmp_path):
    path = tmp_path / "empty.parquet"
    with pq.ParquetWriter(path, table().schema) as writer:
        for rows in (0, 5, 0):
            writer.write_table(table().slice(0, rows))
    with stored(path) as file:
        assert file.groups == [1]
        assert rebuilt(file, file.parts([0, 1, 2], COLUMNS), [0, 1, 2], COLUMNS).equals(
            table().slice(0, 5).select(COLUMNS)
        )


def test_files_without_rows(tmp_path):
    path = tmp_path / "empty.parquet"
    pq.write_table(table().slice(0, 0), path)
    with stored(path) as file:
        assert file.groups == []
        assert rebuilt(file, file.parts([], COLUMNS), [], COLUMNS).num_rows == 0


@pytest.mark.parametrize("batch_bytes", [1000, 1 << 20])
@pytest.mark.parametrize("trusted", [False, True])
def test_every_flipped_bit_is_refused_before_anything_is_decoded(path, batch_bytes, trusted, monkeypatch):
    with stored(path) as file:
        parts = parts_of(file, [1], COLUMNS, batch_bytes=batch_bytes)
        decoded = []
        monkeypatch.setattr(byte_range_access.Decoder, "batches", lambda *call: decoded.append(call) or iter(()))
        for index, part in enumerate(parts):
            for place in (0, len(part.data) // 2, len(part.data) - 1):
                data = bytearray(part.data)
                data[place] ^= 1 << place % 8
                broken = [*parts[:index], part._replace(data=bytes(data)), *parts[index + 1 :]]
                with pytest.raises(DamagedError, match=r"row group 1, column \d, byte \d+: bytes changed"):
                    rebuilt(file, batches_of(broken), [1], COLUMNS, digests=file.digests if trusted else None)
        assert not decoded


@pytest.mark.parametrize("batch_bytes", [2000, 1 << 20])
def test_missing_doubled_and_foreign_parts_are_refused(path, batch_bytes):
    groups = [0, 2]
    with stored(path) as file:
        parts = parts_of(file, groups, COLUMNS, batch_bytes=batch_bytes)
        assert rebuilt(file, batches_of(parts), groups, COLUMNS).num_rows == 600
        (foreign,) = parts_of(file, [1], ["number"])
        (unasked,) = parts_of(file, [2], ["nothing"])
        for index, part in enumerate(parts):
            shifted = part._replace(offset=part.offset + 1)
            shorter, longer = part._replace(data=part.data[:-1]), part._replace(data=part.data + b"\0")
            before, after = parts[:index], parts[index + 1 :]
            for broken in (
                [*before, *after],
                [*before, part, part, *after],
                [*before, foreign, part, *after],
                [*before, part, unasked, *after],
                *([*before, other, *after] for other in (shifted, shorter, longer)),
            ):
                with pytest.raises(DamagedError):
                    rebuilt(file, batches_of(broken), groups, COLUMNS)


def test_a_chunk_that_grew_is_refused(path):
    """Even with a matching digest: positions and lengths come from the footer, not from the node."""
    with stored(path) as file:
        (part,) = parts_of(file, [1], ["real"])
        data = part.data + b"more"
        grown = part._replace(data=data, digest=xxhash.xxh3_64_intdigest(data))
        with pytest.raises(DamagedError, match="for a chunk of"):
            rebuilt(file, batches_of([grown]), [1], ["real"])


def test_a_stream_that_ends_early_is_told(path):
    with stored(path) as file:
        parts = parts_of(file, [0, 1], ["number", "real"])
        with pytest.raises(DamagedError, match="1 chunks of row groups 0 to 1"):
            rebuilt(file, batches_of(parts[:-1]), [0, 1], ["number", "real"])


def test_row_groups_in_another_order_are_refused(path):
    with stored(path) as file, pytest.raises(DamagedError, match="row group 1, column 0"):
        rebuilt(file, file.parts([1, 0], ["number"]), [0, 1], ["number"], batch_rows=300)


def test_a_part_under_another_number_is_refused(path):
    """Two chunks of one type and length with swapped numbers: bytes and digests are right, positions are not."""
    with stored(path) as file:
        one, other = parts_of(file, [1, 2], ["real"])
        exchanged = [one._replace(row_group=2), other._replace(row_group=1)]
        with pytest.raises(DamagedError):
            rebuilt(file, batches_of(exchanged), [1, 2], ["real"])
        moved = [other._replace(row_group=1, offset=one.offset), one._replace(row_group=2, offset=other.offset)]
        with pytest.raises(DamagedError, match="digest"):
            rebuilt(file, batches_of(moved), [1, 2], ["real"], digests=file.digests)


@pytest.mark.parametrize("column", range(5))
def test_broken_batches_of_parts_are_refused(path, column):
    with stored(path) as file:
        (batch,) = file.parts([0], ["number", "real"])
        arrays = list(batch.columns)
        arrays[column] = pa.array([arrays[column][0].as_py(), None], arrays[column].type)
        nulls = pa.RecordBatch.from_arrays(
            arrays, schema=pa.schema([field.with_nullable(True) for field in batch.schema])
        )
        for broken in (batch.drop_columns([batch.schema.names[column]]), nulls):
            with pytest.raises(DamagedError, match="parts"):
                rebuilt(file, [broken], [0], ["number", "real"])
        sneaky = pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
        with pytest.raises(DamagedError):
            rebuilt(file, [sneaky], [0], ["number", "real"])


def test_unknown_columns_are_refused(path):
    with stored(path) as file, pytest.raises(RequestError, match="no column 'x'"):
        next(byte_range_access.batches(file.footer, [], [0], ["x"]))


def test_what_lies_outside_of_the_kept_chunks_is_never_zeros(path):
    """pyarrow is made to request another chunk than those received, as a wrong footer would."""
    with stored(path) as file:
        received = byte_range_access.Received()
        received.expect(file.footer, [1], file.leaves(["number"]))
        for part in parts_of(file, [1], ["number"]):
            received.add(part)
        decoder = byte_range_access.Decoder(file.footer, received.chunk)
        for groups, leaves in (([0], [0]), ([1], [1]), ([1], [0, 1]), ([1, 2], [0])):
            with pytest.raises(DamagedError, match="not a requested chunk"):
                list(byte_range_access.Decoder(file.footer, received.chunk).batches(groups, leaves))
            received.expect(file.footer, [1], file.leaves(["number"]))
            for part in parts_of(file, [1], ["number"]):
                received.add(part)
        assert sum(batch.num_rows for batch in decoder.batches([1], [0])) == 300


def test_a_chunk_is_given_once_and_not_after_its_row_group(path):
    with stored(path) as file:
        received = byte_range_access.Received()
        for group, given in ((1, 1), (1, 0), (2, 0)):
            received.expect(file.footer, [1], file.leaves(["number"]))
            (part,) = parts_of(file, [1], ["number"])
            received.add(part)
            place = part.offset, len(part.data)
            for _ in range(given):
                assert bytes(received.chunk(*place)) == part.data
            if group != 1:
                received.expect(file.footer, [group], file.leaves(["number"]))
            if given or group != 1:
                with pytest.raises(DamagedError, match="not a requested chunk"):
                    received.chunk(*place)


@pytest.mark.parametrize(("dictionary", "start"), [(None, 100), (0, 100), (50, 50), (200, 100)])
def test_a_chunk_begins_at_its_dictionary_only_if_that_comes_first(dictionary, start):
    """Without a dictionary, some writers give 0 or an offset after the data."""
    column = SimpleNamespace(data_page_offset=100, dictionary_page_offset=dictionary, total_compressed_size=4)
    group = SimpleNamespace(column=lambda leaf: column)
    received = byte_range_access.Received()
    received.expect(SimpleNamespace(metadata=SimpleNamespace(row_group=lambda number: group)), [0], [0])
    received.add(by_ranges.FilePart(0, 0, start, xxhash.xxh3_64_intdigest(b"data"), memoryview(b"data")))
    assert received.missing == 0


def test_pages_that_do_not_decode_are_damaged(tmp_path):
    """The digest is right, because the file was broken before it was stored."""
    file = io.BytesIO()
    pq.write_table(table().select(["real"]), file)
    content = bytearray(file.getvalue())
    content[4:100] = bytes(96)
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    with stored(path) as held, pytest.raises(DamagedError, match="row group 0"):
        rebuilt(held, held.parts([0], ["real"]), [0], ["real"])


def test_memory_is_that_of_one_row_group(tmp_path):
    """Chunks of a group are released once it is decoded: the stream is never held completely."""
    path = tmp_path / "long.parquet"
    numbers = np.random.default_rng(1).integers(0, 2**60, 400_000)
    pq.write_table(pa.table({"a": numbers, "b": numbers}), path, row_group_size=10_000, compression="none")
    before = pa.total_allocated_bytes()
    held = []
    with stored(path) as file:
        parts = file.parts(file.groups, ["a", "b"], batch_bytes=1 << 16)
        for batch in byte_range_access.batches(file.footer, parts, file.groups, ["a", "b"], batch_rows=10_000):
            del batch
            held.append(pa.total_allocated_bytes() - before)
    assert len(held) == 40
    assert max(held) < 1_500_000
    assert path.stat().st_size > 6_000_000
