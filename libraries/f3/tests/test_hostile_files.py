"""Untrusted files: reading returns a table or raises F3Error, within two seconds."""

import random
import struct

import pyarrow as pa
import pytest

from libraries.f3.decoders import module_cache
from libraries.f3.errors import F3Error
from libraries.f3.tests import mutations, plain_coding
from libraries.f3.tests.originals import Original, opened, plain, unit
from libraries.f3.tests.tables import opened as opened_plain
from libraries.f3.tests.tables import stored

WAYS = mutations.ways()


@pytest.fixture(autouse=True)
def no_module_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module_cache, "folder", lambda: tmp_path / "modules")


@pytest.mark.parametrize("way", WAYS)
def test_some_changed_files_end_in_a_table_or_an_error(way):
    """`make fuzz-f3` tries 10,000 changed files with each way of decoding."""
    outcomes = mutations.run(30, seed=2, way=WAYS[way])
    assert outcomes["F3Error"] > 10


def test_an_endless_loop_is_found():
    """The tests above depend on this alarm."""
    with pytest.raises(TimeoutError), mutations.in_time(0.1):
        _endless()


def _endless():
    while True:
        pass


SMALL = {"a": [1, None, 3], "b": ["x", "y", None], "c": [[1], None, []]}


def changed(whole):
    """Yield the file with each byte changed, once in one bit and once in all bits."""
    for place in range(len(whole)):
        for mask in (1 << place % 8, 255):
            yield whole[:place] + bytes((whole[place] ^ mask,)) + whole[place + 1 :]


def test_with_the_whole_file_verified_every_changed_byte_is_an_error():
    for data in changed(stored(pa.table(SMALL)).getvalue()):
        with pytest.raises(F3Error):
            opened_plain(data, verify="file").read()


def test_with_the_whole_file_verified_every_cut_is_an_error():
    whole = stored(pa.table(SMALL)).getvalue()
    for length in range(len(whole)):
        with pytest.raises(F3Error):
            opened_plain(whole[:length], verify="file").read()
    for extra in (b"\0", whole[-32:]):
        with pytest.raises(F3Error):
            opened_plain(whole + extra, verify="file").read()


def test_with_units_verified_every_changed_byte_of_data_is_an_error():
    whole = stored(pa.table(SMALL), checksums=True).getvalue()
    data_end = whole.index(plain_coding.MODULES["plain"])
    for data in changed(whole[:data_end]):
        with pytest.raises(F3Error):
            opened_plain(data + whole[data_end:]).read()


def test_a_file_that_says_that_its_rows_are_endless_takes_no_memory():
    file = Original(pa.schema({"a": pa.int32()}))
    chunk = file.chunk([unit(plain([1], pa.int32()), 2**24 - 1) for _ in range(200)], 200 * (2**24 - 1))
    file.group((200 * (2**24 - 1)) % 2**32, [chunk])
    with mutations.in_time(), pytest.raises(F3Error):
        opened(file.bytes()).read()


def test_many_columns_in_one_place_are_refused():
    """Otherwise a small file could claim a very wide table, and the same bytes would be decoded for every column."""
    file = Original(pa.schema([(f"c{number}", pa.int32()) for number in range(500)]))
    chunks = [file.chunk([unit(plain([1], pa.int32()), 1)], 1)]
    data = file.group(1, *[chunks] * 500).bytes()
    with mutations.in_time(), pytest.raises(F3Error, match="inside another IOUnit"):
        opened(data).read()


@pytest.mark.parametrize("seed", [1, 2])
def test_offsets_behind_the_file_are_refused(seed):
    file = Original(pa.schema({"a": pa.int32()}))
    file.group(1, [file.chunk([unit(plain([1], pa.int32()), 1)], 1)])
    whole = bytearray(file.bytes())
    size = struct.unpack_from("<I", whole, len(whole) - 28)[0]
    footer = whole[len(whole) - 32 - size : -32]
    place = len(whole) - 32 - size
    dice = random.Random(seed)
    for _ in range(300):
        forged = bytearray(whole)
        struct.pack_into("<Q", forged, place + dice.randrange(len(footer) - 8), dice.choice((2**63, 2**64 - 1, 2**40)))
        assert mutations.outcome(bytes(forged), WAYS["plain"], "none") in ("table", "F3Error")
