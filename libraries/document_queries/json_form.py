"""Convert plans to JSON and back, to pass them to stores, files and other processes.

Every part of a plan becomes a JSON object. The object's key `is` names the type of the part; its other keys are the
fields that differ from their defaults. Doubles that JSON cannot represent are written as `{"is": "double", "text":
"nan"}`, bytes as `{"is": "binary", "base64": ...}`. plan.py checks the plans that this module parses.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import math
import re
from typing import Any

from libraries.document_queries import steps as parts
from libraries.document_queries.errors import QueryError
from libraries.document_queries.plan import Plan
from libraries.document_queries.values import MOST_DIGITS

_CLASSES = (
    *(parts.Field, parts.Constant, parts.Call),
    *(parts.Compare, parts.In, parts.Prefix, parts.Exists, parts.IsMissing, parts.IsNull, parts.IsType),
    *(parts.And, parts.Or, parts.Not, parts.AnyItem),
    *(parts.Named, parts.Aggregate, parts.Order),
    *(parts.Unnest, parts.Filter, parts.Project, parts.GroupBy, parts.Count, parts.Compute, parts.TopK, parts.Limit),
)
_TAGS: dict[type, str] = {kind: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower() for kind in _CLASSES}
_KINDS: dict[str, type] = {tag: kind for kind, tag in _TAGS.items()}

MOST_CHARACTERS = 1 << 20
"""Longer JSON texts are rejected. Real plans are far shorter."""


def to_json(plan: Plan) -> str:
    """Return a plan as JSON text. Equal plans have equal texts."""
    steps = [_spelled(step) for step in plan.steps]
    return json.dumps(steps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def from_json(text: str) -> Plan:
    """Parse the JSON text of a plan. Raises QueryError."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"the plan has {len(text)} characters; at most {MOST_CHARACTERS} are allowed")
    try:
        data = json.loads(text, parse_constant=_no_json, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"the plan is not valid JSON: {error}") from None
    if not isinstance(data, list):
        raise QueryError(f"a plan must be a JSON list of steps (got {type(data).__name__})")
    try:
        return Plan(tuple(_understood(step) for step in data))
    except RecursionError:
        raise QueryError("the plan is nested too deeply to be read") from None


def _integer(digits: str) -> int:
    # Python raises ValueError when it parses an integer of thousands of digits.
    if len(digits) > MOST_DIGITS:
        raise QueryError(
            f"the plan has an integer of {len(digits):,} digits ({digits[:20]}...); it must fit in 64 bits"
        )
    return int(digits)


def _no_json(word: str) -> None:
    raise ValueError(f'{word} is not valid JSON; use {{"is": "double", "text": "{word.lower()}"}}')


def _spelled(value: Any) -> Any:
    if type(value) in _TAGS:
        spelled = {"is": _TAGS[type(value)]}
        for part in dataclasses.fields(value):
            content = getattr(value, part.name)
            if part.default is dataclasses.MISSING or content != part.default:
                spelled[part.name] = _spelled(content)
        return spelled
    if isinstance(value, tuple):
        return [_spelled(part) for part in value]
    if isinstance(value, bytes):
        return {"is": "binary", "base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"is": "double", "text": str(value)}
    return value


def _understood(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_understood(part) for part in data)
    if not isinstance(data, dict):
        return data
    tag = data.get("is")
    if tag in ("binary", "double"):
        return _special(tag, data)
    kind = _KINDS.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise QueryError(
            f"each object in a plan needs a valid key 'is' (got {tag!r}); valid values: {', '.join(sorted(_KINDS))}"
        )
    fields = {part.name: part for part in dataclasses.fields(kind)}
    content = {name: _understood(part) for name, part in data.items() if name != "is"}
    unknown = sorted(content.keys() - fields.keys())
    missing = [name for name, part in fields.items() if part.default is dataclasses.MISSING and name not in content]
    if unknown or missing:
        raise QueryError(
            f"{tag}: unknown fields: {unknown or 'none'}; missing fields: {missing or 'none'}; "
            f"known fields: {list(fields)}"
        )
    return kind(**content)


def _special(tag: str, data: dict[str, Any]) -> bytes | float:
    try:
        if tag == "double":
            return float(data["text"])
        return base64.b64decode(data["base64"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise QueryError(
            f'{tag}: cannot be read; write, for example, {{"is": "double", "text": "nan"}} or '
            '{"is": "binary", "base64": "AAE="}'
        ) from None
