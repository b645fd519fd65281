"""CSV: text, one row a line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Can, Native, Setting, Stored, TabularFormat

if TYPE_CHECKING:
    import pandas as pd


class CsvPandas(TabularFormat):
    """pandas.to_csv and read_csv."""

    format = "csv"
    engine = "pandas"
    title = "CSV"
    distributions = ("pandas",)
    native = Native.PANDAS
    suffix = ".csv"
    settings: ClassVar = {
        "keep_default_na": Setting(("true", "false"), "true", "whether 'NA', 'null' and '' are read as missing")
    }
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})

    def load_library(self) -> None:
        """Import pandas with its CSV parser and formatter."""
        import pandas
        import pandas.io.formats.csvs

        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file without the index."""
        table.to_csv(location, index=False)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns, types guessed by the call."""
        return self._pandas.read_csv(location, keep_default_na=self.values["keep_default_na"] == "true")

    def stored(self, location: Path) -> Stored:
        """Text has neither codec nor encodings."""
        return Stored()


ENGINES = (CsvPandas,)
