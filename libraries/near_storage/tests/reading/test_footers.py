"""Original footers: parsed only if they match the stored digest; the most recently used are cached."""

import hashlib
import io
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading import footers


def tail(columns=1, groups=1):
    file = io.BytesIO()
    table = pa.table({f"c{number}": np.arange(groups) for number in range(columns)})
    pq.write_table(table, file, row_group_size=1)
    content = file.getvalue()
    return content[-8 - int.from_bytes(content[-8:-4], "little") :]


def test_a_footer_is_parsed_from_the_end_of_its_file():
    footer = footers.parse(tail(3, 2))
    assert (footer.metadata.num_columns, footer.metadata.num_row_groups, footer.schema.names) == (
        3,
        2,
        ["c0", "c1", "c2"],
    )


def test_only_the_footer_that_was_stored_is_parsed(monkeypatch):
    content = tail()
    digest = hashlib.blake2b(content, digest_size=32).hexdigest()
    assert footers.checked(content, digest).metadata.num_rows == 1
    monkeypatch.setattr(footers, "parse", lambda _: pytest.fail("parsed"))
    with pytest.raises(DamagedError, match=digest[:16]):
        footers.checked(content[:9] + b"x" + content[10:], digest)


@pytest.mark.parametrize("content", [b"", b"PAR1", tail()[5:], b"\0" * 50 + b"\x32\0\0\0PAR1"])
def test_what_is_no_footer_is_damaged(content):
    with pytest.raises(DamagedError, match=f"a footer of {len(content)} bytes"):
        footers.parse(content)


def test_the_cache_keeps_what_was_used_last_within_its_bytes():
    made = []
    small, large = footers.parse(tail()), footers.parse(tail(20, 20))

    def get(key, footer=small):
        return cache.get(key, lambda: made.append(key) or footer)

    cache = footers.FooterCache(3 * small.nbytes)
    for key in ("a", "b", "c", "a", "d", "a", "b", "large"):
        get(key, large if key == "large" else small)
    assert made == ["a", "b", "c", "d", "b", "large"]
    assert cache.nbytes == 3 * small.nbytes < large.nbytes
    assert get("a") is get("b") is get("d") is small
    assert made == ["a", "b", "c", "d", "b", "large"]
    get("c")
    assert cache.nbytes == 3 * small.nbytes
    get("a")
    assert made[6:] == ["c", "a"]


def test_the_cache_under_many_threads():
    small = footers.parse(tail())
    cache = footers.FooterCache(5 * small.nbytes)
    start = threading.Barrier(8)

    def use(seed):
        start.wait()
        for key in np.random.default_rng(seed).integers(0, 10, 2000).tolist():
            assert cache.get(key, lambda: small) is small

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.nbytes == 5 * small.nbytes
