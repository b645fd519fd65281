"""Data that a format cannot hold is refused, if possible by its schema in the plan, so that no run fails."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from bench_runner import registries

ALIKE = pa.schema({"ID": pa.int64(), "id": pa.int64(), "Value": pa.float64()})
ALIKE_INSIDE = pa.schema({"v": pa.list_(pa.struct({"A": pa.int64(), "a": pa.int64()}))})
UMLAUTS = pa.schema({"Ä": pa.int64(), "ä": pa.int64()})


def _adapter(variant: str, *, loaded: bool = True) -> Any:
    adapter = registries.build(variant, threads=None)
    if loaded:
        adapter.load_library()
    return adapter


@pytest.mark.parametrize("variant", ["csv[engine=duckdb]", "parquet[engine=duckdb,codec=none]", "json[engine=duckdb]"])
def test_duckdb_refuses_names_that_differ_by_case(variant: str) -> None:
    adapter = _adapter(variant, loaded=False)
    assert "'ID' and 'id'" in str(adapter.refusal(ALIKE, 3))
    assert "'A' and 'a'" in str(adapter.refusal(ALIKE_INSIDE, 3))
    assert adapter.refusal(UMLAUTS, 3) is None


@pytest.mark.parametrize("name", ["user.id", "_rowid", "_rowaddr", "a`b", ""])
def test_lance_refuses_names_that_it_does_not_find_again(name: str) -> None:
    adapter = _adapter("lance[engine=pylance]", loaded=False)
    assert repr(name) in str(adapter.refusal(pa.schema({"x": pa.int64(), name: pa.int64()}), 3))
    assert adapter.refusal(pa.schema({"user_id": pa.struct({"a.b": pa.int64()})}), 3) is None


@pytest.mark.parametrize("variant", ["excel[save=openpyxl,read=openpyxl]", "excel[save=xlsxwriter,read=calamine]"])
def test_excel_refuses_time_zones(variant: str) -> None:
    adapter = _adapter(variant, loaded=False)
    assert "column t (timestamp[us, tz=UTC])" in str(adapter.refusal(pa.schema({"t": pa.timestamp("us", "UTC")}), 3))
    assert adapter.refusal(pa.schema({"t": pa.timestamp("us")}), 3) is None


def test_values_that_a_library_has_no_place_for_are_refused(tmp_path: Path) -> None:
    wide = pa.table({"v": pa.array([Decimal("9" * 76)], pa.decimal256(76, 0))})
    with pytest.raises(RefusedData, match="DuckDB refuses this data"):
        _adapter("csv[engine=duckdb]").save(wide, tmp_path / "table.csv")
    frame = pa.table({"v": ["a\x01b"]}).to_pandas()
    with pytest.raises(RefusedData, match="openpyxl: "):
        _adapter("excel[save=openpyxl,read=openpyxl]").save(frame, tmp_path / "table.xlsx")


@pytest.mark.parametrize("variant", ["orc[engine=pyarrow,codec=none]", "orc[engine=pandas,codec=none]"])
def test_a_time_beyond_nanoseconds_is_refused_where_orc_is_read(variant: str, tmp_path: Path) -> None:
    adapter, place = _adapter(variant), tmp_path / "table.orc"
    table = pa.table({"t": pa.array([datetime(9999, 12, 31)], pa.timestamp("us"))})
    adapter.save(table if variant.startswith("orc[engine=pyarrow") else table.to_pandas(), place)
    for read in (adapter.read, lambda at: adapter.project(at, ["t"])):
        with pytest.raises(RefusedData, match="out of range for nanosecond"):
            read(place)
    place.write_bytes(b"no ORC")
    with pytest.raises(OSError, match="Not an ORC file"):
        adapter.read(place)


def test_what_lance_says_by_an_oserror_is_a_refusal_only_of_a_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = _adapter("lance[engine=pylance]")
    empty = pa.table({"x": [1, 2], "v": pa.array([{}, None], pa.struct([]))})
    with pytest.raises(RefusedData, match="Lance refuses this data"):
        adapter.save(empty, tmp_path / "refused.lance")

    def full(*_: object, **__: object) -> None:
        raise OSError("LanceError(IO): Unable to write file: No space left on device (os error 28)")

    monkeypatch.setattr(adapter._lance, "write_dataset", full)
    with pytest.raises(OSError, match="No space left"):
        adapter.save(empty, tmp_path / "full.lance")
