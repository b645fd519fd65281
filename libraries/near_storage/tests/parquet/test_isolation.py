"""Work in a child process: it returns the same footer as here, or a FooterError whatever happens to the child."""

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.footer import read_footer
from libraries.near_storage.parquet.isolation import apart, read_footer_apart
from libraries.near_storage.tests.parquet import misbehaving

THERE = misbehaving.__name__


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"a": [1, None, 3], "b": ["x", "y", None], "c": [[1.5], [], None]}), path, row_group_size=2)
    return path


def test_the_same_footer(file):
    with file.open("rb") as opened:
        assert read_footer_apart(file) == read_footer(opened)


def test_what_is_refused_there_is_refused_here(tmp_path):
    path = tmp_path / "none.parquet"
    path.write_bytes(b"not a Parquet file at all")
    with pytest.raises(FooterError, match="begins with b'not '"):
        read_footer_apart(path)
    with pytest.raises(FileNotFoundError):
        read_footer_apart(tmp_path / "missing")


def test_any_function_of_ours(file):
    with file.open("rb") as opened:
        assert apart(f"{THERE}:echoes", opened) == b"PAR1" + bytes(1 << 20)


BAD = {
    misbehaving.raises: "ZeroDivisionError",
    misbehaving.hangs: "more than 0.5 s",
    misbehaving.spins: "more than 0.5 s|signal 9|signal 24",
    misbehaving.is_killed: "signal 9",
    misbehaving.leaves: "ended with 0",
    misbehaving.leaves_badly: "ended with 7",
    misbehaving.wants_memory: "MemoryError",
    misbehaving.floods: "OSError|signal 25|ended with 1",
    misbehaving.answers_too_much: "2097152 bytes, at most 1048576 are allowed",
    misbehaving.recurses: "RecursionError",
}


@pytest.mark.parametrize("function", BAD, ids=lambda function: function.__name__)
def test_whatever_becomes_of_the_child(file, function):
    timeout_s = 0.5 if function in (misbehaving.hangs, misbehaving.spins) else 100
    with file.open("rb") as opened, pytest.raises(FooterError, match=BAD[function]) as caught:
        apart(f"{THERE}:{function.__name__}", opened, timeout_s, memory_bytes=512 << 20, answer_bytes=1 << 20)
    assert "secret" not in str(caught.value)


def test_no_child_is_left(file):
    before = psutil.Process().children()
    with file.open("rb") as opened, pytest.raises(FooterError):
        apart(f"{THERE}:hangs", opened, timeout_s=0.5)
    assert psutil.Process().children() == before
