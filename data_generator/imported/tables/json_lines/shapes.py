"""Recognize JSON that is not a table of records, and suggest a command that converts it to records.

Only the beginning of the file is used. It may end within a value.
"""

from __future__ import annotations

import json
from typing import Any

from data_generator.imported.refusal import Refused

_MOST_LEVELS = 8
_WHITE = " \t\r\n"
_decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode

_FRAME = "python -c \"import json, pandas; pandas.DataFrame({}).to_parquet('NEW.parquet', index=False)\""
_LOADED = "json.load(open('FILE'))"


def refuse_document(beginning: str, where: str, *, is_lines: bool) -> None:
    """Raise Refused if the only object of the file is a whole table or a service's response, and not a row.

    `is_lines` is whether the file has the suffix of JSON Lines. A single object is then refused only if it certainly is
    not a row.
    """
    fields = _partial(beginning, 0, 0)[0]
    if not isinstance(fields, dict):
        return
    found = _document(fields, is_lines)
    if found is not None:
        raise Refused(f"is one JSON object that does not look like one row of a table ({found[0]})", found[1], where)


def refuse_array(beginning: str, where: str) -> None:
    """Raise Refused if the array at the beginning of the file does not begin with an object."""
    items = _partial(beginning, 0, 0)[0]
    if not isinstance(items, list) or not items or isinstance(items[0], dict):
        return
    if isinstance(items[0], list):
        reason = "is one JSON array of arrays, as pandas.DataFrame.to_json(orient='values') writes"
        raise Refused(reason, _frame(_LOADED + ").add_prefix('c'"), where)
    reason = "is one JSON array of values, not of objects"
    raise Refused(reason, "Convert it: jq -c '.[] | {value: .}' FILE > NEW.jsonl", where)


def refuse_arrays(where: str) -> None:
    """Raise Refused for a file with one array per line."""
    each = "map(json.loads, open('FILE'))).add_prefix('c'"
    raise Refused("has an array in each line instead of an object", _frame(each), where)


def _frame(made: str) -> str:
    return f"Convert it: {_FRAME.format(made)}"


def _document(fields: dict[str, Any], is_lines: bool) -> tuple[str, str] | None:
    """Return (description, next step) for an object that is not a row of a table; None if the object may be a row."""
    names = fields.keys()
    if {"columns", "data"} <= names <= {"columns", "index", "data", "index_names", "column_names"}:
        return "pandas.DataFrame.to_json(orient='split')", _frame(
            f"**{{name: part for name, part in {_LOADED}.items() if name != 'index'}}"
        )
    if {"schema", "data"} == names:
        return "pandas.DataFrame.to_json(orient='table')", "Convert it: jq -c '.data[]' FILE > NEW.jsonl"
    if {"type", "features"} <= names:
        return "GeoJSON", "Convert it: jq -c '.features[]' FILE > NEW.jsonl"
    values = list(fields.values())
    if values and all(isinstance(value, dict) and value for value in values):
        return _objects(fields)
    if is_lines:
        return None
    listed = [name for name, value in fields.items() if isinstance(value, list)]
    if listed and len(listed) == len(fields) and not any(map(_begins_with_object, values)):
        return "a list of values for each name", _frame(_LOADED)
    of_objects = [name for name in listed if _begins_with_object(fields[name])]
    if len(of_objects) == 1:
        return f"its rows are in {of_objects[0]!r}", _jq(f".[{json.dumps(of_objects[0])}][]")
    if listed or any(isinstance(value, dict) for value in values):
        return "some of its fields are lists or objects", "If it is the only row: jq -c . FILE > NEW.jsonl"
    return None


def _jq(expression: str) -> str:
    quoted = expression.replace("'", "'\\''")
    return f"Convert it: jq -c '{quoted}' FILE > NEW.jsonl"


def _begins_with_object(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _objects(fields: dict[str, Any]) -> tuple[str, str]:
    """Return a description of a file that is one object, and what the user can do with it.

    Each field of the object is a column or a row. pandas names rows '0', '1', and so on. If the object's fields have
    such names, each field is a row. If the fields within the first field have such names, each field of the object is a
    column.
    """
    if list(fields)[:2] == ["0", "1"][: len(fields)]:
        made = f"{_LOADED}.values()"
        return "an object for each row, as pandas.DataFrame.to_json(orient='index') writes", _frame(made)
    first = next(iter(fields.values()))
    if list(first)[:1] == ["0"]:
        return "an object for each column, as pandas.DataFrame.to_json() writes", _frame(_LOADED)
    made = f"{_LOADED}).rename_axis('key').reset_index("
    return (
        "an object for each column, as pandas.DataFrame.to_json() writes, or for each row",
        f"If each is a column: {_FRAME.format(made)}; "
        "if each is a row: jq -c 'to_entries[] | {key} + .value' FILE > NEW.jsonl",
    )


def _partial(text: str, at: int, level: int) -> tuple[Any, int]:
    """Return the value that begins at index `at`, and the index after the value; -1 if the text ends within the value.

    An incomplete object or array is returned with the part that is present.
    """
    at = _behind_white(text, at)
    opening = text[at : at + 1]
    if opening == "{" and level < _MOST_LEVELS:
        return _partial_object(text, at + 1, level)
    if opening == "[" and level < _MOST_LEVELS:
        return _partial_list(text, at + 1, level)
    try:
        return _decode(text, at)
    except (ValueError, RecursionError):
        return None, -1


def _partial_object(text: str, at: int, level: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while True:
        at = _behind_white(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1
        name, at = _partial(text, at, _MOST_LEVELS)
        at = _behind_white(text, at) if at >= 0 else len(text)
        if not isinstance(name, str) or text[at : at + 1] != ":" or not text[at + 1 :].strip(_WHITE):
            return found, -1
        found[name], at = _partial(text, at + 1, level + 1)
        if at < 0:
            return found, -1
        at = _behind_white(text, at)
        at += text[at : at + 1] == ","


def _partial_list(text: str, at: int, level: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while True:
        at = _behind_white(text, at)
        if text[at : at + 1] == "]":
            return found, at + 1
        if at >= len(text):
            return found, -1
        value, at = _partial(text, at, level + 1)
        found.append(value)
        if at < 0:
            return found, -1
        at = _behind_white(text, at)
        at += text[at : at + 1] == ","


def _behind_white(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITE:
        at += 1
    return at
