"""JSON Lines: text, one JSON object a row, names repeated in each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Can, Native, Setting, Stored, TabularFormat

if TYPE_CHECKING:
    import pandas as pd


class JsonPandas(TabularFormat):
    """pandas.to_json and read_json with lines=True."""

    format = "json"
    engine = "pandas"
    title = "JSON Lines"
    distributions = ("pandas",)
    native = Native.PANDAS
    suffix = ".json"
    settings: ClassVar = {"double_precision": Setting(("10", "15"), "10", "decimals of a float")}
    capabilities = frozenset({Can.APPEND, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})

    def load_library(self) -> None:
        """Import pandas with its JSON reader."""
        import pandas
        import pandas.io.json

        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file without the index."""
        precision = int(str(self.values["double_precision"]))
        table.to_json(location, orient="records", lines=True, double_precision=precision)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns, types guessed by the call."""
        return self._pandas.read_json(location, orient="records", lines=True)

    def stored(self, location: Path) -> Stored:
        """Text has neither codec nor encodings."""
        return Stored()


ENGINES = (JsonPandas,)
