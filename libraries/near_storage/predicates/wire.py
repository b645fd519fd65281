"""Encode filters and queries as JSON. Decoding is strict: any input gives a tree or raises RequestError.

The decoder refuses unknown keys, an unknown version, values that do not fit their type, and messages that exceed the
limits of depth, conditions, literals and bytes (`limits.py`). It never uses pickle or Arrow's serialized expressions,
because one changed byte in these can end the process. `binding.py` checks columns against the schema.

    {"version": 1, "filter": {"op": "and", "parts": [
        {"op": "compare", "operator": "<", "column": "price", "literal": {"type": "float64", "value": "2.5"}},
        {"op": "not", "part": {"op": "null", "column": "day"}}]}}
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from libraries.filters import limits
from libraries.filters.expressions import Translated, translate
from libraries.filters.tree import (
    OPERATORS,
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Known,
    Literal,
    Not,
    Or,
    Predicate,
    Prefix,
)
from libraries.filters.values import is_utf8
from libraries.near_storage.errors import RequestError
from libraries.near_storage.predicates.wire_types import literal_from_json, literal_to_json
from libraries.near_storage.query import FUNCTIONS, Aggregate, Query

VERSION = 1

MOST_BYTES = 1 << 20
"""Maximum bytes of one message. The decoded Python objects take up to 30 times as much memory."""

MOST_COLUMNS = 10_000
"""Maximum number of columns, of aggregates and of grouping columns in a query."""

MOST_ROWS = 2**63 - 1

Message = dict[str, object]


def encode(predicate: Predicate) -> bytes:
    """Encode a filter as JSON in UTF-8. Raises RequestError if the filter exceeds the limits, which the receiver also
    checks."""
    limits.check(predicate)
    return _written({"version": VERSION, "filter": _to_json(predicate)})


def translated(expression: pc.Expression | None, schema: pa.Schema) -> Translated:
    """Translate a pyarrow filter to a filter tree that fits into one message together with the query's columns. Parts
    of the filter that the tree cannot express, or for which the message has no room, are omitted. Never raises for a
    filter."""
    return translate(expression, schema, _check_length)


def _check_length(predicate: Predicate) -> None:
    if len(encode(predicate)) > MOST_BYTES // 2:
        raise RequestError("the filter leaves no room for columns in the message")


def decode(message: bytes) -> Predicate:
    """Decode a filter. Raises RequestError for invalid messages."""
    predicate = _predicate(_fields(_read(message), "filter")["filter"], 1)
    limits.check(predicate)
    return predicate


def encode_query(query: Query) -> bytes:
    """Encode a query as JSON in UTF-8. Raises RequestError if the query exceeds the limits."""
    return _written(
        {
            "version": VERSION,
            "table": query.table,
            "columns": None if query.columns is None else list(query.columns),
            "where": None if query.where is None else _checked_to_json(query.where),
            "aggregates": [
                {"function": each.function, "column": each.column, "name": each.name} for each in query.aggregates
            ],
            "group_by": list(query.group_by),
            "limit": query.limit,
            "order": None if query.order is None else list(query.order),
        }
    )


def decode_query(message: bytes) -> Query:
    """Decode a query. Raises RequestError for invalid messages. Column names are checked later, by `binding.py`."""
    fields = _fields(_read(message), "table", "columns", "where", "aggregates", "group_by", "limit", "order")
    where = None if fields["where"] is None else _predicate(fields["where"], 1)
    if where is not None:
        limits.check(where)
    return Query(
        table=limits.check_name(fields["table"], "the table"),
        columns=_optional_names(fields["columns"], "columns"),
        where=where,
        aggregates=tuple(_aggregate(each) for each in _list(fields["aggregates"], "aggregates")),
        group_by=_names(fields["group_by"], "group_by"),
        limit=_limit(fields["limit"]),
        order=_optional_names(fields["order"], "order"),
    )


def _checked_to_json(predicate: Predicate) -> Message:
    limits.check(predicate)
    return _to_json(predicate)


def _to_json(predicate: Predicate) -> Message:
    match predicate:
        case Comparison(operator, column, literal):
            return {"op": "compare", "operator": operator, "column": column, "literal": literal_to_json(literal)}
        case In(column, literals):
            return {"op": "in", "column": column, "literals": [literal_to_json(literal) for literal in literals]}
        case IsNull(column):
            return {"op": "null", "column": column}
        case Prefix(column, text):
            return {"op": "prefix", "column": column, "text": text}
        case Known(column, value):
            return {"op": "known", "column": column, "value": value}
        case Constant(value):
            return {"op": "constant", "value": value}
        case And(parts):
            return {"op": "and", "parts": [_to_json(part) for part in parts]}
        case Or(parts):
            return {"op": "or", "parts": [_to_json(part) for part in parts]}
        case Not(part):
            return {"op": "not", "part": _to_json(part)}
    raise RequestError(f"a filter cannot contain an object of type {type(predicate).__name__}")


def _written(message: Message) -> bytes:
    try:
        written = msgspec.json.encode(message)
    except UnicodeEncodeError:
        raise RequestError("a name or literal is not valid UTF-8 and cannot be sent") from None
    if len(written) > MOST_BYTES:
        raise RequestError(
            f"the message has {len(written)} bytes, at most {MOST_BYTES} are allowed: shorten the filter"
        )
    return written


def _read(message: bytes) -> Message:
    if len(message) > MOST_BYTES:
        raise RequestError(f"the message has {len(message)} bytes, at most {MOST_BYTES} are allowed")
    try:
        read = msgspec.json.decode(message)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise RequestError(f"the message is not valid JSON: {str(error)[:100]}") from None
    if not isinstance(read, dict) or read.pop("version", None) != VERSION:
        raise RequestError(f"the message does not have version {VERSION}: use the same release on both ends")
    return read


def _fields(message: object, *names: str) -> Message:
    """Return the message if it is an object with exactly these keys."""
    if not isinstance(message, dict) or message.keys() != set(names):
        raise RequestError(f"expected a message with exactly the keys {', '.join(names)} (got {_shown(message)})")
    return message


def _predicate(message: object, depth: int) -> Predicate:
    if depth > limits.MOST_DEPTH:
        raise RequestError(f"the filter is more than {limits.MOST_DEPTH} levels deep: reduce its nesting")
    operation = message.get("op") if isinstance(message, dict) else None
    if not isinstance(operation, str) or operation not in _READERS:
        raise RequestError(f"the op of a condition must be one of {', '.join(_READERS)} (got {_shown(message)})")
    return _READERS[operation](message, depth)


def _compare(message: object, depth: int) -> Predicate:
    fields = _fields(message, "op", "operator", "column", "literal")
    if fields["operator"] not in OPERATORS:
        raise RequestError(f"unknown operator {_shown(fields['operator'])}: use one of {', '.join(OPERATORS)}")
    return Comparison(fields["operator"], _column(fields), _literal(fields["literal"]))


def _in(message: object, depth: int) -> Predicate:
    fields = _fields(message, "op", "column", "literals")
    literals = _list(fields["literals"], "literals")
    if len(literals) > limits.MOST_LITERALS:
        raise RequestError(f"the filter has more than {limits.MOST_LITERALS} literals: use fewer")
    return In(_column(fields), tuple(_literal(each) for each in literals))


def _null(message: object, depth: int) -> Predicate:
    return IsNull(_column(_fields(message, "op", "column")))


def _prefix(message: object, depth: int) -> Predicate:
    fields = _fields(message, "op", "column", "text")
    return Prefix(_column(fields), _text(fields["text"], "a prefix"))


def _known(message: object, depth: int) -> Predicate:
    fields = _fields(message, "op", "column", "value")
    if not isinstance(fields["value"], bool):
        raise RequestError(f"the value of the op 'known' must be true or false (got {_shown(fields['value'])})")
    return Known(_column(fields), fields["value"])


def _constant(message: object, depth: int) -> Predicate:
    value = _fields(message, "op", "value")["value"]
    if value is not None and not isinstance(value, bool):
        raise RequestError(f"the value of the op 'constant' must be true, false or null (got {_shown(value)})")
    return Constant(value)


def _and(message: object, depth: int) -> Predicate:
    return And(_parts(message, depth))


def _or(message: object, depth: int) -> Predicate:
    return Or(_parts(message, depth))


def _not(message: object, depth: int) -> Predicate:
    return Not(_predicate(_fields(message, "op", "part")["part"], depth + 1))


_READERS: dict[str, Callable[[object, int], Predicate]] = {
    "compare": _compare,
    "in": _in,
    "null": _null,
    "prefix": _prefix,
    "known": _known,
    "constant": _constant,
    "and": _and,
    "or": _or,
    "not": _not,
}


def _parts(message: object, depth: int) -> tuple[Predicate, ...]:
    parts = _list(_fields(message, "op", "parts")["parts"], "parts")
    if len(parts) > limits.MOST_NODES:
        raise RequestError(
            f"the filter has more than {limits.MOST_NODES} conditions, counting AND, OR and NOT too: "
            "use fewer, or an IN list"
        )
    return tuple(_predicate(part, depth + 1) for part in parts)


def _literal(message: object) -> Literal:
    return literal_from_json(_fields(message, "type", "value"))


def _aggregate(message: object) -> Aggregate:
    fields = _fields(message, "function", "column", "name")
    if fields["function"] not in FUNCTIONS:
        raise RequestError(f"unknown aggregate {_shown(fields['function'])}: use one of {', '.join(FUNCTIONS)}")
    column = None if fields["column"] is None else _column(fields)
    return Aggregate(fields["function"], column, _text(fields["name"], "a name"))


def _limit(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_ROWS):
        return value
    raise RequestError(f"the limit must be a whole number of rows from 0 to {MOST_ROWS} (got {_shown(value)})")


def _optional_names(value: object, what: str) -> tuple[str, ...] | None:
    return None if value is None else _names(value, what)


def _names(value: object, what: str) -> tuple[str, ...]:
    return tuple(_text(each, "a name") for each in _list(value, what))


def _column(fields: Message) -> str:
    return _text(fields["column"], "the name of a column")


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise RequestError(f"{what} must be a list (got {_shown(value)})")
    if what not in ("literals", "parts") and len(value) > MOST_COLUMNS:
        raise RequestError(f"{what} has {len(value)} entries, at most {MOST_COLUMNS} are allowed")
    return value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not is_utf8(value):
        raise RequestError(f"{what} must be valid UTF-8 text (got {_shown(value)})")
    if what != "a prefix" and len(value.encode()) > limits.MOST_NAME_BYTES:
        raise RequestError(f"{what} has more than {limits.MOST_NAME_BYTES} bytes: {value[:40]!r}...")
    return value


def _shown(value: object) -> str:
    return repr(value)[:60]
