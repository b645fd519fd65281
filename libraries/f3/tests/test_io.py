"""Reading bytes of files: neighbouring spans share a read.

Overlapping spans and spans outside the file are rejected.
"""

import io
import os
import random
import struct

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from libraries.f3.container import io as f3_io
from libraries.f3.container.compression import compress, decompress
from libraries.f3.decoders import native
from libraries.f3.errors import F3Error

DATA = bytes(range(256)) * 1000


class Reads(io.BytesIO):
    """A file that records its reads."""

    def __init__(self, data):
        super().__init__(data)
        self.reads = []

    def read(self, size=-1):
        self.reads.append((self.tell(), size))
        return super().read(size)


class Dripping(io.BytesIO):
    """A file that returns at most seven bytes per read.

    Sockets and pipes may also return fewer bytes than requested.
    """

    def read(self, size=-1):
        return super().read(min(size, 7))


@pytest.mark.parametrize(
    ("spans", "reads"),
    [
        ([(0, 10), (10, 20)], [(0, 20)]),
        ([(10, 20), (0, 10), (10, 20)], [(0, 20)]),
        ([(0, 10), (1000, 1010)], [(0, 1010)]),
        ([(0, 10), (200_000, 200_010)], [(0, 10), (200_000, 10)]),
        ([], []),
    ],
)
def test_spans_next_to_each_other_are_one_read(spans, reads):
    file = Reads(DATA)
    found = f3_io.read_spans(f3_io.open_source(file), spans)
    assert {span: bytes(data) for span, data in found.items()} == {each: DATA[slice(*each)] for each in spans}
    assert file.reads == reads


def address(view):
    return np.frombuffer(view, np.uint8).ctypes.data


@pytest.mark.parametrize(
    "hold", [memoryview, pa.py_buffer, lambda view: np.frombuffer(view, np.uint8), lambda view: view[5:9]]
)
def test_a_buffers_memory_is_reused_unless_it_is_referenced(hold):
    buffer = f3_io.ReadBuffer()
    buffer.begin(1000)
    first = address(buffer.taken(600))
    assert address(buffer.taken(400)) == first + 600
    buffer.begin(500)
    assert address(buffer.taken(500)) == first
    held = hold(buffer.taken(10))
    buffer.begin(500)
    other = buffer.taken(500)
    other[:] = bytes(500)
    assert not first <= address(other) < first + 1000
    del held


def test_a_buffer_grows_and_larger_reads_get_other_memory():
    buffer = f3_io.ReadBuffer()
    buffer.begin(1000)
    assert len(buffer.taken(100 << 20)) == 100 << 20
    buffer.begin(50 << 20)
    first = address(buffer.taken(25 << 20))
    assert first % f3_io.LARGE_BYTES == 0
    assert address(buffer.taken(25 << 20)) == first + (25 << 20)


def test_spans_of_a_local_file_are_read_into_the_buffer(tmp_path):
    (tmp_path / "file").write_bytes(DATA)
    source = f3_io.open_source(tmp_path / "file")
    buffer = f3_io.ReadBuffer()
    places = set()
    for spans in ([(0, 10), (10, 20), (200_000, 200_010)], [(100_000, 200_000)]):
        buffer.begin(sum(stop - start for start, stop in spans))
        found = f3_io.read_spans(source, spans, buffer)
        assert {span: bytes(data) for span, data in found.items()} == {each: DATA[slice(*each)] for each in spans}
        places.add(address(found[spans[0]]))
        del found
    assert len(places) == 1


def test_spans_that_overlap_are_refused():
    with pytest.raises(F3Error, match="two parts of the file overlap at byte 9"):
        f3_io.read_spans(f3_io.open_source(io.BytesIO(DATA)), [(0, 10), (9, 20)])


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize(("offset", "size"), [(0, len(DATA) + 1), (len(DATA), 1), (-1, 1), (2**63, 2**63), (5, -1)])
def test_nothing_outside_of_a_file_is_read(tmp_path, on_disk, offset, size):
    (tmp_path / "data").write_bytes(DATA)
    source = f3_io.open_source(tmp_path / "data" if on_disk else io.BytesIO(DATA))
    assert bytes(source.read(len(DATA), 0)) == b""
    assert bytes(source.read(3, 5)) == DATA[3:8]
    with pytest.raises(F3Error, match=f"outside the file, which has {len(DATA)} bytes"):
        source.read(offset, size)


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(DATA)
    source = f3_io.open_source(path)
    path.write_bytes(b"short")
    with pytest.raises(F3Error, match=f"had {len(DATA)} bytes, but has none from 5 on"):
        source.read(0, 100)


def test_a_file_that_gives_few_bytes_at_once_is_read():
    assert bytes(f3_io.open_source(Dripping(DATA)).read(10, 1000)) == DATA[10:1010]


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
@pytest.mark.parametrize("payload", [b"", b"a", bytes(100_000), DATA])
def test_payloads_come_back(codec, payload):
    stored, compression = compress(payload, codec)
    assert len(stored) <= len(payload)
    assert bytes(decompress(memoryview(stored), compression, "unit")) == payload


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("said", [0, 1, 299, 301, 1000, 10**6])
def test_a_block_of_other_than_the_bytes_that_it_says_is_refused(library, said, monkeypatch):
    """The missing bytes would be filled from uninitialized memory."""
    if not library:
        monkeypatch.setattr(native, "library", lambda: None)
    for payload in (b"abc" * 100, random.Random(1).randbytes(300)):
        block = pa.compress(payload, codec="lz4_raw", asbytes=True)
        assert bytes(decompress(memoryview(struct.pack("<I", 300) + block), 2, "unit")) == payload
        with pytest.raises(F3Error, match=r"^unit: "):
            decompress(memoryview(struct.pack("<I", said) + block), 2, "unit")
        for length in range(len(block)):
            with pytest.raises(F3Error, match=r"^unit: "):
                decompress(memoryview(struct.pack("<I", 300) + block[:length]), 2, "unit")


def test_a_frame_that_is_cut_is_refused_whether_it_tells_its_size_or_not():
    for tells_size in (True, False):
        frame = zstandard.ZstdCompressor(write_content_size=tells_size).compress(DATA)
        assert bytes(decompress(memoryview(frame), 1, "unit")) == DATA
        for length in range(len(frame)):
            with pytest.raises(F3Error, match=r"^unit: "):
                decompress(memoryview(frame[:length]), 1, "unit")


def test_a_small_unit_does_not_unpack_to_more_than_any_honest_one():
    """With only a limit on the ratio, a unit of a few megabytes could request all memory."""
    forged = struct.pack("<IBQ", 0xFD2FB528, 0xE0, 2**33) + bytes(10 << 20)
    with pytest.raises(F3Error, match="claim to unpack to 8589934592"):
        decompress(memoryview(forged), 1, "unit")


@pytest.mark.parametrize(
    "location", [None, 7, b"table.f3", io.StringIO("text")], ids=["none", "number", "bytes", "text file"]
)
@pytest.mark.parametrize("open_it", [f3_io.open_source, f3_io.open_target])
def test_values_that_are_not_locations_are_refused(location, open_it):
    with pytest.raises(F3Error, match=r"is neither a path|is opened as text"):
        open_it(location)


@pytest.mark.parametrize("open_it", [f3_io.open_source, f3_io.open_target])
def test_an_unknown_protocol_is_refused(open_it):
    with pytest.raises(F3Error, match=r"^nowhere://a/table\.f3: .*nowhere"):
        open_it("nowhere://a/table.f3")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.timeout(10)
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(F3Error, match="pipe: is not a file but a device, a pipe or a socket"):
        f3_io.open_source(tmp_path / "pipe")


def test_faults_of_the_device_name_the_file_that_was_asked_for(tmp_path):
    """The error names the requested file, not the temporary file next to it."""
    with pytest.raises(FileNotFoundError) as raised:
        f3_io.open_target(tmp_path / "missing" / "table.f3")
    assert raised.value.filename == str(tmp_path / "missing" / "table.f3")
    with pytest.raises(IsADirectoryError):
        f3_io.open_target(tmp_path)
    assert list(tmp_path.iterdir()) == []
