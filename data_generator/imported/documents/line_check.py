"""Check that a line is a document that every document store supports, and return the document's key.

A document is a JSON object in valid UTF-8, with unique names, integers within 64 bits, finite numbers, and at most
MAX_DEPTH nested objects and arrays.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from data_generator.imported.refusal import Refused

MAX_DEPTH = 64
"""Maximum number of levels of nested objects and arrays."""

Key = int | str

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_LONG_NUMBER = re.compile(rb"[0-9]{19}|[0-9.][eE][+-]?[0-9]{3}")
"""Finds numbers that may exceed 64-bit integers or doubles. The pattern also matches some texts, which are then checked
too."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPED = re.compile("[\udc80-\udcff]")
"""The characters that Python substitutes for invalid UTF-8 with errors="surrogateescape"."""
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_OPENING = b"[{"
_REPAIR = "Repair it, or leave it out."


def key_of(line: bytes, key: str) -> Key:
    """Check the document in `line` and return its key.

    Raises Refused for an invalid document or key, without a position in the file, which the caller adds.
    """
    document = _document(line)
    if key not in document:
        raise Refused(f"has no field {key!r}", "Set `key` to a field with a different value in each document.")
    found = document[key]
    if not isinstance(found, int | str) or isinstance(found, bool):
        raise Refused(f"the value of its key {key!r} is neither an integer nor a text", "Set `key` to another field.")
    return found


def has_field(line: bytes, name: str) -> bool:
    """Check the document in `line` and return whether it has the field `name`. Raises Refused for invalid documents."""
    return name in _document(line)


def _document(line: bytes) -> dict[str, Any]:
    # Check the depth before parsing, because the parser recurses for each level.
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
        raise Refused(f"is nested more than {MAX_DEPTH} levels deep", _REPAIR)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        reason = f"byte 0x{line[error.start]:02x}{_place_of_no_text(line)} is not UTF-8"
        raise Refused(reason, "Write the file again as UTF-8.") from None
    decoder = _EXACT if _LONG_NUMBER.search(line) else _USUAL
    try:
        document = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refused(f"is not JSON: {error.msg} (column {error.colno:,})", _REPAIR) from None
    if not isinstance(document, dict):
        raise Refused("is JSON, but not an object", 'Write one object per line, e.g. {"id": 1}')
    if _SURROGATE.search(line):
        _check_surrogates(document)
    return document


def _place_of_no_text(line: bytes) -> str:
    """Return the position of the first invalid UTF-8 in the document, such as ' in a.b[2]'; '' if this is outside of
    strings."""
    try:
        document = json.loads(line.decode(errors="surrogateescape"))
    except ValueError:
        return ""
    return next(_places_of_no_text(document, ""), "")


def _places_of_no_text(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, below in value.items():
            if _ESCAPED.search(name):
                yield f" in the name of a field{f' of {path}' if path else ''}"
            yield from _places_of_no_text(below, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from _places_of_no_text(below, f"{path}[{number}]")
    elif isinstance(value, str) and _ESCAPED.search(value):
        yield f" in {path}"


def _depth(line: bytes) -> int:
    """Return the maximum nesting depth of brackets outside of strings."""
    brackets = _TEXTS.sub(b"", line).translate(None, _ALL_BUT_BRACKETS)
    return max(itertools.accumulate(1 if bracket in _OPENING else -1 for bracket in brackets), default=0)


def _check_surrogates(document: dict[str, Any]) -> None:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused("has an unpaired surrogate, which is half of a character", _REPAIR) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise Refused(f"has the field {name!r} twice in one object", _REPAIR)
    return found


def _constant(text: str) -> Any:
    raise Refused(f"has {text}, which JSON does not define", "Write null or a number.")


def _integer(text: str) -> int:
    # Python refuses to parse very long integers, so check the length first.
    if len(text) > 20 or not _LEAST <= (number := int(text)) <= _MOST:
        raise Refused(
            f"has an integer outside the signed 64-bit range ({text[:24]})", "Write it as text or with a decimal point."
        )
    return number


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Refused(f"has a number that is too large for a double ({text[:24]})", _REPAIR)
    return number


_USUAL = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_constant)
_EXACT = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_constant, parse_int=_integer, parse_float=_finite)
