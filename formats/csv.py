"""CSV: text, one row a line."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Calls, Can, Native, Setting, Stored, TabularFormat
from adapters.losses import Loss
from formats import pandas_codecs
from formats import pandas_losses as shared

if TYPE_CHECKING:
    import pandas as pd

_ALWAYS = (shared.DICTIONARY_AS_TEXT,)
_TYPES = (
    shared.INTEGERS_AS_INT64,
    shared.float32_as_float64(relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"),
    shared.DECIMALS_AS_FLOAT64,
    shared.written_as_text(
        "binary", "date", "date-early", "time", "duration", "list", "struct", "map", *shared.TIMESTAMPS
    ),
)


class CsvPandas(TabularFormat):
    """pandas.to_csv and read_csv."""

    format = "csv"
    engine = "pandas"
    title = "CSV"
    distributions = ("pandas",)
    native = Native.PANDAS
    suffix = ".csv"
    settings: ClassVar = {
        "keep_default_na": Setting(("true", "false"), "true", "whether 'NA', 'null' and '' are read as missing"),
        **pandas_codecs.SETTINGS,
    }
    levels = pandas_codecs.LEVELS
    codec_distributions = pandas_codecs.DISTRIBUTIONS
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What text without types loses, and what the reader takes for missing."""
        if self.values["keep_default_na"] == "false":
            return (
                *_ALWAYS,
                shared.NULL_AS_EMPTY_TEXT,
                shared.NUMERIC_TEXT,
                shared.ANYTHING_WITH_NULLS_AS_TEXT,
                *_TYPES,
            )
        missing = shared.missing_words(shared.READ_CSV_WORDS, lossless="csv[engine=pandas,keep_default_na=false]")
        return (*_ALWAYS, shared.NAN_AS_NULL, missing, shared.NUMERIC_TEXT, *_TYPES, *shared.TEXT_TYPES_WITH_NULLS)

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Seen with pandas 3.1."""
        return {"string-return": "to_csv does not quote a carriage return, and read_csv takes it for the end of a row"}

    @property
    def calls(self) -> Calls:
        """As a user writes them."""
        codec = pandas_codecs.argument(pandas_codecs.for_save(self.values))
        keep = "" if self.values["keep_default_na"] == "true" else ", keep_default_na=False"
        packed = pandas_codecs.argument(pandas_codecs.for_read(self.values))
        return Calls(
            ("import pandas as pd",),
            f"{{held}}.to_csv({{path}}, index=False{codec})",
            f"pd.read_csv({{path}}{keep}{packed})",
        )

    def load_library(self) -> None:
        """Import pandas with what it loads on the first call."""
        import pandas

        import_module("pandas.io.formats.csvs")
        pandas_codecs.load(self.values)
        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one file without the index."""
        table.to_csv(location, index=False, compression=pandas_codecs.for_save(self.values))

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns, types guessed by the call."""
        return self._pandas.read_csv(
            location,
            keep_default_na=self.values["keep_default_na"] == "true",
            compression=pandas_codecs.for_read(self.values),
        )

    def stored(self, location: Path) -> Stored:
        """The codec around the text."""
        return Stored(pandas_codecs.codec_of(location))


ENGINES = (CsvPandas,)
