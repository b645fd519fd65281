"""Convert JSON Lines to rows. Each line is a document; empty lines are skipped. Errors name the document and the path.

C code parses the lines if it was built; otherwise the standard library's parser does. From the first line on that the C
code refuses, the standard library's parser takes over, to read the line or to explain the error. JSON that a document
cannot hold is refused: a field that occurs twice in an object, NaN and infinities, numbers outside the range of a
double, integers of more than 64 bits, unpaired surrogates.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from libraries.document_queries.paths import ITEMS, Path
from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST, MAX_DEPTH
from libraries.document_store import kernels
from libraries.document_store.errors import DocumentError
from libraries.document_store.messagepack import NOT_TEXT, TOO_DEEP, TOO_LARGE

_DOCUMENT = Path()
_encode = msgspec.msgpack.Encoder().encode


def rows_of(lines: bytes) -> list[bytes]:
    """Return the rows (MessagePack) of JSON Lines. The last line need not end with a line break, and the first line may
    begin with a byte order mark.

    Raises DocumentError for the first invalid line. The number in the error counts lines that are not empty, from 0.
    """
    lines = lines.removeprefix(codecs.BOM_UTF8)
    if not kernels.NATIVE:
        return [_row(line, number) for number, line in enumerate(_lines(lines))]
    rows, faulty = kernels.rows_of_json(lines)
    if faulty is not None:
        # The C code also refuses numbers of more than 4,096 characters, which the standard library's parser accepts.
        rest = _lines(lines[faulty[0] :])
        rows += [_row(line, number) for number, line in enumerate(rest, len(rows))]
    return rows


def _lines(lines: bytes) -> Iterator[bytes]:
    return (line for line in lines.split(b"\n") if line.strip(b" \t\r"))


@dataclass(frozen=True)
class _Fault:
    """Stands in a parsed document in place of a value that cannot be stored."""

    words: str


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        return fields | {twice: _Fault("occurs twice in one object; name each field once")}
    return fields


def _constant(text: str) -> _Fault:
    return _Fault(f"{text} is not valid JSON; write null, or pass the document as a dict")


def _double(text: str) -> float | _Fault:
    value = float(text)
    return value if math.isfinite(value) else _Fault(f"{text[:40]} exceeds the range of a double; store it as text")


def _integer(text: str) -> int | _Fault:
    # Python refuses to parse thousands of digits.
    value = int(text) if len(text) <= len(str(INTEGER_LOWEST)) else INTEGER_HIGHEST + 1
    return value if INTEGER_LOWEST <= value <= INTEGER_HIGHEST else _Fault(TOO_LARGE)


_decoder = json.JSONDecoder(
    object_pairs_hook=_fields, parse_constant=_constant, parse_float=_double, parse_int=_integer
)  # fmt: skip


def _row(line: bytes, number: int) -> bytes:
    try:
        document = _decoder.decode(line.decode())
    except UnicodeDecodeError as error:
        _name_what_is_no_text(line, number)
        raise DocumentError(f"{NOT_TEXT} (byte {error.start} of its line)", number) from error
    except json.JSONDecodeError as error:
        raise DocumentError(f"is not valid JSON: {error.msg} at character {error.pos} of its line", number) from error
    except RecursionError as error:
        raise DocumentError(TOO_DEEP, number) from error
    if not isinstance(document, dict):
        raise DocumentError("is not an object of named fields", number)
    _check(document, number, _DOCUMENT)
    return _encode(document)


def _name_what_is_no_text(line: bytes, number: int) -> None:
    """Raise DocumentError with the path if a text or a field name is not valid UTF-8."""
    try:
        document = _decoder.decode(line.decode(errors="surrogateescape"))
    except (json.JSONDecodeError, RecursionError):
        return
    if isinstance(document, dict):
        _check(document, number, _DOCUMENT)


def _check(value: Any, number: int, path: Path) -> None:
    if len(path) > MAX_DEPTH:
        raise DocumentError(TOO_DEEP, number, str(path))
    if isinstance(value, _Fault):
        raise DocumentError(value.words, number, str(path))
    if isinstance(value, dict):
        for name, item in value.items():
            _check(name, number, path)
            _check(item, number, path / name)
    elif isinstance(value, list):
        for item in value:
            _check(item, number, path / ITEMS)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DocumentError(NOT_TEXT, number, str(path)) from error
