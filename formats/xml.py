"""XML: text, one element a row, names repeated twice in each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Can, Native, Stored, TabularFormat

if TYPE_CHECKING:
    import pandas as pd


class XmlPandas(TabularFormat):
    """pandas.to_xml and read_xml, with lxml."""

    format = "xml"
    engine = "pandas"
    title = "XML"
    distributions = ("pandas", "lxml")
    native = Native.PANDAS
    suffix = ".xml"
    capabilities = frozenset({Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})

    def load_library(self) -> None:
        """Import pandas with its XML reader and writer, and lxml."""
        import lxml.etree  # noqa: F401  # the parser that pandas takes
        import pandas
        import pandas.io.formats.xml
        import pandas.io.xml

        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file without the index."""
        table.to_xml(location, index=False)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns, types guessed by the call."""
        return self._pandas.read_xml(location)

    def stored(self, location: Path) -> Stored:
        """Text has neither codec nor encodings."""
        return Stored()


ENGINES = (XmlPandas,)
