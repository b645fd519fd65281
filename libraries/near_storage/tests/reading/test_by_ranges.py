"""Direct byte ranges (V2) on the node: exactly the requested chunks, in batches of limited size."""

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading import by_ranges, digests
from libraries.near_storage.tests.reading.stored import stored

ROWS = 1000


def table(rows=ROWS):
    numbers = np.random.default_rng(1).integers(0, 50, rows)
    return pa.table(
        {
            "number": np.arange(rows),
            "word": pa.array([f"word {number}" for number in numbers]),
            "nested": pa.array([{"x": int(number), "y": [int(number)] * 2} for number in numbers]),
            "real": np.random.default_rng(2).random(rows),
        }
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(table(), path, row_group_size=300)
    return path


def places(path):
    """Return (row group, leaf) -> position of the chunk in pyarrow's metadata."""
    metadata = pq.read_metadata(path)
    found = {}
    for group in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            column = metadata.row_group(group).column(leaf)
            starts = [column.data_page_offset, column.dictionary_page_offset]
            found[group, leaf] = min(start for start in starts if start), column.total_compressed_size
    return found


def rows(batches):
    return [part for batch in batches for part in by_ranges.each(batch)]


def test_parts_are_the_chunks_from_their_dictionary_pages_on(path):
    content = path.read_bytes()
    expected = places(path)
    with stored(path) as file:
        assert pq.read_metadata(path).row_group(0).column(1).dictionary_page_offset > 0
        for columns in (["number", "word", "nested", "real"], ["word"], ["real", "nested"]):
            groups = [0, 2, 3]
            parts = rows(file.parts(groups, columns))
            assert [(part.row_group, part.column) for part in parts] == [
                (group, leaf) for group in groups for leaf in file.leaves(columns)
            ]
            for part in parts:
                start, length = expected[part.row_group, part.column]
                assert (part.offset, bytes(part.data)) == (start, content[start : start + length])
                assert part.digest == xxhash.xxh3_64_intdigest(part.data)


def test_only_the_bytes_asked_for_are_read(path, monkeypatch):
    read = []
    real = os.preadv
    with stored(path) as file:
        monkeypatch.setattr(os, "preadv", lambda *call: read.append(real(*call)) or read[-1])
        parts = rows(file.parts([1, 3], ["real", "number"]))
    lengths = [places(path)[group, leaf][1] for group in (1, 3) for leaf in (0, 4)]
    assert [len(part.data) for part in parts] == lengths
    assert sum(read) == sum(lengths)


def test_whole_row_groups_are_one_call(path, monkeypatch):
    calls = []
    real = os.preadv
    with stored(path) as file:
        monkeypatch.setattr(os, "preadv", lambda *call: calls.append(call[2]) or real(*call))
        rows(file.parts([1, 2, 3], file.footer.schema.names))
    assert calls == [places(path)[1, 0][0]]


@pytest.mark.parametrize("batch_bytes", [13, 100, 1000, 5000, 1 << 20])
def test_batches_hold_at_most_what_is_allowed(path, batch_bytes):
    with stored(path) as file:
        names = file.footer.schema.names
        whole = rows(file.parts(file.groups, names))
        batches = list(file.parts(file.groups, names, batch_bytes=batch_bytes))
    assert all(sum(len(part.data) for part in by_ranges.each(batch)) <= batch_bytes for batch in batches)
    assert all(batch.num_rows for batch in batches)
    pieces = {}
    for part in rows(batches):
        start, data, digest = pieces.setdefault((part.row_group, part.column), (part.offset, b"", part.digest))
        assert (part.offset, part.digest) == (start + len(data), digest)
        pieces[part.row_group, part.column] = start, data + part.data, digest
    assert list(pieces.values()) == [(part.offset, bytes(part.data), part.digest) for part in whole]


def test_a_batch_is_filled_to_its_bound(path):
    with stored(path) as file:
        whole = rows(file.parts([0, 1], ["real"]))
        together = sum(len(part.data) for part in whole)
        counts = {
            bound: [batch.num_rows for batch in file.parts([0, 1], ["real"], batch_bytes=bound)]
            for bound in (together, together - 1)
        }
    assert counts == {together: [2], together - 1: [1, 1]}


def test_batches_do_not_share_memory(path):
    with stored(path) as file:
        batches = list(file.parts(file.groups, ["number"], batch_bytes=3000))
        again = rows(file.parts(file.groups, ["number"], batch_bytes=3000))
    assert len(batches) > 1
    assert rows(batches) == again


def test_a_batch_survives_slicing_and_the_wire(path):
    with stored(path) as file:
        (batch,) = file.parts(file.groups, ["number", "word"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, by_ranges.PARTS) as stream:
        stream.write_batch(batch.slice(3, 4))
        stream.write_batch(batch.slice(0, 0))
    came = rows(pa.ipc.open_stream(sink.getvalue()))
    assert came == rows([batch])[3:7]
    assert rows([batch.slice(3, 4)]) == came


def test_nothing_asked_for_is_nothing_sent(path):
    with stored(path) as file:
        assert list(file.parts([], ["number"])) == []
        assert list(by_ranges.parts(file.fd, file.compact, file.digests, [0, 1], [])) == []


def test_chunks_that_lie_in_another_order_come_in_file_order(path):
    """Parquet does not require the chunks of a row group to be in the order of its columns."""
    with stored(path) as file:
        order = [3, 0, 4, 1, 2]
        columns = tuple(file.compact.columns[number] for number in order)
        shuffled = replace(file.compact, columns=columns, places=file.compact.places[order])
        parts = rows(by_ranges.parts(file.fd, shuffled, file.digests[:, order], [1, 2], range(5)))
        assert [part.offset for part in parts] == sorted(part.offset for part in parts)
        assert [part.column for part in parts] == [order.index(number) for number in range(5)] * 2
        assert all(part.digest == xxhash.xxh3_64_intdigest(part.data) for part in parts)


def test_a_file_that_was_cut_is_damaged(path, tmp_path):
    with stored(path) as file:
        os.truncate(path, 5000)
        with pytest.raises(DamagedError, match="ends at byte 5000"):
            rows(file.parts(file.groups, ["number"]))


@pytest.mark.parametrize("batch_bytes", [64, 4096, 1 << 20])
def test_digests_of_a_file_are_those_of_its_chunks(path, batch_bytes):
    content = path.read_bytes()
    with stored(path) as file:
        found = digests.of_file(file.fd, file.compact, batch_bytes)
    for place, (start, length) in places(path).items():
        assert int(found[place]) == digests.chunk_digest(content[start : start + length])
    assert found.dtype == np.uint64
