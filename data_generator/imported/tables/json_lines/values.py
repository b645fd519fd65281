"""Parse JSON so that numbers keep their text, and write parsed values as JSON text again.

Input is a line with one JSON object. Malformed lines are refused with the reason and the place of the fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from data_generator.imported.refusal import Refused
from data_generator.imported.tables.text_types.inference import refuse_encoding

_REPAIR = "Repair it, or leave it out."


class Integer(str):
    """The text of a number without a decimal point or exponent."""

    __slots__ = ()


class Number(str):
    """The text of any other number; also NaN, Infinity and -Infinity, which Python's json module writes."""

    __slots__ = ()


KINDS: Mapping[type, str] = {
    bool: "boolean",
    dict: "object",
    Integer: "number",
    Number: "number",
    list: "list",
    str: "text",
}
"""Type of a parsed value -> its name for messages."""


class _Twice(Exception):
    """Raised for an object that has the same name twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for place, name in enumerate(names) if name in names[:place]))
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_int=Integer, parse_float=Number, parse_constant=Number)
_scan = _DECODER.scan_once  # type: ignore[attr-defined]


def record_of(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line; None if the line is not a valid object. In that case, `refuse` states the
    reason."""
    try:
        text = line.decode().strip(" \t\r\n")
        record, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration, _Twice):
        return None
    return record if end == len(text) and type(record) is dict else None


def refuse(line: bytes, where: str) -> NoReturn:
    """Raise Refused with the reason why `record_of` does not parse a line, or why Arrow cannot hold the record."""
    try:
        text = line.decode()
        record = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        refuse_encoding(where, line[error.start], line)
    except json.JSONDecodeError as error:
        raise Refused(f"is not JSON: {error.msg} (column {error.colno:,})", _REPAIR, where) from None
    except RecursionError:
        raise Refused("is nested too deeply", "Leave it out.", where) from None
    except _Twice as twice:
        raise Refused(f"has the field {str(twice)!r} twice in one object", _REPAIR, where) from None
    if not isinstance(record, dict):
        raise Refused(
            f"is JSON, but not an object (given: {text[:20]!r})", 'Write one object per line, e.g. {"a": 1}', where
        )
    if not _is_flat(record):
        raise Refused("is nested too deeply", "Leave it out.", where)
    raise Refused("has an unpaired surrogate, which is half of a character", _REPAIR, where)


def is_sound(record: dict[str, Any]) -> bool:
    """Return whether the record can be written as JSON again. This is so unless it is nested too deeply or has unpaired
    surrogates."""
    try:
        _written(record).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _is_flat(record: dict[str, Any]) -> bool:
    try:
        _written(record)
    except RecursionError:
        return False
    return True


def text_of(value: Any) -> str | None:
    """Return the value as text: strings unchanged, everything else as JSON, and None for null."""
    if isinstance(value, str):
        return str(value)
    return None if value is None else "true" if value is True else "false" if value is False else _written(value)


def _written(value: Any) -> str:
    if isinstance(value, Integer | Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_quoted(name)}: {_written(below)}" for name, below in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_written(below) for below in value]) + "]"
    return _quoted(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
