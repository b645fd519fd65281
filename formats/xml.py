"""XML: text, one element a row, names repeated twice in each."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.contract import Calls, Can, Native, Stored, TabularFormat
from adapters.losses import Loss
from formats import pandas_codecs
from formats import pandas_losses as shared

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

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What text without types loses, and what the reader takes for missing."""
        return (
            shared.DICTIONARY_AS_TEXT,
            shared.NAN_AS_NULL,
            shared.missing_words(shared.READ_CSV_WORDS),
            shared.NUMERIC_TEXT,
            shared.INTEGERS_AS_INT64,
            shared.float32_as_float64(bound="the same number as float64"),
            shared.DECIMALS_AS_FLOAT64,
            shared.written_as_text("binary", "date", "date-early", "time", "duration", "struct", *shared.TIMESTAMPS),
            *shared.TEXT_TYPES_WITH_NULLS,
        )

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        return Calls(("import pandas as pd",), "{held}.to_xml({path}, index=False)", "pd.read_xml({path})")

    def load_library(self) -> None:
        """Import lxml, and pandas with what it loads on the first call."""
        import pandas

        for module in ("lxml.etree", "pandas.io.xml", "pandas.io.formats.xml", "pandas.core.methods.to_dict"):
            import_module(module)
        pandas_codecs.load()
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
