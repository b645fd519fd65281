"""Excel: a workbook of one sheet (zipped XML), by the libraries that pandas offers to write and to read it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Can, Native, Setting, Stored, TabularFormat

if TYPE_CHECKING:
    import pandas as pd

_SHEET_ROWS = 1_048_576
"""Rows of a sheet, by the Excel specification of limits; the names take the first."""


class ExcelPandas(TabularFormat):
    """DataFrame.to_excel and read_excel."""

    format = "excel"
    engine = None
    title = "Excel"
    distributions = ("openpyxl", "python-calamine", "xlsxwriter", "pandas")
    native = Native.PANDAS
    suffix = ".xlsx"
    settings: ClassVar = {
        "save": Setting(("openpyxl", "xlsxwriter"), "openpyxl", "the library that writes", always_spelled=True),
        "read": Setting(("openpyxl", "calamine"), "openpyxl", "the library that reads", always_spelled=True),
    }
    capabilities = frozenset({Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    max_rows = _SHEET_ROWS - 1

    def load_library(self) -> None:
        """Import pandas with the two libraries that this variant names."""
        import pandas
        import pandas.io.excel
        import pandas.io.formats.excel

        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one sheet without the index."""
        table.to_excel(location, index=False, engine=self.values["save"])

    def read(self, location: Path) -> pd.DataFrame:
        """Read the first sheet."""
        return self._pandas.read_excel(location, engine=self.values["read"])

    def stored(self, location: Path) -> Stored:
        """The library that wrote the workbook, as its properties name it; the zip's method belongs to the format."""
        import zipfile

        with zipfile.ZipFile(location) as archive:
            application = archive.read("docProps/app.xml").decode()
        return Stored(None, (), {"application": application.partition("<Application>")[2].partition("<")[0]})


ENGINES = (ExcelPandas,)
