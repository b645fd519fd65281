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
from libraries.f3.encodings import memo
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
    assert [each.to_pylist() for each in built.indices] == [[0, None, 1], [], [2, 0]]
    assert {str(each.type) for each in built.indices} == {"uint8"}


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
    """The test lowers the limits to 1,000 entries or 4 kB."""
    table = pa.table({"a": [f"{number}" for number in range(1500)], "b": ["b" * 20] * 1500})
    for module, name, limit in ((writer, "MOST_UNIT_ROWS", 1000), (writer, "MOST_UNIT_BYTES", 4000)):
        with monkeypatch.context() as limited:
            limited.setattr(module, name, limit)
            file = stored(table, dictionary="shared", rows_per_unit=100, unit_bytes=3999)
        assert [column(file, each).scopes for each in ("a", "b")] == [("none",), ("shared",)]
        assert opened(file).read().equals(table)


@pytest.mark.parametrize("limit", ["_MOST_ENTRIES", "_MOST_ENTRY_BYTES"])
def test_a_dictionary_that_grows_too_large_is_given_up_in_the_middle_of_a_scope(limit, monkeypatch):
    """The rows before and after stay in order, and the next scope begins anew."""
    numbers = np.concatenate([np.tile(np.arange(900), 20), np.arange(40_000) // 2, np.tile(np.arange(900), 30)])
    table = pa.table({"a": [f"a text of some length, number {number}" for number in numbers]})
    monkeypatch.setattr(writer, limit, {"_MOST_ENTRIES": 2000, "_MOST_ENTRY_BYTES": 80_000}[limit])
    file = stored(table, dictionary="best", rows_per_unit=6000, scope_rows=60_000)
    assert opened(file).read().equals(table)
    assert column(file, "a").scopes == ("none", "shared")


@pytest.mark.parametrize("scope", ["shared", "best"])
def test_a_scope_ends_after_its_rows_and_with_the_row_group(scope, monkeypatch):
    """The scope also ends if this is in the middle of a unit. With 'best', a scope of one unit has no dictionary."""
    monkeypatch.setattr(dictionaries, "_LEAST_ROWS", 1)
    table = pa.table({"a": [f"{'a long text ' * 20}{number % 5}" for number in range(1000)]})
    for parameters, scopes in (
        ({"scope_rows": 300}, 4 if scope == "shared" else 3),
        ({"scope_rows": 250}, 4),
        ({"scope_rows": 300, "row_group_rows": 500}, 4),
        ({}, 1),
    ):
        file = stored(table, dictionary=scope, rows_per_unit=100, **parameters)
        assert opened(file).read().equals(table)
        assert opened(file).describe().shared_dictionaries == scopes


# --- whether a dictionary pays ----------------------------------------------------------------------------------------


def test_the_better_of_both_is_taken_for_each_column(monkeypatch):
    monkeypatch.setattr(dictionaries, "_LEAST_ROWS", 1)
    random = np.random.default_rng(4)
    words = np.array([f"a rather long word, number {number}" for number in range(300)])
    table = pa.table(
        {
            "few": words[random.integers(0, 300, 5000)],
            "many": [f"{number} which is seen once" for number in range(5000)],
            "numbers": random.integers(0, 2**60, 5000),
        }
    )
    file = stored(table, dictionary="best", rows_per_unit=500, codec=None)
    assert opened(file).read().equals(table)
    assert [column(file, name).scopes for name in table.column_names] == [("shared",), ("none",), ("none",)]
    settings = {"rows_per_unit": 500, "codec": None}
    others = [len(stored(table, dictionary=scope, **settings).getvalue()) for scope in ("none", "shared")]
    assert len(file.getvalue()) < min(others)


def test_ties_go_to_units_that_stand_for_themselves():
    values = [pa.array([1, 2], pa.int64())]
    assert not dictionaries.pays(build(values * 2), lambda array: 0)


def test_a_single_unit_has_no_shared_dictionary():
    assert not dictionaries.pays(build([pa.array(["a long text"] * 1000)]), lambda array: array.nbytes)


def test_what_the_dictionary_itself_takes_counts():
    """If each value occurs only once, narrow indices do not save space, because the dictionary holds all values."""
    units = [pa.array(np.arange(1000) + number * 1000) for number in range(3)]
    assert not dictionaries.pays(build(units), lambda array: array.nbytes)
    assert dictionaries.pays(build(units[:1] * 3), lambda array: array.nbytes)


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_no_dictionary_is_made_of_values_that_hardly_repeat(dtype, monkeypatch):
    monkeypatch.setattr(dictionaries, "Growing", lambda *limits: pytest.fail("a dictionary is made"))
    values = np.random.default_rng(5).permutation(200_000).astype(dtype)
    file = stored(pa.table({"a": values}), dictionary="best")
    assert column(file, "a").scopes == ("none",)


@pytest.mark.parametrize(
    ("values", "tried"),
    [
        (np.tile(np.arange(3000), 10), True),
        (np.tile(np.arange(40), 1000), False),  # the distinct values take next to nothing
        (np.arange(30_000) // 10, True),  # runs, whose values take most of the bytes
        (np.arange(30_000), False),
        (np.tile(np.arange(30), 100), False),  # too few to know
    ],
)
def test_a_shared_dictionary_is_tried_where_it_could_be_smaller(values, tried):
    texts = pa.array([f"some text {value}" for value in values])
    for array in (pa.array(values), texts, pa.concat_arrays([texts, pa.nulls(20_000, pa.string())])):
        assert dictionaries.may_pay(array) is tried


def test_a_dictionary_of_units_that_share_nothing_is_useless():
    """A sorted column is an example."""
    values = np.repeat(np.arange(3000), 10)
    for following, is_useless in ((values[:20_000], False), (values + 2600, False), (values + 2900, True)):
        growing = dictionaries.Growing(pa.int64(), 2**17, 2**23)
        assert growing.add(pa.array(values))
        assert not growing.is_useless
        assert growing.add(pa.array(following))
        assert growing.is_useless is is_useless
    sorted_column = pa.table({"a": np.arange(300_000) // 10})
    assert column(stored(sorted_column, dictionary="best"), "a").scopes == ("none",)


@pytest.mark.parametrize("native", [True, False])
def test_a_growing_dictionary_equals_one_made_at_once(native, monkeypatch):
    if not native:
        monkeypatch.setattr(memo.native, "library", lambda: None)
    rng = np.random.default_rng(8)
    texts = [f"{number:x}" * (number % 40) for number in rng.integers(0, 30_000, 50_000)]
    for array in (
        pa.array(texts),
        pa.array([text or None for text in texts], pa.large_string()),
        pa.array(rng.integers(0, 9000, 50_000)),
        pa.array(rng.integers(0, 9000, 50_000), pa.int32(), mask=rng.random(50_000) < 0.2),
        pa.array(rng.integers(0, 20_000, 50_000) / 8),
    ):
        units = [array.slice(start, 20_000) for start in range(0, 50_000, 20_000)]
        growing = dictionaries.Growing(array.type, 2**24, 2**31)
        assert all(growing.add(unit) for unit in units)
        made, expected = growing.dictionary(), build(units)
        assert made.values.equals(expected.values)
        assert [each.to_pylist() for each in made.indices] == [each.to_pylist() for each in expected.indices]


def test_values_of_equal_hashes_are_told_apart():
    """The values are made by undoing `mixed` of encode.c, for hashes that differ in their highest bits only."""

    def unmixed(number):
        for factor, shift in ((0xBF58476D1CE4E5B9, 29), (0x9E3779B97F4A7C15, 32)):
            number = number * pow(factor, -1, 1 << 64) % (1 << 64)
            whole = number
            for _ in range(64 // shift):
                whole = number ^ whole >> shift
            number = whole
        return number

    values = [(unmixed(0x1234_5678_9ABC_DEF0 ^ bit << 60) - 1) % (1 << 64) for bit in range(16)]
    array = pa.array(np.array(values * 300, np.uint64)).view(pa.int64())
    assert build([array]).values.equals(array[:16])
    assert opened(stored(pa.table({"a": array}), dictionary="shared")).read()["a"].combine_chunks().equals(array)


# --- sharing across columns -----------------------------------------------------------------------------------------


def dictionary_of(values):
    return build([pa.array(values)])


def back(shared, place):
    """Return the values of a column from its stored parts and indices."""
    parts = pa.concat_arrays([shared.parts[part] for part in shared.made_of[place]])
    return looked_up(parts, shared.dictionaries[place].indices[0]).to_pylist()


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
