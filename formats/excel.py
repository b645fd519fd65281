"""Excel workbooks of one sheet, by libraries that pandas supports, and by polars. A workbook is XML in a zip file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Besides, Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored
from adapters.errors import RefusedData
from adapters.losses import Cause, Expect, Loss, Relation
from adapters.relations import floats, integers, texts, times, written
from formats.shared import pandas_losses as shared
from formats.shared import refusals
from formats.shared import text_losses as text
from formats.shared.projection import ProjectsByOneCall, in_order

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_SHEET_ROWS = 1_048_576
"""Maximum number of rows of a sheet, as Excel's documentation states it. The first row has the names of the columns."""

_CELL_CHARACTERS = 32_767
"""Maximum number of characters of a sheet's cell, as Excel's documentation states it. pandas cuts longer text with a
warning."""

_FORMULAS_AS_NULL = Loss(
    "text that begins with '=' is stored as a formula without a value and becomes missing",
    "only such text",
    Cause.CALL,
    Relation(texts.formulas_as_null),
    frozenset({"string-formula"}),
)

_WITHIN_16_DIGITS = 1e-15

_TEXT_IS_CUT = Loss(
    f"text is cut after {_CELL_CHARACTERS:,} characters",
    "the first characters are kept",
    Cause.FORMAT,
    Relation(texts.text_cut_at(_CELL_CHARACTERS)),
    frozenset({"string-long"}),
)

_FLOAT32_AS_FLOAT64 = shared.float32_as_float64(
    relative_tolerance=_WITHIN_16_DIGITS, bound="float64 within 1e-15 of the value"
)

_FLOAT16_AS_FLOAT64 = shared.float16_as_float64(
    relative_tolerance=_WITHIN_16_DIGITS, bound="float64 within 1e-15 of the value"
)

_DURATIONS_AS_DAYS = Loss(
    "durations become days as float64",
    "within 1e-15 days, and 1e-15 of the value",
    Cause.CALL,
    Relation(times.durations_as_days, tolerance=1e-15, relative_tolerance=_WITHIN_16_DIGITS),
    frozenset({"duration"}),
)

_AS_TEXT = shared.written_as_text(
    "binary",
    "time",
    "list",
    "struct",
    "map",
    expect=written.of_types("binary", "large_binary", "time32", "time64", "list", "struct", "map"),
)


def _integers_are_rounded(expect: Expect) -> Loss:
    return Loss(
        "integers are rounded to float64",
        "int64 beyond 2^53 changes",
        Cause.FORMAT,
        Relation(expect),
        frozenset({"int64-exact"}),
    )


def _floats_keep_16_digits(*kinds: str) -> Loss:
    return Loss(
        "floats keep 16 digits and lose the sign of zero",
        "within 1e-15 of the value",
        Cause.CALL,
        Relation(floats.any_floats, relative_tolerance=_WITHIN_16_DIGITS),
        frozenset(kinds),
    )


_CELL_LOSSES = (
    _TEXT_IS_CUT,
    shared.integers_as_int64("int8", "int16", "int32", "uint8", "uint16", "uint32"),
    _integers_are_rounded(integers.integers_rounded_to_float64),
    shared.integers_with_nulls_as_float64("int8", "int16", "int32", "int64-exact", "uint8", "uint16", "uint32"),
    shared.BOOLEANS_WITH_NULLS_AS_FLOAT64,
    _floats_keep_16_digits("float64", "float64-zero"),
    _FLOAT16_AS_FLOAT64,
    _FLOAT32_AS_FLOAT64,
    shared.DECIMALS_AS_FLOAT64,
    shared.WHOLE_FLOATS_AS_INT64,
    Loss(
        "timestamps keep milliseconds and become us",
        "cut to milliseconds",
        Cause.FORMAT,
        Relation(times.timestamps_cut_to_ms),
        frozenset({"timestamp-s", "timestamp-ms", "timestamp-us", "timestamp-ns"}),
    ),
    Loss(
        "dates become timestamps at midnight (us)",
        "the same days",
        Cause.CALL,
        Relation(times.dates_as_timestamps),
        frozenset({"date"}),
    ),
    _DURATIONS_AS_DAYS,
    _AS_TEXT,
)
"""Changes to data because a sheet's cells cannot store all values exactly, or because pandas' reader guesses types."""

_LOSSES_BY_POLARS = (
    text.EMPTY_TEXT_AS_NULL,
    _TEXT_IS_CUT,
    text.INTEGERS_AS_INT64,
    _integers_are_rounded(integers.any_integers_rounded_to_float64),
    text.INFINITE_FLOATS_AS_TEXT,
    text.WHOLE_FLOATS_AS_INT64,
    _floats_keep_16_digits("float64"),
    _FLOAT16_AS_FLOAT64,
    _FLOAT32_AS_FLOAT64,
    shared.DECIMALS_AS_FLOAT64,
    Loss(
        "timestamps become ms",
        "cut to milliseconds",
        Cause.FORMAT,
        Relation(times.timestamps_as_ms),
        frozenset({"timestamp-s", "timestamp-us", "timestamp-ns"}),
    ),
    _DURATIONS_AS_DAYS,
    _AS_TEXT,
)
"""Changes to data because a sheet's cells cannot store all values exactly, or because polars' reader guesses types.

Unlike pandas' reader, polars' reader returns dates as dates, and keeps nulls in columns of any type."""

_FORMULA = "text that begins with '=' comes back as the number 0"
_EARLY = "days before 1900 come back one day off, or as datetime.time"

_MODULES: Mapping[str | int | None, tuple[str, ...]] = {
    "openpyxl": (
        "openpyxl.cell._writer",
        "openpyxl.packaging.extended",
        "pandas.io.excel._openpyxl",
        "encodings.cp437",
    ),
    "xlsxwriter": ("xlsxwriter.workbook", "pandas.io.excel._xlsxwriter", "encodings.utf_16_le"),
    "calamine": ("python_calamine", "pandas.io.excel._calamine"),
    "polars": ("polars", "fastexcel"),
}
"""Maps a library to the modules that the first call with this library would import."""


class ExcelPandas(ProjectsByOneCall):
    """Excel, written by pandas' to_excel, and read by pandas' read_excel or polars' read_excel.

    polars' read_excel uses the library calamine through the package fastexcel."""

    format = "excel"
    engine = None
    title = "Excel"
    distributions = ("openpyxl", "python-calamine", "xlsxwriter", "pandas")
    besides_for: ClassVar = {"read=polars": Besides(("polars", "fastexcel"), "engines")}
    native = Native.PANDAS
    suffix = ".xlsx"
    parts = "a workbook is one file with one writer"
    settings: ClassVar = {
        "save": Setting(("openpyxl", "xlsxwriter"), "openpyxl", "library that writes", always_spelled=True),
        "read": Setting(("openpyxl", "calamine", "polars"), "openpyxl", "library that reads", always_spelled=True),
    }
    maturity = Maturity(Stage.ESTABLISHED, "ISO/IEC 29500; Excel, LibreOffice and libraries of every language read it")
    capabilities = frozenset({Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    max_rows = _SHEET_ROWS - 1
    lost_names = r"\A\Z|[\0\r]"

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Known changes to data because of what a sheet's cells can store, and because the reader guesses types.

        In a cell, numbers are float64, and times are exact to a millisecond."""
        formulas = (_FORMULAS_AS_NULL,) if self.values["save"] == "openpyxl" else ()
        if self.values["read"] == "polars":
            return (text.NULLS_AS_TEXT, shared.DICTIONARY_AS_VALUES, shared.NAN_AS_NULL, *formulas, *_LOSSES_BY_POLARS)
        return (
            shared.NULLS_AS_FLOAT64,
            shared.DICTIONARY_AS_VALUES,
            shared.NAN_AS_NULL,
            *formulas,
            shared.missing_words(shared.READ_CSV_WORDS),
            shared.NUMERIC_TEXT,
            *_CELL_LOSSES,
        )

    @property
    def known_faults(self) -> Mapping[str, str]:
        """Kinds of columns that pandas 3.1 or polars 2.1 returns with wrong values, each with a description of the
        fault."""
        if self.values["read"] == "polars":
            return {"date-early": _EARLY} if self.values["save"] == "openpyxl" else {"string-formula": _FORMULA}
        faults = {
            "int64": "integers near 2^63 come back as objects, because a cell holds a float64",
            "uint64": "integers beyond 2^53 come back as other integers or as objects, because a cell holds a float64",
        }
        if self.values["save"] == "xlsxwriter":
            faults["string-formula"] = _FORMULA
            faults["date-early"] = _EARLY
            if self.values["read"] == "openpyxl":
                faults["string-return"] = "a carriage return comes back as '_x000D_'"
        if self.values["read"] == "calamine":
            faults["date-early"] = _EARLY
        return faults

    def refusal(self, schema: pa.Schema, rows: int) -> str | None:
        """Return a reason if the table has vectors, timestamps with a time zone, or (with read=polars) column names
        that polars would interpret as a pattern."""
        import pyarrow.types as of

        for field in schema:
            if self.values["read"] == "polars" and re.fullmatch(r"\*|\^.*\$", field.name, re.DOTALL):
                return f"polars' read_excel takes the column name {field.name!r} for a pattern"
            if of.is_timestamp(field.type) and field.type.tz is not None:
                return f"Excel has no time zones, so pandas cannot write column {field.name} ({field.type})"
        return refusals.of_printed_vectors(schema) or super().refusal(schema, rows)

    @property
    def native_read(self) -> Native:
        """The kind of object that `read` returns: a DataFrame of polars with read=polars, else one of pandas."""
        return Native.POLARS if self.values["read"] == "polars" else Native.PANDAS

    @property
    def calls(self) -> Calls | None:
        """The code that a user writes to save and read the data without this adapter.

        None if polars reads, because converting polars' result to a pandas DataFrame takes more than one line.
        """
        if self.values["read"] == "polars":
            return None
        return Calls(
            ("import pandas as pd",),
            f'{{held}}.to_excel({{path}}, index=False, engine="{self.values["save"]}")',
            f'pd.read_excel({{path}}, engine="{self.values["read"]}")',
            project=PartCall(f'pd.read_excel({{path}}, usecols=columns, engine="{self.values["read"]}")[columns]'),
        )

    def load_library(self) -> None:
        """Import pandas, the libraries that save and read with these settings, and the modules that these libraries
        would import in their first call."""
        import pandas

        for module in ("pandas.io.formats.excel", *_MODULES[self.values["save"]], *_MODULES[self.values["read"]]):
            import_module(module)
        self._pandas = pandas
        if self.values["read"] == "polars":
            self._polars = import_module("polars")
        by_openpyxl = self.values["save"] == "openpyxl"
        self._illegal: tuple[type[Exception], ...] = (
            (import_module("openpyxl.utils.exceptions").IllegalCharacterError,) if by_openpyxl else ()
        )

    def save(self, table: pd.DataFrame, location: Path) -> None:
        """Write one sheet without the index. Raises RefusedData for control characters, which openpyxl rejects."""
        try:
            table.to_excel(location, index=False, engine=self.values["save"])  # type: ignore[arg-type]
        except self._illegal as error:
            raise RefusedData(f"openpyxl: {str(error)!r}") from error

    def read(self, location: Path) -> pd.DataFrame | pl.DataFrame:
        """Read the first sheet."""
        if self.values["read"] == "polars":
            return self._polars.read_excel(location)
        return self._pandas.read_excel(location, engine=self.values["read"])  # type: ignore[arg-type]

    def project(self, location: Path, columns: list[str]) -> pd.DataFrame | pl.DataFrame:
        """Return only these columns. The libraries nevertheless parse all cells of the sheet."""
        if self.values["read"] == "polars":
            # By default, polars would drop rows that have no value in these columns.
            return self._polars.read_excel(location, columns=columns, drop_empty_rows=False).select(
                self._polars.selectors.by_name(*columns)
            )
        engine: Any = self.values["read"]
        return in_order(self._pandas.read_excel(location, usecols=columns, engine=engine), columns)

    def stored(self, location: Path) -> Stored:
        """Return the name of the application that wrote the workbook, from the workbook's properties. Return no codec,
        because all workbooks are compressed in the same way."""
        import zipfile

        with zipfile.ZipFile(location) as archive:
            application = archive.read("docProps/app.xml").decode()
        return Stored(None, (), {"application": application.partition("<Application>")[2].partition("<")[0]})


ENGINES = (ExcelPandas,)
