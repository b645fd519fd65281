"""Tables of PyTables keep the contract."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from adapters.predicate import Kind, Predicate
from formats.pytables import Pytables
from tests.contracts.tabular import TabularFormatContract


class TestPytables(TabularFormatContract):
    variant = "hdf5-pytables[engine=pytables]"


@pytest.fixture
def adapter() -> Pytables:
    adapter = Pytables()
    adapter.load_library()
    return adapter


def test_text_and_bytes_may_end_in_zeros(adapter: Pytables, tmp_path: Path) -> None:
    table = pa.table({"text": ["a\0", "", None, "ab"], "blob": [b"\0\0", None, b"", b"x"]})
    adapter.save(table, tmp_path / "t")
    assert adapter.read(tmp_path / "t").equals(table)


def test_conditions_tell_zeros_at_the_end(adapter: Pytables, tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "a\0", "", None, "\0"], "row": [0, 1, 2, 3, 4]})
    adapter.save(table, tmp_path / "t")
    handle = adapter.open(tmp_path / "t")
    assert handle.scan is not None
    for kind, values, rows in (
        (Kind.EQUAL, ("a",), [0]),
        (Kind.EQUAL, ("a\0",), [1]),
        (Kind.EQUAL, ("",), [2]),
        (Kind.IN, ("\0", "a"), [0, 4]),
    ):
        assert handle.scan(Predicate("text", kind, values), ["row"])["row"].to_pylist() == rows
    handle.close()


def test_values_are_added_to_a_column_that_has_nulls(adapter: Pytables, tmp_path: Path) -> None:
    first, more = pa.table({"n": [1, None], "t": ["a", None]}), pa.table({"n": [3, 4], "t": ["b", ""]})
    adapter.save(first, tmp_path / "t")
    adapter.append(more, tmp_path / "t")
    adapter.append(first, tmp_path / "t")
    assert adapter.read(tmp_path / "t").equals(pa.concat_tables([first, more, first]))


def test_what_does_not_fit_is_not_appended(adapter: Pytables, tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "bb"], "number": [1, 2]})
    adapter.save(table, tmp_path / "t")
    with pytest.raises(RefusedData, match=r"a value of 3 bytes .*text"):
        adapter.append(pa.table({"text": ["ccc"], "number": [3]}), tmp_path / "t")
    with pytest.raises(RefusedData, match=r"nulls .*number"):
        adapter.append(pa.table({"text": ["c"], "number": pa.array([None], pa.int64())}), tmp_path / "t")
    assert adapter.read(tmp_path / "t").equals(table)


def test_nothing_in_the_file_is_a_pickle(adapter: Pytables, tmp_path: Path) -> None:
    adapter.save(pa.table({"text": ["a", None], "day": pa.array([1, 2], pa.date32())}), tmp_path / "t")
    # PyTables would unpickle an attribute that begins like this; protocol 0 begins with a letter, then a newline.
    content = (tmp_path / "t").read_bytes()
    assert b"\x80\x02" not in content
    assert b"cnumpy\n" not in content
