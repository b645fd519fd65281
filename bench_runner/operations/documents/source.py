"""Reading documents from the cached data set, to choose the inputs of operations and to compute their right answers.

Inputs are chosen before timing, from single fields. Right answers are computed after timing, from whole documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from adapters.document_store import FieldKind, FieldPath, Key, TypedField, value_at
from adapters.errors import RefusedData
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.tables.take import dealt, generator
from data_generator.documents import json_lines, key_of, lines_of

LOOKED_AT = 1_000
"""Number of documents that are inspected to choose fields."""
FEWEST_OF_LOOKED_AT = 10
"""A field is not chosen if fewer of the inspected documents have the field, because most counts of its values would be
0."""

_KINDS: dict[type, FieldKind] = {bool: "boolean", int: "integer", float: "double", str: "text"}
_DECODER = msgspec.json.Decoder(dict[str, Any])


def key_field(stage: OperationContext) -> str:
    """Return the name of the key field."""
    return key_of(stage.schema)


def documents(stage: OperationContext, rows: int) -> Iterator[dict[str, Any]]:
    """Yield the first `rows` documents, as they were stored."""
    for batch in stage.table(rows).to_batches():
        yield from _DECODER.decode_lines(json_lines(batch))


def values(stage: OperationContext, rows: int, *paths: FieldPath) -> list[list[Any]]:
    """Return a list for each path with the value at this path in each of the first `rows` documents, in order. The
    value is None if a document has no value at the path."""
    found: list[list[Any]] = [[] for _ in paths]
    for document in documents(stage, rows):
        for path, column in zip(paths, found, strict=True):
            column.append(value_at(document, path))
    return found


@lru_cache(maxsize=1)
def lines_by_key(stage: OperationContext) -> Mapping[Key, bytes]:
    """Return a mapping from each key to the document's line of JSON. Call this only after timing, because the mapping
    needs as much memory as all documents."""
    (keys,) = values(stage, stage.rows, (key_field(stage),))
    return dict(zip(keys, lines_of(stage.table(stage.rows)), strict=True))


def document_of(line: bytes) -> dict[str, Any]:
    """Return the document in a line of JSON."""
    return _DECODER.decode(line)


def chosen_paths(stage: OperationContext, count: int, spelled: str) -> list[FieldPath]:
    """Return `count` paths of fields that are not arrays, chosen by the digest of the data. The key field is never
    chosen. If the documents have fewer such fields, return all of them."""
    known = sorted(_looked_at(stage))
    random = generator(stage.digest, spelled)
    return [known[place] for place in random.permutation(len(known))[:count].tolist()]


@lru_cache(maxsize=4)
def typed_fields(stage: OperationContext, count: int, spelled: str) -> tuple[TypedField, ...]:
    """Return the key and `count` other fields whose values have one kind in all documents, chosen by the digest of the
    data. If the documents have fewer such fields, return all of them."""
    likely = {path for path, held in _looked_at(stage).items() if _kind_of(held) is not None}
    chosen: list[TypedField] = []
    left = [path for path in chosen_paths(stage, len(_looked_at(stage)), spelled) if path in likely]
    while left and len(chosen) < count:
        some, left = left[: count - len(chosen)], left[count - len(chosen) :]
        for path, held in zip(some, values(stage, stage.rows, *some), strict=True):
            kind = _kind_of(held)
            if kind is not None:
                chosen.append(TypedField(path, kind))
    key = (key_field(stage),)
    (keys,) = values(stage, 1, key)
    return (TypedField(key, "integer" if type(keys[0]) is int else "text"), *chosen)


def _kind_of(held: Sequence[Any]) -> FieldKind | None:
    """Return the kind of all values that are not None. Return None if the values have several kinds, or a kind that a
    TypedField cannot have."""
    types = {type(value) for value in held if value is not None}
    if len(types) != 1:
        return None
    (found,) = types
    if found is int and not all(-(2**63) <= value < 2**63 for value in held if value is not None):
        return None
    return _KINDS.get(found)


def ordered_fields(stage: OperationContext, count: int) -> list[FieldPath]:
    """Return the paths of `count` fields for range conditions. Where such a field occurs, its value is an integer. The
    key field is never returned.

    Fields with the most different values in the inspected documents come first, and fields with equally many are sorted
    by name. Raises RefusedData if the data have fewer such fields.
    """
    found = [
        (-len(set(held)), path) for path, held in _looked_at(stage).items() if all(type(value) is int for value in held)
    ]
    if len(found) < count:
        raise RefusedData(
            f"the query needs {count} fields that hold only integers, but the documents have {len(found)}"
        )
    return [path for _, path in sorted(found)[:count]]


@lru_cache(maxsize=1)
def _looked_at(stage: OperationContext) -> dict[FieldPath, list[Any]]:
    """Return the paths of fields in the inspected documents, with the values of each field. The key and fields in fewer
    than FEWEST_OF_LOOKED_AT documents are left out."""
    found: dict[FieldPath, list[Any]] = {}
    for document in documents(stage, min(stage.rows, LOOKED_AT)):
        for path, value in _places(document, ()):
            found.setdefault(path, []).append(value)
    key = (key_field(stage),)
    return {path: held for path, held in found.items() if len(held) >= FEWEST_OF_LOOKED_AT and path != key}


def _places(value: dict[str, Any], before: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    for name, below in value.items():
        if isinstance(below, dict):
            yield from _places(below, (*before, name))
        elif below is not None and not isinstance(below, list):
            yield (*before, name), below


def shares_between(
    found: list[Any], share: float, random: np.random.Generator, repetitions: int
) -> list[tuple[int, int]]:
    """Return the lowest and the highest value of a range for each repetition. Each range contains about this share of
    the integers in `found`. No range is used again until all ranges have been used."""
    held = np.sort(np.array([value for value in found if type(value) is int], np.int64))
    count = max(1, round(share * len(held)))
    runs = len(held) // count
    first = int(random.integers(0, len(held) - runs * count + 1))
    starts = [first + count * int(run) for (run,) in dealt(lambda: random.permutation(runs), 1, repetitions)]
    return [(int(held[start]), int(held[start + count - 1])) for start in starts]
