"""The key filter admits all present keys, and few absent ones."""

import numpy as np
import pytest

from libraries.document_store.errors import CorruptError
from libraries.document_store.key_filter import KeyFilter, hash_keys
from libraries.document_store.tree.memtable import key_array


@pytest.mark.parametrize("count", [0, 1, 2, 1000, 30_000])
@pytest.mark.parametrize("kind", [int, str])
def test_what_is_there_passes_and_little_else(count, kind):
    keys = key_array([kind(number) for number in range(count)]) if count else np.empty(0, np.int64)
    others = key_array([kind(number) for number in range(50_000, 60_000)])
    made = KeyFilter.from_bytes(KeyFilter.of(hash_keys(keys)).to_bytes())
    assert made.may_contain(hash_keys(keys)).all()
    assert made.may_contain(hash_keys(others)).mean() < 0.02


def test_hashes_are_the_same_everywhere():
    assert hash_keys(np.array([0, 1])).tolist() == [16294208416658607535, 10451216379200822465]
    assert hash_keys(key_array(["a"])).tolist() == [16629034431890738719]


@pytest.mark.parametrize("data", [b"", b"DSKF", KeyFilter.of(hash_keys(np.arange(9))).to_bytes()[:-1], b"\xff" * 76])
def test_other_bytes_are_refused(data):
    with pytest.raises(CorruptError, match="key filter"):
        KeyFilter.from_bytes(data)
