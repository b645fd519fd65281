"""The kinds of columns that users have, each with the values that make it difficult."""

import math

import pyarrow as pa
import pytest

from data_generator.generated.kinds import KINDS, ROWS


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_a_key_and_a_value(name: str) -> None:
    kind = KINDS[name]
    for nulls in kind.nulls:
        table = kind.table(nulls)
        table.validate(full=True)
        assert table.schema == pa.schema({"key": pa.int64(), "value": kind.type})
        assert table["key"].to_pylist() == list(range(ROWS))
        assert (table["value"].null_count > 0) == nulls


def test_columns_may_have_no_value_at_all() -> None:
    without = [kind for kind in KINDS.values() if kind.nulls == (True,)]
    assert {"string-null", "float64-null", "int64-null", "timestamp-us-null"} <= {kind.name for kind in without}
    for kind in without:
        assert kind.table(True)["value"].null_count == ROWS
        assert KINDS[kind.name.removesuffix("-null")].type == kind.type


@pytest.mark.parametrize("name", KINDS)
def test_every_value_also_occurs_with_nulls(name: str) -> None:
    kind = KINDS[name]
    plain, with_nulls = (list(map(repr, kind.table(nulls)["value"].to_pylist())) for nulls in (False, True))
    assert set(plain) <= set(with_nulls)


def values(name: str) -> list[object]:
    found: list[object] = KINDS[name].table(False)["value"].to_pylist()
    return found


def test_the_difficult_values_are_there() -> None:
    assert {-128, 127} <= set(values("int8"))
    assert {0, 2**64 - 1} <= set(values("uint64"))
    assert 2**53 + 1 in values("int64-exact")
    assert any(math.copysign(1, value) < 0 and value == 0 for value in values("float64-zero"))  # type: ignore[arg-type]
    assert 5e-324 in values("float64-subnormal")
    assert {"NA", "null", "None", "nan"} <= set(values("string-missing"))
    assert "" in values("string-empty")
    assert max(map(len, values("string-long"))) > 32_767  # type: ignore[arg-type]
    assert min(values("date-early")).year < 1677  # type: ignore[type-var, attr-defined]


def test_every_width_of_integers_and_every_unit_of_time() -> None:
    assert {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} <= KINDS.keys()
    assert {f"timestamp-{unit}{zone}" for unit in ("s", "ms", "us", "ns") for zone in ("", "-zone")} <= KINDS.keys()


def test_categories_stand_in_their_own_order() -> None:
    for nulls in (False, True):
        column = KINDS["categorical-ordered"].table(nulls)["value"]
        assert column.type.ordered
        assert column.chunk(0).dictionary.to_pylist() == ["off", "low", "mid", "high"]
        assert set(column.to_pylist()) == {"low", "mid", "high"} | ({None} if nulls else set())
    assert not KINDS["categorical"].type.ordered


def test_floats_of_16_bits_use_their_whole_range() -> None:
    found = values("float16")
    assert 65_504.0 in found  # the largest
    assert any(0 < abs(value) < 2**-14 for value in found)  # type: ignore[arg-type, operator]


def test_categories_are_text_and_numbers() -> None:
    found = {kind.type.value_type for kind in KINDS.values() if pa.types.is_dictionary(kind.type)}
    assert found == {pa.string(), pa.int64(), pa.float64()}
