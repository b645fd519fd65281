"""Files of other writers, made from the specification, are read by the modules that they contain.

Unlike in `test_original`, everything passes through the sandbox and the package's real decoders.
"""

import io
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("wasmtime")

from libraries import f3
from libraries.f3.columns import values
from libraries.f3.decoders import module_cache, native
from libraries.f3.encodings.nodes import Tag
from libraries.f3.tests.modules import module
from libraries.f3.tests.originals import SHARED, Original, prepended_lz4, streamed_zstd, unit

NUMBERS = module()
"""A module whose payloads are the plain values."""

VIEWS = module(
    # The payload holds the string views, followed by the long texts that they point to.
    following="""
      (i32.store (local.get $out) (i32.const 0))
      (if (i32.eq (global.get $asked) (i32.const 0))
        (then (i32.store (local.get $out) (i32.const 64)) (i32.store offset=4 (local.get $out) (i32.const 0))))
      (if (i32.le_u (i32.sub (global.get $asked) (i32.const 1)) (i32.const 1))
        (then (i32.store (local.get $out) (global.get $at)) (i32.store offset=4 (local.get $out) (global.get $bytes))))
      (global.set $asked (i32.add (global.get $asked) (i32.const 1)))"""
)


@pytest.fixture(autouse=True)
def no_module_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module_cache, "folder", lambda: tmp_path / "modules")


def views_of(texts: list[str]) -> bytes:
    """Return string views followed by the long texts that they point to."""
    views, data = b"", b""
    for text in texts:
        held = text.encode()
        if len(held) <= 12:
            views += struct.pack("<I12s", len(held), held)
        else:
            views += struct.pack("<I4sII", len(held), held[:4], 0, 16 * len(texts) + len(data))
            data += held
    return views + data


def read(file: Original, **parameters) -> pa.Table:
    with f3.open(io.BytesIO(file.bytes()), verify="file", **parameters) as opened:
        return opened.read()


TEXTS = ["short", "a text of more than twelve bytes", "", "twelve bytes", "grün ist länger, als man denkt"]
VALUES = np.arange(100, dtype=np.int64) * 7 - 50


@pytest.mark.parametrize(
    ("compression", "compress"), [(0, bytes), (1, streamed_zstd), (2, prepended_lz4)], ids=["none", "zstd", "lz4"]
)
def test_numbers_and_strings_in_views_are_read_by_the_modules_of_the_file(compression, compress):
    file = Original(pa.schema({"n": pa.int64(), "s": pa.string()}), modules=(NUMBERS, VIEWS))
    numbers = [unit(compress(VALUES[part].tobytes()), 5, compression=compression) for part in (slice(5), slice(5, 10))]
    texts = [unit(compress(views_of(TEXTS)), 5, module=1, compression=compression) for _ in range(2)]
    file.group(10, [file.chunk(numbers, 10)], [file.chunk(texts[:1], 5), file.chunk(texts[1:], 5)])
    assert read(file).to_pydict() == {"n": VALUES[:10].tolist(), "s": TEXTS * 2}


def test_one_row_is_found_in_units_of_odd_sizes():
    file = Original(pa.schema({"n": pa.int64()}), modules=(NUMBERS,))
    edges = [0, 1, 4, 11, 60, 100]
    units = [unit(VALUES[a:b].tobytes(), b - a) for a, b in pairwise(edges)]
    file.group(100, [file.chunk(units, 100)])
    with f3.open(io.BytesIO(file.bytes())) as opened:
        assert opened.read(rows=[3, 99, 4]).column("n").to_pylist() == VALUES[[3, 99, 4]].tolist()


def test_a_shared_dictionary_of_strings_in_views_is_looked_up():
    file = Original(pa.schema({"s": pa.string()}), modules=(NUMBERS, VIEWS))
    file.dictionary_chunks.append(file.chunk([unit(views_of(TEXTS), 5, module=1)], 5))
    number = file.dictionary([0], pa.string())
    indices = np.array([4, 0, 1, 1, 2, 3], np.uint8)
    file.group(6, [file.chunk([unit(indices.tobytes(), 6)], 6, scope=SHARED, dictionary=number)])
    assert read(file).column("s").to_pylist() == [TEXTS[place] for place in indices]


def test_rows_of_another_module_that_are_too_many_for_one_array_are_told(monkeypatch):
    """A file of a few bytes may claim 4 billion rows, whose values its module makes up."""
    file = Original(pa.schema({"n": pa.int64()}), modules=(NUMBERS,))
    units = [unit(VALUES.tobytes(), 100) for _ in range(10)]
    file.group(1000, [file.chunk(units, 1000)])
    monkeypatch.setattr(native, "MOST_ARRAY_BYTES", 4000)
    monkeypatch.setattr(values, "_MOST_RATIO", 0.5)
    with pytest.raises(f3.F3Error, match="column n: 1000 rows are too many for one array; read fewer at a time"):
        read(file)


def test_texts_of_another_module_that_are_too_long_for_one_array_become_several(monkeypatch):
    file = Original(pa.schema({"s": pa.string()}), modules=(NUMBERS, VIEWS))
    file.group(20, [file.chunk([unit(views_of(TEXTS), 5, module=1) for _ in range(4)], 20)])
    join = pa.concat_arrays

    def refusing(arrays):
        if sum(each.nbytes for each in arrays) > 300:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return join(arrays)

    monkeypatch.setattr(pa, "concat_arrays", refusing)
    monkeypatch.setattr(values, "_MOST_SHORT_BYTES", 300)
    found = read(file).column("s")
    assert found.to_pylist() == TEXTS * 4
    assert found.num_chunks > 1


def test_views_that_lead_behind_their_buffer_are_refused():
    file = Original(pa.schema({"s": pa.string()}), modules=(NUMBERS, VIEWS))
    forged = struct.pack("<I4sII", 2000, b"abcd", 0, 8)
    file.group(1, [file.chunk([unit(forged, 1, module=1)], 1)])
    with pytest.raises(f3.F3Error, match=r"column s.*invalid strings"):
        read(file)


def test_what_such_a_file_is_encoded_as_is_not_guessed():
    file = Original(pa.schema({"n": pa.int64(), "s": pa.string()}), modules=(NUMBERS, VIEWS))
    file.group(
        5, [file.chunk([unit(VALUES[:5].tobytes(), 5)], 5)], [file.chunk([unit(views_of(TEXTS), 5, module=1)], 5)]
    )
    with f3.open(io.BytesIO(file.bytes())) as opened:
        assert opened.encodings() == ("module 0", "module 1")
        assert [each.wasm_id for each in opened.modules] == [0, 1]


def test_the_encodings_of_our_own_files_are_named():
    table = pa.table({"same": [3] * 900, "lists": [[1, 2], None, []] * 300, "text": ["b", None, "c"] * 300})
    file = io.BytesIO()
    f3.write(table, file, rows_per_unit=300, dictionary="local", codec="zstd")
    with f3.open(file) as opened:
        found = opened.encodings()
    assert "constant" in found
    assert set(found) <= {tag.name.lower() for tag in Tag}
