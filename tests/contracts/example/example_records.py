"""JSON documents: all rows of a table as one array of objects, written with Python's json module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from adapters.contract import Can, Maturity, Native, Records, Stage, TabularFormat
from formats.shared import pandas_losses as shared
from formats.shared import text_losses as text


class JsonDocument(TabularFormat):
    """Uses json.dump and json.load on a list of rows."""

    format = "json-document"
    engine = "json"
    title = "JSON document"
    distributions = ("pyarrow",)
    native = Native.RECORDS
    suffix = ".json"
    maturity = Maturity(Stage.ESTABLISHED, "RFC 8259; every language reads it")
    capabilities = frozenset({Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    losses = (
        text.NULLS_AS_NULL,
        shared.float16_as_float64(bound="the same number as float64"),
        shared.float32_as_float64(bound="the same number as float64"),
        shared.DICTIONARY_AS_VALUES,
        text.INTEGERS_AS_INT64,
        shared.vectors_as_lists_of_float64(bound="the same numbers as float64"),
    )

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Faults that every version of the library has."""
        return {"map": "maps come back as structs that have every key of the column"}

    def load_library(self) -> None:
        """Import json."""
        import json

        self._json = json

    def save(self, table: Records, location: Path) -> None:
        """Write all rows. json raises an error for values that have no JSON notation."""
        with location.open("w") as file:
            self._json.dump(list(table.rows), file)

    def read(self, location: Path) -> Records:
        """Read all rows. The file has no schema."""
        with location.open() as file:
            return Records(None, self._json.load(file))


ENGINES = (JsonDocument,)
