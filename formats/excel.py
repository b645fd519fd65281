"""Excel: a workbook of one sheet (zipped XML), read and written by the libraries that pandas supports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import (
    Besides,
    Calls,
    Can,
    Maturity,
    Native,
    PartCall,
    Setting,
    Stage,
    Stored,
)
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
"""Most rows of a sheet, by Excel's specification of limits. The first row holds the names."""

_CELL_CHARACTERS = 32_767
"""Most characters of a cell, by the same specification. pandas cuts longer text with a warning."""

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
"""Values that a cell cannot hold, and guesses of pandas' reader."""

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
"""Values that a cell cannot hold, and guesses of polars' reader, which keeps nulls and dates."""

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
"""Library -> modules that pandas loads for it on its first call."""


class ExcelPandas(ProjectsByOneCall):
    """DataFrame.to_excel; pandas.read_excel, or polars' read_excel, which uses calamine through fastexcel."""

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
        """Values that a cell cannot hold (numbers are float64, times have milliseconds), and the reader's guesses."""
        formulas = (_FORMULAS_AS_NULL,) if self.values["save"] == "openpyxl" else ()
        if self.values["read"] == "polars":
            return (
                text.NULLS_AS_TEXT,
                shared.DICTIONARY_AS_VALUES,
                shared.NAN_AS_NULL,
                *formulas,
                *_LOSSES_BY_POLARS,
            )
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
        """Faults of pandas 3.1 and polars 2.1."""
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
        """Refuse vectors, times with a zone, and names that polars takes for a pattern."""
        import pyarrow.types as of

        for field in schema:
            if self.values["read"] == "polars" and re.fullmatch(r"\*|\^.*\$", field.name, re.DOTALL):
                return f"polars' read_excel takes the column name {field.name!r} for a pattern"
            if of.is_timestamp(field.type) and field.type.tz is not None:
                return f"pandas cannot write times with a zone, which Excel lacks (column {field.name}: {field.type})"
        return refusals.of_printed_vectors(schema) or super().refusal(schema, rows)

    @property
    def native_read(self) -> Native:
        """The kind of DataFrame that the reading call returns: of polars or of pandas."""
        return Native.POLARS if self.values["read"] == "polars" else Native.PANDAS

    @property
    def calls(self) -> Calls | None:
        """The calls as a user writes them; None for polars, whose result needs more than one line to convert."""
        if self.values["read"] == "polars":
            return None
        return Calls(
            ("import pandas as pd",),
            f'{{held}}.to_excel({{path}}, index=False, engine="{self.values["save"]}")',
            f'pd.read_excel({{path}}, engine="{self.values["read"]}")',
            project=PartCall(f'pd.read_excel({{path}}, usecols=columns, engine="{self.values["read"]}")[columns]'),
        )

    def load_library(self) -> None:
        """Import pandas, the two libraries of this variant, and modules that their first call would load."""
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
        """Return only these columns; every cell of the sheet is parsed all the same."""
        if self.values["read"] == "polars":
            # Otherwise rows without a value in these columns would be dropped.
            return self._polars.read_excel(location, columns=columns, drop_empty_rows=False).select(
                self._polars.selectors.by_name(*columns)
            )
        engine: Any = self.values["read"]
        return in_order(self._pandas.read_excel(location, usecols=columns, engine=engine), columns)

    def stored(self, location: Path) -> Stored:
        """Return the library that wrote the workbook, from its properties. The zip's method is part of the format."""
        import zipfile

        with zipfile.ZipFile(location) as archive:
            application = archive.read("docProps/app.xml").decode()
        return Stored(None, (), {"application": application.partition("<Application>")[2].partition("<")[0]})


ENGINES = (ExcelPandas,)
