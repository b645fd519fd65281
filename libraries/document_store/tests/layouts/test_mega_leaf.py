"""Mega leaves are laid out as in the paper, and only the pages of the requested columns are read."""

import numpy as np
import pytest

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts import KEY_BYTES, open_component
from libraries.document_store.layouts.layout import PAGE_BYTES
from libraries.document_store.layouts.mega_leaf import Chunk, decode_page_0, encode_leaf, page_0_bytes
from libraries.document_store.tests.layouts.components import component_of, new_schema, read_back, write

NONE_GONE = np.zeros(3, np.bool_)
KEYS = np.array([3, 5, 9], np.int64)


def chunk(number, size):
    return Chunk(number, size.to_bytes(4, "little") + bytes([number]) * (size - 4), (number, number + 1))


def leaf_of(*sizes):
    pages = encode_leaf(KEYS, NONE_GONE, len(sizes) + 1, [chunk(n + 1, size) for n, size in enumerate(sizes) if size])
    return pages, decode_page_0("integer", pages[0], len(pages))


def test_chunks_lie_from_largest_to_smallest_and_come_back():
    sizes = (10, PAGE_BYTES * 2 + 7, 0, 5000, PAGE_BYTES)
    pages, zero = leaf_of(*sizes)
    offsets = {number: zero.offsets[number] for number in range(1, 6)}
    assert sorted(offsets, key=offsets.__getitem__) == [3, 2, 5, 4, 1], "the third has no chunk"
    for number, size in enumerate(sizes, start=1):
        own = zero.pages_of(number)
        assert (len(own) > 0) == (size > 0)
        if size:
            assert bytes(zero.chunk(number, [pages[page] for page in own])) == chunk(number, size).data
    assert zero.codes[4].tolist() == [4, 5]
    assert zero.codes[3].tolist() == [2**64 - 1, 0]
    assert zero.keys.tolist() == [3, 5, 9]


@pytest.mark.parametrize(
    ("first", "second", "page_of_second"),
    [
        (PAGE_BYTES * 9 // 10, PAGE_BYTES // 2, range(2, 3)),  # 10 % stay empty, so that it needs only one page
        (PAGE_BYTES * 9 // 10, PAGE_BYTES // 20, range(1, 2)),  # it fits
        (PAGE_BYTES * 8 // 10, PAGE_BYTES // 2, range(1, 3)),  # 20 % are too much: it is split
        (PAGE_BYTES, 100, range(2, 3)),  # no space is left
    ],
)
def test_empty_page_tolerance(first, second, page_of_second):
    _, zero = leaf_of(first, second)
    assert zero.pages_of(1) == range(1, 2)
    assert zero.pages_of(2) == page_of_second


def test_page_0_never_grows_beyond_a_page():
    keys = np.arange(PAGE_BYTES // 8, dtype=np.int64)
    with pytest.raises(ValueError, match="page 0 of"):
        encode_leaf(keys, np.zeros(len(keys), np.bool_), 1, [])
    assert page_0_bytes(4001, KEY_BYTES + 4, 1) < PAGE_BYTES, "the longest key must fit together with all columns"


def test_a_chunk_that_its_pages_cannot_hold():
    pages, zero = leaf_of(100)
    with pytest.raises(CorruptError, match="declares 100 bytes"):
        zero.chunk(1, [pages[1][:50]])
    with pytest.raises(CorruptError, match="its pages have 0 bytes"):
        zero.chunk(1, [b""])


def test_a_leaf_that_does_not_end_on_its_last_page_or_has_two_columns_at_a_place():
    pages, zero = leaf_of(100, 90)
    with pytest.raises(CorruptError, match="does not end on page 2"):
        decode_page_0("integer", pages[0], len(pages) + 1)
    first, second = (zero.offsets[number].to_bytes(4, "little") for number in (1, 2))
    with pytest.raises(CorruptError, match="two columns of a leaf begin at the same byte"):
        decode_page_0("integer", pages[0].replace(second, first, 1), len(pages))


def many_columns(records, columns=275):
    """Make documents in which every fifth column is a text of 400 bytes, the others small numbers."""
    fields = [f"field {number}" for number in range(columns - 1)]
    texts = ["".join(chr(97 + (seed * step) % 26) for step in range(400)) for seed in range(1, 20)]
    return {
        key: {"id": key}
        | {name: texts[(key + n) % 19] if n % 5 == 0 else key % (n + 2) for n, name in enumerate(fields)}
        for key in range(records)
    }


def test_counting_reads_page_0_and_two_columns_only_their_pages():
    file, schema = write("amax", many_columns(400), leaf_records=150, compression="none")
    component = open_component(file)
    footer_reads = len(file.reads)
    leaves = component.leaves
    assert len(leaves) == 3
    assert sum(int((~leaf.keys()[1]).sum()) for leaf in leaves) == 400
    assert component.counters.pages_read == 3
    # Each leaf: 12 bytes of frame, 24 of header, 20 for each of 275 columns, 8 for each key: page 0 and nothing else.
    page_0 = 3 * (12 + 24 + 20 * 275) + 8 * 400
    assert component.counters.bytes_read == page_0
    assert len(file.reads) == footer_reads + 3
    numbers = [leaf.number for leaf in schema.leaves if str(leaf.path) in ("field 5", "field 6")]
    assert len(numbers) == 2
    expected = set()
    for number, leaf in enumerate(leaves):
        zero = leaf._page_0
        expected |= {(number, page) for wanted in numbers for page in zero.pages_of(wanted)}
        columns = leaf.columns(numbers)
        assert sorted(columns) == numbers
    assert component.counters.pages_read == 3 + len(expected)
    assert component.counters.bytes_read < 0.2 * len(file.data)


def test_a_leaf_ends_at_each_of_its_limits():
    versions = many_columns(300, 20)
    by_records = component_of("amax", versions, leaf_records=100)
    assert [leaf.count for leaf in by_records.leaves] == [100, 100, 100]
    by_bytes = component_of("amax", versions, leaf_bytes=100_000)
    assert len(by_bytes.leaves) > 4
    assert all(leaf.row_bytes < 102_000 for leaf in by_bytes.leaves)
    # Page 0 holds 12 keys of 4,096 bytes and 4,001 columns, which come with the first rows.
    wide = {f"{key:04}".ljust(KEY_BYTES, "k"): {} for key in range(26)}
    for key, document in wide.items():
        document |= {"id": key} | {f"f{number}": number for number in range(4100)}
    by_page_0 = component_of("amax", wide, new_schema(text_keys=True), text_keys=True)
    assert [leaf.count for leaf in by_page_0.leaves] == [12, 12, 2]
    assert read_back(by_page_0) == wide


def test_a_column_that_a_leaf_does_not_have_is_left_out():
    component = component_of("amax", {1: {"id": 1, "a": 1}, 2: {"id": 2, "b": 1}}, leaf_records=1)
    first, second = component.leaves
    assert len(first.schema.leaves) == 2
    assert len(second.schema.leaves) == 3
    assert sorted(first.columns([0, 1, 2])) == [0, 1]
    assert sorted(second.columns([0, 1, 2])) == [0, 1, 2]
    assert not first.may_match(2, None, None)
