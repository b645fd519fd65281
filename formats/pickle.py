"""Pickle: Python's own serialisation of the DataFrame.

Reading a pickle can run code that the author of the file chose. Format Bench reads only pickles that it has written in
the same run. Do not use this adapter for other files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, Stage, Stored, TabularFormat
from formats.shared import pandas_codecs
from formats.shared import pandas_losses as shared

if TYPE_CHECKING:
    import pandas as pd


class PicklePandas(TabularFormat):
    """Pickle by pandas' to_pickle and read_pickle. These functions cannot read single columns, because a pickle is one
    object."""

    format = "pickle"
    engine = "pandas"
    title = "Pickle"
    distributions = ("pandas",)
    native = Native.PANDAS
    suffix = ".pkl"
    parts = "a pickle is one object"
    settings: ClassVar = dict(pandas_codecs.SETTINGS)
    levels = pandas_codecs.LEVELS
    codec_distributions = pandas_codecs.DISTRIBUTIONS
    maturity = Maturity(
        Stage.YOUNG,
        "a pickle holds pandas' own objects: only pandas reads them, and an older version does not always read what a "
        "newer one wrote",
    )
    capabilities = frozenset({Can.TYPES, Can.NESTED, Can.SINGLE_FILE})
    losses = shared.BY_CONVERSION

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        codec = pandas_codecs.argument(pandas_codecs.for_save(self.values))
        packed = pandas_codecs.argument(pandas_codecs.for_read(self.values))
        return Calls(
            ("import pandas as pd",), f"{{held}}.to_pickle({{path}}{codec})", f"pd.read_pickle({{path}}{packed})"
        )

    def load_library(self) -> None:
        """Import pandas."""
        import pandas

        pandas_codecs.load(self.values)
        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file."""
        table.to_pickle(location, compression=pandas_codecs.for_save(self.values))

    def read(self, location: Path) -> pd.DataFrame:
        """Read the DataFrame."""
        return self._pandas.read_pickle(location, compression=pandas_codecs.for_read(self.values))

    def stored(self, location: Path) -> Stored:
        """Return the codec of the file."""
        return Stored(pandas_codecs.codec_of(location))


ENGINES = (PicklePandas,)
