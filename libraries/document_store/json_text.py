"""JSON Lines to rows: one document a line, empty lines left out, and every fault named by its document and path.

C does it where it was built; the parser of the standard library does it elsewhere, and says what is wrong with a line
that C refused. Text that JSON allows and a document cannot hold is refused: a field that is there twice in one object,
NaN and infinities, numbers beyond a double, integers beyond 64 bits, half a surrogate pair.
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
    """The rows (MessagePack) of JSON Lines; the last line may go without its end, and the first may have a byte order
    mark. Raises DocumentError for the first line that is no document, which counts from 0 among the lines that are not
    empty."""
    lines = lines.removeprefix(codecs.BOM_UTF8)
    if not kernels.NATIVE:
        return [_row(line, number) for number, line in enumerate(_lines(lines))]
    rows, faulty = kernels.rows_of_json(lines)
    if faulty is not None:
        line = lines[slice(*faulty)]
        _row(line, len(rows))
        raise DocumentError(f"is no JSON: {line[:40]!r}", len(rows))
    return rows


def _lines(lines: bytes) -> Iterator[bytes]:
    return (line for line in lines.split(b"\n") if line.strip(b" \t\r"))


@dataclass(frozen=True)
class _Fault:
    """Stands in a parsed document where something cannot be stored."""

    words: str


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        return fields | {twice: _Fault("is there twice in one object; name each field once")}
    return fields


def _constant(text: str) -> _Fault:
    return _Fault(f"{text} is no JSON; write null, or give the document as a dict")


def _double(text: str) -> float | _Fault:
    value = float(text)
    return value if math.isfinite(value) else _Fault(f"{text[:40]} is beyond a double; store it as text")


def _integer(text: str) -> int | _Fault:
    # Python refuses to read thousands of digits.
    value = int(text) if len(text) <= len(str(INTEGER_LOWEST)) else INTEGER_HIGHEST + 1
    return value if INTEGER_LOWEST <= value <= INTEGER_HIGHEST else _Fault(TOO_LARGE)


_decoder = json.JSONDecoder(
    object_pairs_hook=_fields, parse_constant=_constant, parse_float=_double, parse_int=_integer
)  # fmt: skip


def _row(line: bytes, number: int) -> bytes:
    """One line's row."""
    try:
        document = _decoder.decode(line.decode())
    except UnicodeDecodeError as error:
        _name_what_is_no_text(line, number)
        raise DocumentError(f"{NOT_TEXT} (byte {error.start} of its line)", number) from error
    except json.JSONDecodeError as error:
        raise DocumentError(f"is no JSON: {error.msg} at character {error.pos} of its line", number) from error
    except RecursionError as error:
        raise DocumentError(TOO_DEEP, number) from error
    if not isinstance(document, dict):
        raise DocumentError("is not an object of named fields", number)
    _check(document, number, _DOCUMENT)
    return _encode(document)


def _name_what_is_no_text(line: bytes, number: int) -> None:
    """Raises DocumentError with the path, where bytes that are no UTF-8 lie in a text or name of a JSON object."""
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
