"""Dictionary scopes: what is stored, when a dictionary is used, and which columns share one.

Values return bit by bit.
"""

import struct

import numpy as np
import pyarrow as pa
import pytest

from libraries.f3 import writer
from libraries.f3.columns import dictionaries
from libraries.f3.columns.dictionaries import build, index_type, looked_up, share
from libraries.f3.errors import F3Error
from libraries.f3.tests.tables import opened, stored


def column(file, name):
    return next(each for each in opened(file).describe().columns if each.name == name)


@pytest.mark.parametrize(
    ("entries", "width"),
    [(0, "uint8"), (255, "uint8"), (256, "uint16"), (65_535, "uint16"), (65_536, "uint32"), (2**32, "uint64")],
)
def test_indices_are_as_wide_as_the_specification_has_it(entries, width):
    assert str(index_type(entries)) == width


def test_a_dictionary_has_values_in_the_order_of_their_appearance():
    built = build([pa.array(["b", None, "a"]), pa.array([], pa.string()), pa.array(["c", "b"])])
    assert built.values.to_pylist() == ["b", "a", "c"]
    assert [each.to_pylist() for each in built.indices()] == [[0, None, 1], [], [2, 0]]
    assert {str(each.type) for each in built.indices()} == {"uint8"}


def test_floats_are_told_apart_by_their_bits():
    """NaN has many bit patterns and zero has two. All of them are preserved."""
    bits = [0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000, 0, 1 << 63, 0x7FF0000000000000]
    values = pa.array(np.array(bits * 3, np.uint64)).view(pa.float64())
    assert len(build([values]).values) == 6
    for scope in ("local", "shared", "best"):
        read = opened(stored(pa.table({"a": values, "b": values.cast(pa.float32())}), dictionary=scope)).read()
        assert read["a"].combine_chunks().view(pa.uint64()).to_pylist() == bits * 3
    assert struct.pack("<d", -0.0) != struct.pack("<d", 0.0)


@pytest.mark.parametrize(
    "arrow_type",
    [pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.timestamp("ns", "UTC"),
     pa.time32("ms"), pa.time64("ns"), pa.date32(), pa.date64()], ids=str,
)  # fmt: skip
@pytest.mark.parametrize("scope", ["local", "shared"])
def test_types_that_have_dictionaries(arrow_type, scope):
    values = pa.array([0, 86_400_000, None, 0] * 10, pa.int64())
    table = pa.table({"a": _cast(values, arrow_type)})
    file = stored(table, dictionary=scope, rows_per_unit=16)
    assert opened(file).read().equals(table)
    assert column(file, "a").scopes == (scope,)


def _cast(values, arrow_type):
    if arrow_type in (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date64(), pa.string(), pa.large_string()):
        return values.cast(arrow_type, safe=False)
    narrow = pa.array([0, 1, None, 0] * 10, pa.int64())
    return narrow.cast(pa.int32() if arrow_type.bit_width == 32 else pa.int64()).cast(arrow_type)


@pytest.mark.parametrize("values", [pa.array([1, 1], pa.int8()), pa.array([True]), pa.array([b"a"])], ids=str)
@pytest.mark.parametrize("scope", ["local", "shared", "best"])
def test_types_that_have_none_are_stored_without(values, scope):
    file = stored(pa.table({"a": values}), dictionary=scope)
    assert column(file, "a").scopes == ("none",)
    assert opened(file).read()["a"].combine_chunks().equals(values)


@pytest.mark.parametrize("scope", ["local", "shared", "best"])
def test_columns_of_nulls_alone_come_back(scope):
    table = pa.table({"a": pa.nulls(100, pa.string()), "b": pa.nulls(100, pa.float64())})
    assert opened(stored(table, dictionary=scope, rows_per_unit=30)).read().equals(table)


def test_what_is_too_large_for_a_dictionary_is_stored_without(monkeypatch):
    """The test lowers the limits to 1,000 entries or 10 kB, or lets Arrow raise its error for 2 GB of texts."""
    table = pa.table({"a": [f"{number}" for number in range(1500)], "b": ["b" * 20] * 1500})
    for module, name, limit in ((writer, "MOST_UNIT_ROWS", 1000), (writer, "MOST_UNIT_BYTES", 10_000)):
        with monkeypatch.context() as limited:
            limited.setattr(module, name, limit)
            file = stored(table, dictionary="shared", rows_per_unit=100, unit_bytes=9999)
        assert [column(file, each).scopes for each in ("a", "b")] == [("none",), ("shared",)]
        assert opened(file).read().equals(table)

    def refusing(arrays):
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    monkeypatch.setattr(dictionaries, "build", refusing)
    for scope in ("shared", "best"):
        assert column(stored(table, dictionary=scope), "b").scopes == ("none",)


def test_dictionaries_that_are_too_large_together_share_nothing(monkeypatch):
    monkeypatch.setattr(dictionaries, "_MOST_COMPARED_BYTES", 100)
    values = [f"value {number}" for number in range(20)]
    assert len(share([dictionary_of(values), dictionary_of(values)]).parts) == 2


@pytest.mark.parametrize("scope", ["shared", "best"])
def test_a_scope_ends_after_its_rows_and_with_the_row_group(scope):
    """The scope also ends if this is in the middle of a unit."""
    table = pa.table({"a": [str(number % 5) for number in range(1000)]})
    for parameters, scopes in (
        ({"scope_rows": 300}, 4),
        ({"scope_rows": 250}, 4),
        ({"scope_rows": 300, "row_group_rows": 500}, 4),
        ({}, 1),
    ):
        file = stored(table, dictionary=scope, rows_per_unit=100, **parameters)
        assert opened(file).read().equals(table)
        assert opened(file).describe().shared_dictionaries == scopes


# --- whether a dictionary pays ----------------------------------------------------------------------------------------


def test_the_better_of_both_is_taken_for_each_column():
    random = np.random.default_rng(4)
    words = np.array([f"a rather long word, number {number}" for number in range(300)])
    table = pa.table(
        {
            "few": words[random.integers(0, 300, 5000)],
            "many": [f"{number} which is seen once" for number in range(5000)],
            "numbers": random.integers(0, 2**60, 5000),
        }
    )
    file = stored(table, dictionary="best", rows_per_unit=500)
    assert opened(file).read().equals(table)
    assert [column(file, name).scopes for name in table.column_names] == [("shared",), ("none",), ("none",)]
    others = [len(stored(table, dictionary=scope, rows_per_unit=500).getvalue()) for scope in ("none", "shared")]
    assert len(file.getvalue()) < min(others)


def test_ties_go_to_units_that_stand_for_themselves():
    units = [pa.array([1, 2], pa.int64())]
    assert not dictionaries.pays(units, build(units), lambda array: 0)


def test_what_the_dictionary_itself_takes_counts():
    """If each value occurs only once, narrow indices do not save space, because the dictionary holds all values."""
    units = [pa.array(np.arange(1000) + number * 1000) for number in range(3)]
    assert not dictionaries.pays(units, build(units), lambda array: array.nbytes)
    assert dictionaries.pays(units[:1] * 3, build(units[:1] * 3), lambda array: array.nbytes)


@pytest.mark.parametrize("rows", [1000, 200_000])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_no_dictionary_is_made_of_values_that_hardly_repeat(rows, dtype, monkeypatch):
    """Building a dictionary of a million distinct values takes longer than all other steps."""
    monkeypatch.setattr(dictionaries, "build", lambda units: pytest.fail("a dictionary is made"))
    values = np.random.default_rng(5).permutation(rows).astype(dtype)
    file = stored(pa.table({"a": values}), dictionary="best")
    assert column(file, "a").scopes == ("none",)


def test_a_dictionary_is_made_where_its_indices_take_next_to_nothing():
    """Each value occurs twice in a row, so an index equals the one before or is the next new number."""
    values = np.repeat(np.random.default_rng(7).integers(0, 2**62, 50_000), 2)
    values = np.concatenate((values, values, values))
    units = [pa.array(values[start : start + 60_000]) for start in range(0, 300_000, 60_000)]
    assert dictionaries.worthwhile(units, lambda array: array.nbytes) is not None


@pytest.mark.parametrize("distinct", [1, 50, 5000, 60_000, 200_000])
@pytest.mark.parametrize("in_order", [True, False])
def test_how_many_values_are_distinct_is_seen_in_a_sample(distinct, in_order):
    rows = 200_000
    values = np.arange(rows) * distinct // rows
    if not in_order:
        np.random.default_rng(6).shuffle(values)
    units = [pa.array(values[:150_000]), pa.array(values[150_000:])]
    assert 0.7 * distinct - 1 < dictionaries._entries_expected(units, rows) < 1.15 * distinct + 1


# --- sharing across columns -----------------------------------------------------------------------------------------


def dictionary_of(values):
    return build([pa.array(values)])


def back(shared, place):
    """Return the values of a column from its stored parts and indices."""
    parts = pa.concat_arrays([shared.parts[part] for part in shared.made_of[place]])
    return looked_up(parts, shared.dictionaries[place].indices()[0]).to_pylist()


def test_equal_dictionaries_are_stored_once():
    first, second = ["a", "b", None, "c"], ["c", "b", "a", "a"]
    shared = share([dictionary_of(first), dictionary_of(second)])
    assert len(shared.parts) == 1
    assert shared.made_of == ((0,), (0,))
    assert (back(shared, 0), back(shared, 1)) == (first, second)


def test_what_two_columns_have_in_common_is_stored_once():
    first = [f"t{number}" for number in range(3000)]
    second = [f"t{number}" for number in range(1500, 5000)]
    shared = share([dictionary_of(["other"]), dictionary_of(first), dictionary_of(second)])
    assert [len(part) for part in shared.parts] == [1500, 1500, 2000, 1]
    assert shared.made_of == ((3,), (0, 1), (0, 2))
    assert (back(shared, 1), back(shared, 2), back(shared, 0)) == (first, second, ["other"])


def test_little_in_common_is_not_worth_it():
    first, second = list(range(2000)), list(range(1000, 3000))
    shared = share([dictionary_of(first), dictionary_of(second)])
    assert [len(part) for part in shared.parts] == [2000, 2000]


def test_dictionaries_of_other_types_share_nothing():
    shared = share([dictionary_of(["1", "2"]), build([pa.array(["1", "2"], pa.large_string())])])
    assert len(shared.parts) == 2


def test_large_dictionaries_are_compared_by_samples_of_the_same_values():
    first = np.arange(0, 100_000)
    second = np.arange(50_000, 150_000)
    shared = share([build([pa.array(first)]), build([pa.array(second)])])
    assert [len(part) for part in shared.parts] == [50_000, 50_000, 50_000]


def test_columns_share_in_a_file():
    names = [f"somewhere, number {number}" for number in range(2000)]
    table = pa.table({"from": names, "to": names[::-1], "at": names})
    file = stored(table, dictionary="shared", rows_per_unit=500)
    assert opened(file).read().equals(table)
    assert opened(file).read(["to"], rows=[1999, 3])["to"].to_pylist() == [names[0], names[1996]]
    # Two of the three dictionaries are merged, because a dictionary is merged with at most one other.
    footer = opened(file)._contents.footer
    assert sorted(footer.dictionary(number) for number in range(3)) == [(0,), (0,), (1,)]


def test_an_index_behind_the_end_is_refused():
    with pytest.raises(F3Error, match="index 2 is out of range of a dictionary of 2 entries"):
        looked_up(pa.array(["a", "b"]), pa.array([0, 2], pa.uint8()))
    with pytest.raises(F3Error, match="empty dictionary"):
        looked_up(pa.array([], pa.string()), pa.array([0], pa.uint8()))
