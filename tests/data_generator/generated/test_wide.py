"""Wide tables, and values of one size: the requested width and size, with no two columns or batches alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from data_generator.catalogue import resolve
from data_generator.errors import DataError
from data_generator.generated import wide


def made(name: str, parameters: dict[str, str], rows: int | None = None) -> pa.Table:
    dataset = resolve(name, parameters, rows=rows)
    table = pa.Table.from_batches(list(dataset.batches()), dataset.schema)
    assert table.num_rows == dataset.rows
    return table


def test_no_column_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "BATCH_BYTES", 100 * 8 * 300)
    table = made("wide", {"columns": "300", "rows": "250"})
    assert table.shape == (250, 300)
    assert {field.type for field in table.schema} == {pa.float64()}
    first = [tuple(column.to_pylist()) for column in table.columns]
    assert len(set(first)) == 300
    values = pa.chunked_array([chunk for column in table.columns for chunk in column.chunks])
    assert pc.count_distinct(values).as_py() == 250 * 300
    assert 0.49 < pc.mean(values).as_py() < 0.51


def test_rows_are_those_of_the_spelling_and_never_more() -> None:
    """So that --rows reduces a large table, and does not enlarge a small one."""
    spelled = {"columns": "2", "rows": "8"}
    assert [made("wide", spelled, rows).num_rows for rows in (None, 5, 50)] == [8, 5, 8]


def test_without_rows_the_size_of_a_value_decides_how_many() -> None:
    assert [resolve("values", {"bytes": size}).rows for size in ("4", "1024", "65536")] == [1_000_000, 250_000, 3_906]


@pytest.mark.parametrize("size", [4, 64, 4_096])
def test_values_have_their_size(size: int) -> None:
    tables = [made("values", {"bytes": str(size), "kind": kind}, rows=300) for kind in ("variable", "fixed")]
    variable, fixed = (table.column("value") for table in tables)
    lengths = pc.binary_length(variable)
    assert size // 2 <= pc.min(lengths).as_py() < pc.max(lengths).as_py() <= size * 3 // 2
    assert 0.85 * size < pc.mean(lengths).as_py() < 1.15 * size
    assert fixed.type == (pa.float32() if size == 4 else pa.list_(pa.float32(), size // 4))
    assert len({str(value) for value in fixed.to_pylist()}) == 300


def test_a_size_that_is_not_a_multiple_of_a_float_is_refused() -> None:
    with pytest.raises(DataError, match="a multiple of 4"):
        resolve("values", {"bytes": "10", "kind": "fixed"})
