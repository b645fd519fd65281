"""Strings that are not UTF-8 are rejected on writing, with their column and row. All written strings can be read."""

import io

import pyarrow as pa
import pytest

from libraries import f3

WRONG = [b"\xff", b"caf\xe9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xe2\x82"]
"""Latin-1, a surrogate, an overlong form, a number beyond Unicode, and letters without their first or last bytes."""


def texts(values, kind=None):
    """Return strings of any bytes, which Arrow does not check."""
    kind = pa.string() if kind is None else kind
    stored = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(stored), stored.buffers(), offset=stored.offset)


def written(table, **how):
    file = io.BytesIO()
    f3.write(table, file, **how)
    return file


def refused(table, place, **how):
    with pytest.raises(f3.F3Error, match=rf"^column {place} \(counted from 0\): the string b'.*' is not UTF-8\n"):
        written(table, **how)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_string_that_is_not_utf_8_is_refused(kind, wrong):
    column = texts([b"before", None, "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), wrong, b"after", wrong], kind)
    refused(pa.table({"a": range(6), "b": column}), "b, row 3")


def test_halves_of_a_letter_are_no_strings():
    whole = pa.array(["\N{LATIN SMALL LETTER E WITH ACUTE}"])
    halves = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], whole.buffers()[2]]
    )
    refused(pa.table({"a": halves}), "a, row 0")


@pytest.mark.parametrize("how", [
    {"dictionary": "local"}, {"dictionary": "shared", "scope_rows": 7}, {"dictionary": "best"},
    {"rows_per_unit": 3}, {"row_group_rows": 4}, {"rows_per_unit": 3, "row_group_rows": 4, "codec": "zstd"},
])  # fmt: skip
def test_the_row_is_that_of_the_file(how):
    table = pa.table({"a": texts([b"good"] * 9 + [b"\xff"])})
    refused(table, "a, row 9", **how)
    pieces = [*table.slice(0, 9).to_batches(), pa.record_batch([texts([b"good"])], ["a"]), *table.to_batches()]
    refused(pa.RecordBatchReader.from_batches(table.schema, pieces), "a, row 19", **how)


NESTED = texts([b"a", b"b", b"c", b"\xfe", b"e"])


@pytest.mark.parametrize(("column", "place"), [
    (pa.ListArray.from_arrays([0, 1, 3, 5], NESTED), r"a\[\], row 2"),
    (pa.LargeListArray.from_arrays([0, 4, 4, 5], NESTED), r"a\[\], row 0"),
    (pa.StructArray.from_arrays([pa.array(range(5)), NESTED], ["x", "y"]), r"a\.y, row 3"),
    (pa.ListArray.from_arrays([0, 3, 5], pa.StructArray.from_arrays([NESTED], ["y"])), r"a\[\]\.y, row 1"),
    (pa.ListArray.from_arrays([0, 1, 3, 5], NESTED).slice(1), r"a\[\], row 1"),
    # The string is below a null, where strings are stored too.
    (pa.StructArray.from_arrays([NESTED], ["y"], mask=pa.array([False, False, False, True, False])), r"a\.y, row 3"),
])  # fmt: skip
def test_strings_in_lists_and_structs_are_checked(column, place):
    refused(pa.table({"a": column}), place)


def test_nothing_is_left_of_a_file_with_such_a_string(tmp_path):
    path = tmp_path / "table.f3"
    with pytest.raises(f3.F3Error, match="not UTF-8"):
        f3.write(pa.table({"a": texts([b"\xff"])}), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("column", [
    pa.DictionaryArray.from_arrays([0, 1], texts([b"a", b"\xff"])),
    pa.Array.from_buffers(pa.string_view(), 1, pa.array([b"\xff"], pa.binary_view()).buffers()),
])  # fmt: skip
def test_dictionaries_and_views_are_refused_whatever_they_hold(column):
    with pytest.raises(f3.F3Error, match=r"column a: the type .* cannot be stored in F3"):
        written(pa.table({"a": column}))


def test_what_lies_under_a_null_is_no_string():
    _, offsets, data = texts([None, b"\xff", b"ok"]).buffers()
    hidden = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x04"), offsets, data])
    assert f3.open(written(pa.table({"a": hidden}))).read()["a"].to_pylist() == [None, None, "ok"]


def test_binaries_may_be_anything():
    table = pa.table({"a": WRONG})
    assert f3.open(written(table)).read().equals(table)


def test_the_check_changes_no_byte_of_what_can_be_stored(monkeypatch):
    column = pa.array([None, "", "\N{SNOWMAN}", "text"] * 5)
    table = pa.table({"a": column, "b": pa.array([["x", None], None] * 10)})
    checked = written(table).getvalue()
    monkeypatch.setattr("libraries.f3.writer.check_texts", lambda *given: None)
    assert written(table).getvalue() == checked
