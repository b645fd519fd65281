"""A page is read as written, or refused with the name of its file and its number."""

import random

import numpy as np
import pytest

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts.layout import COMPRESSIONS, PAGE_BYTES
from libraries.document_store.layouts.pages import ENTRY_BYTES, PageReader, PageWriter, ReadCache
from libraries.document_store.tests.layouts.components import MemoryFile

PAGES = (b"a", b"ab" * 5000, random.Random(1).randbytes(PAGE_BYTES), bytes(PAGE_BYTES))


def written(compression):
    file = MemoryFile()
    writer = PageWriter(file, compression)
    assert [writer.append(page) for page in PAGES] == [0, 1, 2, 3]
    return file, writer


def reader_of(file, writer, compression, cache_bytes=0):
    return PageReader(file, compression, np.array(writer.stored_bytes), ReadCache(cache_bytes))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_pages_come_back(compression):
    file, writer = written(compression)
    reader = reader_of(file, writer, compression)
    assert reader.read(0, 4) == list(PAGES)
    assert reader.read(2) == [PAGES[2]]
    assert reader.counters.bytes_read == len(file.data) + writer.stored_bytes[2]
    assert reader.counters.pages_read == 5
    assert len(file.reads) == 2, "consecutive pages must be read together"
    assert (sum(writer.stored_bytes) < writer.raw_bytes) == (compression != "none")
    assert writer.stored_bytes[2] == PAGE_BYTES + 12, "a page that does not shrink must be stored uncompressed"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_pages_that_are_kept_are_not_read_again(compression):
    """The least recently used are evicted first; a page that exceeds the whole cache is never kept."""
    file, writer = written(compression)
    reader = reader_of(file, writer, compression, cache_bytes=PAGE_BYTES + 10_001 + 3 * ENTRY_BYTES)
    sizes = writer.stored_bytes
    for first, count, read_bytes in (
        (0, 2, sizes[0] + sizes[1]),
        (0, 2, 0),
        (2, 1, sizes[2]),
        # With the first page cached, one read covers the first to the last missing page.
        (0, 4, sizes[3]),
        (1, 2, sizes[1] + sizes[2]),
        (3, 1, sizes[3]),
    ):
        before = reader.counters.bytes_read
        assert reader.read(first, count) == list(PAGES[first : first + count])
        assert reader.counters.bytes_read - before == read_bytes, (first, count)
    assert reader_of(file, writer, compression, cache_bytes=1).read(3) == [PAGES[3]]


def test_a_cache_holds_no_more_than_it_may():
    most_bytes = 3 * ENTRY_BYTES
    cache = ReadCache(most_bytes)
    for number in range(50):
        cache.put(("a", number % 7), number, 10 + 30 * number)
        assert cache.size_bytes <= most_bytes
    cache.put(("b", 0), b"page", 4)
    assert [cache.get(key) for key in (("b", 0), ("c", 0), ("b", 1), ("b", 0, 0))] == [b"page", None, None, None]


def test_what_was_asked_for_longest_ago_goes_and_what_that_is_too_large_takes_no_others_place():
    cache = ReadCache(2 * ENTRY_BYTES + 80)
    for number, size_bytes in enumerate((40, 40, 40, ENTRY_BYTES + 81)):
        if number == 2:
            assert cache.get(("a", 0)) == "0"
        cache.put(("a", number), str(number), size_bytes)
    assert [cache.get(("a", number)) for number in range(4)] == ["0", None, "2", None]
    assert cache.size_bytes == 2 * ENTRY_BYTES + 80


def test_a_reader_without_cache_reads_each_time_and_is_counted():
    file, writer = written("none")
    reader = reader_of(file, writer, "none", cache_bytes=1 << 20)
    reader.without_cache().read(0)
    assert reader.cache.size_bytes == 0
    assert reader.read(0) == reader.read(0)
    assert reader.counters.bytes_read == 2 * writer.stored_bytes[0], "once without, once with"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_any_flipped_bit_is_refused(compression):
    file, writer = written(compression)
    starts = np.concatenate(([0], np.cumsum(writer.stored_bytes)))
    chosen = random.Random(2)
    for page in range(4):
        places = [*range(12), *(chosen.randrange(writer.stored_bytes[page]) for _ in range(20))]
        for place in places:
            at = int(starts[page]) + min(place, writer.stored_bytes[page] - 1)
            file.data[at] ^= 1 << chosen.randrange(8)
            before = bytes(file.data)
            with pytest.raises(CorruptError, match=f"00000001.component: page {page} is damaged"):
                reader_of(file, writer, compression).read(page)
            file.data[:] = before
            file, _ = written(compression)


def test_a_page_in_the_place_of_another_is_refused():
    file, writer = MemoryFile(), None
    writer = PageWriter(file, "none")
    for page in (b"one", b"two"):
        writer.append(page)
    half = len(file.data) // 2
    file.data[:] = file.data[half:] + file.data[:half]
    with pytest.raises(CorruptError, match="page 0 is damaged"):
        reader_of(file, writer, "none").read(0)


def test_pages_that_are_not_there():
    file, writer = written("none")
    for first, count in ((4, 1), (3, 2), (-1, 1), (0, 0)):
        with pytest.raises(CorruptError, match="but page 3 is the last"):
            reader_of(file, writer, "none").read(first, count)


@pytest.mark.parametrize("page", [b"", bytes(PAGE_BYTES + 1)])
def test_pages_of_no_allowed_length(page):
    with pytest.raises(ValueError, match="a page must have 1 to"):
        PageWriter(MemoryFile(), "none").append(page)
