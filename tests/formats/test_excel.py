"""Excel keeps the contract."""

import pytest

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
