"""Excel keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract


class TestExcelByOpenpyxl(TabularFormatContract):
    variant = "excel[save=openpyxl,read=openpyxl]"


@pytest.mark.slow
class TestExcelByXlsxwriterAndCalamine(TabularFormatContract):
    variant = "excel[save=xlsxwriter,read=calamine]"


@pytest.mark.slow
class TestExcelByOpenpyxlAndCalamine(TabularFormatContract):
    variant = "excel[save=openpyxl,read=calamine]"


@pytest.mark.slow
class TestExcelByXlsxwriterAndOpenpyxl(TabularFormatContract):
    variant = "excel[save=xlsxwriter,read=openpyxl]"


@pytest.mark.slow
class TestExcelByXlsxwriterAndPolars(TabularFormatContract):
    variant = "excel[save=xlsxwriter,read=polars]"


@pytest.mark.slow
class TestExcelByOpenpyxlAndPolars(TabularFormatContract):
    variant = "excel[save=openpyxl,read=polars]"
