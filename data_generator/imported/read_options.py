"""Options with which the user states how to read a file whose content is ambiguous.

Readers follow these options even if they detect something else in the file.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection

import msgspec

from data_generator.errors import DataError

_PLAIN_TYPES = (
    *("text", "int64", "uint64", "float64", "boolean", "date", "timestamp", "timestamp-utc", "time", "category"),
)
TYPES = (*_PLAIN_TYPES, "decimal(P,S)")
"""Names of the types that the user can choose for a column. A decimal(P,S) has P digits, of which S are after the
decimal point."""

_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_MOST_DECIMAL_DIGITS = 38


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options for reading the user's file or folder. With the defaults, the content determines how the input is
    read."""

    columns: dict[str, str] = {}
    """Name of a column -> its type, one of `TYPES`."""
    delimiter: str | None = None
    """One character between the fields of a CSV file."""
    decimal: str = "."
    """The decimal point of numbers in text: '.' or ','."""
    sheet: str | None = None
    """Name of a sheet of an Excel workbook, or its number, counted from 1."""
    encoding: str | None = None
    """Encoding of a text file, as Python names it."""
    header: bool = True
    """Whether the first row has the column names."""
    day_first: bool = False
    """Whether dates in text begin with the day: 31.12.2024, 31/12/2024."""

    def checked(self) -> ReadOptions:
        """Return these options unchanged if they are valid. Raises DataError otherwise."""
        for name, kind in self.columns.items():
            if kind not in _PLAIN_TYPES and not _is_decimal(kind):
                raise DataError(
                    f"`columns`: the type {kind!r} of column {name!r} does not exist.",
                    f"Choose among {', '.join(TYPES)}. P is at most {_MOST_DECIMAL_DIGITS}, and S at most P.",
                    parameter="columns",
                    given=kind,
                    allowed=TYPES,
                )
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise DataError(
                next_step="If the file has a longer delimiter, replace it first: sed 's/||/\\t/g' FILE > NEW.tsv",
                parameter="delimiter",
                given=self.delimiter,
                allowed="one character other than a double quote or a line break",
            )
        if self.decimal not in (".", ","):
            raise DataError(parameter="decimal", given=self.decimal, allowed=(".", ","))
        if self.decimal == self.delimiter:
            raise DataError(
                f"`decimal` and `delimiter` must differ (both are {self.decimal!r}).",
                "Name another delimiter, such as ';'.",
                parameter="delimiter",
                given=self.delimiter,
            )
        if self.encoding is not None:
            _check_encoding(self.encoding)
        return self

    def foreign_to(self, taken: Collection[str]) -> list[str]:
        """Return the names of options that differ from their defaults but are not in `taken`, the options that a reader
        supports."""
        names = [field.name for field in msgspec.structs.fields(self)]
        return [name for name in names if getattr(self, name) != getattr(AS_FOUND, name) and name not in taken]

    def about(self) -> dict[str, str]:
        """Return the options as an entry for the facts that identify a sample; {} if all options have their
        defaults."""
        return {} if self == AS_FOUND else {"read_options": msgspec.json.encode(self, order="deterministic").decode()}

    def given(self) -> dict[str, object]:
        """Return the options that differ from their defaults, by name."""
        return {name: getattr(self, name) for name in self.foreign_to(())}

    def words(self) -> list[str]:
        """Return the command-line arguments for the options that differ from their defaults."""
        said = [word for name, kind in self.columns.items() for word in ("--column", f"{name}={kind}")]
        values = {"delimiter": self.delimiter, "sheet": self.sheet, "encoding": self.encoding}
        said += [word for name, value in values.items() if value is not None for word in (f"--{name}", value)]
        said += ["--decimal", ","] if self.decimal == "," else []
        said += [] if self.header else ["--no-header"]
        return [*said, *(["--day-first"] if self.day_first else [])]


AS_FOUND = ReadOptions()
"""No options. The content of the file determines how it is read."""


def decimal_digits(kind: str) -> tuple[int, int] | None:
    """Return precision and scale of 'decimal(P,S)'; None for another type."""
    match = _DECIMAL.fullmatch(kind.replace(" ", ""))
    return (int(match[1]), int(match[2])) if match else None


def _is_decimal(kind: str) -> bool:
    digits = decimal_digits(kind)
    return digits is not None and 0 < digits[0] <= _MOST_DECIMAL_DIGITS and digits[1] <= digits[0]


def _check_encoding(encoding: str) -> None:
    try:
        codecs.getincrementaldecoder(encoding)
        is_text = codecs.lookup(encoding)._is_text_encoding
    except LookupError:
        is_text = False
    if not is_text:
        allowed = "an encoding that Python knows, e.g. cp1252 or utf-16"
        raise DataError(parameter="encoding", given=encoding, allowed=allowed)
