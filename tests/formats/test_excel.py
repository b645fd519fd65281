"""Excel keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from formats.registry import FORMATS
from tests.contracts.tabular import TabularFormatContract, WholeTableContract


class TestExcelByOpenpyxl(TabularFormatContract):
    variant = "excel[save=openpyxl,read=openpyxl]"


@pytest.mark.slow
class TestExcelByXlsxwriterAndCalamine(TabularFormatContract):
    variant = "excel[save=xlsxwriter,read=calamine]"


@pytest.mark.slow
class TestExcelByOpenpyxlAndCalamine(WholeTableContract):
    variant = "excel[save=openpyxl,read=calamine]"


@pytest.mark.slow
class TestExcelByXlsxwriterAndOpenpyxl(WholeTableContract):
    variant = "excel[save=xlsxwriter,read=openpyxl]"


@pytest.mark.slow
class TestExcelByXlsxwriterAndPolars(WholeTableContract):
    variant = "excel[save=xlsxwriter,read=polars]"


@pytest.mark.slow
class TestExcelByOpenpyxlAndPolars(TabularFormatContract):
    variant = "excel[save=openpyxl,read=polars]"


@pytest.mark.parametrize("read", ["openpyxl", "calamine", "polars"])
def test_a_row_without_a_value_in_the_columns_asked_for_is_a_row(read: str, tmp_path: Path) -> None:
    adapter = FORMATS.build(f"excel[save=openpyxl,read={read}]")
    adapter.load_library()
    location = tmp_path / "t.xlsx"
    adapter.save(pd.DataFrame({"a": [1.5, None, 2.5, None], "b": [1, 2, 3, 4]}), location)
    handle = adapter.open(location)
    assert handle.project is not None
    found = handle.project(["a"])
    handle.close()
    values = found["a"].to_list()
    assert [None if value is None or value != value else value for value in values] == [1.5, None, 2.5, None]
