"""XML: text with one element for each row, in which every value is enclosed in two tags with the name of the column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Besides, Calls, Can, Maturity, Native, Setting, Stage, TabularFormat
from formats.shared import pandas_codecs, refusals
from formats.shared import pandas_losses as shared

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_ELEMENT = re.compile(r"[^\W\d][\w.-]*")
"""Names that an XML element may have (XML 1.0, section 2.3), except for names with a colon or some rare characters."""
_PANDAS_MODULES = ("pandas.io.xml", "pandas.io.formats.xml", "pandas.core.methods.to_dict")
_MODULES: Mapping[str | int | None, tuple[str, ...]] = {
    "lxml": ("lxml.etree", "lxml._elementpath"),
    "etree": ("xml.etree.ElementTree", "xml.dom.minidom", "xml.dom.expatbuilder"),
}
"""Maps a parser to the modules that pandas imports when it first uses this parser."""


class XmlPandas(TabularFormat):
    """XML by pandas' to_xml and read_xml, with lxml or the standard library's etree as the parser."""

    # Reading only some columns is not offered. The parameter `iterparse` of read_xml would allow it, but read_xml then
    # searches each element for every requested column. With lxml, 10 of 20 columns took 1.7 times as long as all
    # columns, and with etree the time grows with the square of the number of columns. With `iterparse`, read_xml also
    # ignores missing columns, and finds no rows if a column is named `row`.

    format = "xml"
    engine = "pandas"
    title = "XML"
    distributions = ("pandas",)
    besides_for: ClassVar = {"parser=lxml": Besides(("lxml",), "xml")}
    native = Native.PANDAS
    suffix = ".xml"
    parts = "a document is one tree with one writer"
    settings: ClassVar = {"parser": Setting(("lxml", "etree"), "lxml", "library that builds and parses the tree")}
    maturity = Maturity(Stage.ESTABLISHED, "a W3C recommendation since 1998; every language reads it")
    capabilities = frozenset({Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    losses = (
        shared.NULLS_AS_FLOAT64,
        shared.DICTIONARY_AS_VALUES,
        shared.NAN_AS_NULL,
        shared.missing_words(shared.READ_CSV_WORDS),
        shared.NUMERIC_TEXT,
        shared.INTEGERS_AS_INT64,
        shared.float16_as_float64(bound="the same number as float64"),
        shared.float32_as_float64(bound="the same number as float64"),
        shared.DECIMALS_AS_FLOAT64,
        shared.written_as_text("binary", "date", "date-early", "time", "duration", "struct", *shared.TIMESTAMPS),
        *shared.TEXT_TYPES_WITH_NULLS,
    )
    """Known changes to data because XML stores no types, and because the reader reads some words as missing values."""

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Kinds of columns that pandas 3.1 returns with wrong values, each with a description of the fault."""
        if self.values["parser"] == "lxml":
            return {}
        return {"string-return": "a carriage return is written as it is, and the parser makes a newline of it"}

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has vectors, or column names that cannot be the name of an XML element."""
        for name in schema.names:
            if not _ELEMENT.fullmatch(name):
                return f"the column name {name!r} cannot be the name of an XML element"
        return refusals.of_printed_vectors(schema) or super().refusal(schema, rows)

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        parser = "" if self.values["parser"] == "lxml" else f', parser="{self.values["parser"]}"'
        return Calls(
            ("import pandas as pd",),
            f"{{held}}.to_xml({{path}}, index=False{parser})",
            f"pd.read_xml({{path}}{parser})",
        )

    def load_library(self) -> None:
        """Import the parser, and pandas including modules that its first save or read would import."""
        import pandas

        # If lxml is installed, pandas imports it when it reads, whichever parser is used.
        lxml = _MODULES["lxml"] if find_spec("lxml") is not None else ()
        for module in (*_PANDAS_MODULES, *_MODULES[self.values["parser"]], *lxml):
            import_module(module)
        pandas_codecs.load()
        self._pandas = pandas

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write the whole table as one file, without the index of the DataFrame."""
        parser: Any = self.values["parser"]
        table.to_xml(location, index=False, parser=parser)

    def read(self, location: Path) -> pd.DataFrame:
        """Read all columns. pandas guesses their types from the text."""
        parser: Any = self.values["parser"]
        return self._pandas.read_xml(location, parser=parser)


ENGINES = (XmlPandas,)
