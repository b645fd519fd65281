"""Convert documents to an Arrow table with a column per path. Mixed types become a struct with a field per type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from libraries.document_queries.paths import Path
from libraries.document_store.values import ValueKind, kind_of


def table_of(documents: Sequence[dict[str, Any]], paths: Sequence[Path]) -> pa.Table:
    """Return one row per document and one column per path, named like the path. Missing values and nulls become
    null."""
    return pa.table({str(path): _array([_at(document, path) for document in documents]) for path in paths})


def _at(document: dict[str, Any], path: Path) -> Any:
    value: Any = document
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def _array(values: list[Any]) -> pa.Array:
    kinds = {kind_of(value) for value in values} - {ValueKind.NULL}
    if len(kinds) > 1:
        return _struct(sorted(kinds), values)
    if kinds == {ValueKind.ARRAY}:
        return _lists(values)
    if kinds == {ValueKind.OBJECT}:
        return _objects(values)
    return pa.array(values)


def _struct(kinds: list[ValueKind], values: list[Any]) -> pa.Array:
    """Return a struct array with one field per kind. In each row at most one field is not null."""
    fields = [_array([value if kind_of(value) is kind else None for value in values]) for kind in kinds]
    return pa.StructArray.from_arrays(fields, [kind.name.lower() for kind in kinds], mask=_nulls(values))


def _lists(values: list[Any]) -> pa.Array:
    items = _array([item for value in values if value is not None for item in value])
    offsets: list[int | None] = []
    end = 0
    for value in values:
        offsets.append(None if value is None else end)
        end += 0 if value is None else len(value)
    return pa.ListArray.from_arrays(pa.array([*offsets, end], pa.int32()), items)


def _objects(values: list[Any]) -> pa.Array:
    names = list(dict.fromkeys(name for value in values if value is not None for name in value))
    if not names:
        return pa.array(values, pa.struct([]))
    fields = [_array([None if value is None else value.get(name) for value in values]) for name in names]
    return pa.StructArray.from_arrays(fields, names, mask=_nulls(values))


def _nulls(values: list[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())
