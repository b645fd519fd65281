"""Questions that are derived from the documents, because no publication has questions about the user's data.

The three questions are questions that people ask about any events or records: how many there are of each kind, how many
have a large value, and which have the largest values. Fields are chosen from a random sample of the documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adapters.document_store import FieldPath
from data_generator.cache import read_table
from data_generator.documents import key_of, lines_of
from libraries import document_queries as q

USUAL, GROUP, FILTER, TOP = "usual", "group", "filter", "top"
"""Names of derived questions in operations, such as usual in `ask[query=usual]`. `usual` asks the other three
questions, one after the other."""
NAMES = (USUAL, GROUP, FILTER, TOP)

LOOKED_AT = 1_000
"""Number of documents that are inspected to choose fields."""
FEW_VALUES = 100
"""Largest number of different values of a field that documents are grouped by."""
FEWEST_SHARE = 0.1
"""Smallest share of the inspected documents that must have a field. Fields in at least half of the inspected documents
are preferred."""
FILTERED_SHARE = 0.1
"""The question with a filter counts about this share of the documents."""
ROWS = 10
"""Largest number of rows of an answer."""

_DECODER = msgspec.json.Decoder(dict[str, Any])
_Values = Sequence[Any]


@dataclass(frozen=True)
class Derived:
    """One derived question: its name, the question in words, and its query plan as JSON."""

    name: str
    words: str
    plan: str


@lru_cache(maxsize=2)
def derived_questions(dataset: Path, rows: int) -> Mapping[str, Derived]:
    """Return the three questions about the first `rows` documents of a cached data set, by name.

    Documents are grouped by the text or boolean field with the most values, among fields with at most FEW_VALUES
    values. Documents are filtered and sorted by the numeric field that has the most values. If there is no numeric
    field, the key is used. If no field qualifies for groups, all documents are counted instead.
    """
    table = read_table(dataset, rows)
    key = (key_of(table.schema),)
    # At random, because every third document of a log may be of the same kind.
    places = np.random.default_rng(0).permutation(table.num_rows)[:LOOKED_AT]
    documents = [_DECODER.decode(line) for line in lines_of(table.take(np.sort(places)))]
    fields: dict[FieldPath, list[Any]] = {}
    for document in documents:
        for path, value in _fields(document, ()):
            fields.setdefault(path, []).append(value)
    others = {path: held for path, held in fields.items() if path != key}
    number = _most_varied(others, (int, float), len(documents), most=None) or key
    group = _most_varied(others, (str, bool), len(documents), most=FEW_VALUES)
    values = _sorted(fields.get(number, []))
    return {each.name: each for each in (_group(group), _filter(number, values), _top(number, key, values))}


def _fields(value: Mapping[str, Any], before: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """Yield the path and the value of each field that is not null, at any depth of objects. Objects and arrays are
    yielded too, so that a field whose value is sometimes an object or an array is not chosen."""
    for name, below in value.items():
        if below is not None:
            yield (*before, name), below
        if isinstance(below, dict):
            yield from _fields(below, (*before, name))


def _most_varied(
    fields: Mapping[FieldPath, _Values], types: Sequence[type], documents: int, *, most: int | None
) -> FieldPath | None:
    """Return the path of the field with the most different values, or None if no field qualifies. All values of the
    field must have the same type, one of `types`. The field must have at least two different values. If `most` is
    given, the field must have at most `most` different values, and at most one for every two documents with the field.
    Fields in at least half of the documents come first. Fields in less than FEWEST_SHARE of the documents are
    ignored."""
    found = []
    for path, held in fields.items():
        different = len(set(map(repr, held)))
        if {*map(type, held)} not in [{each} for each in types] or len(held) < FEWEST_SHARE * documents:
            continue
        if different >= 2 and (most is None or different <= min(most, len(held) // 2)):
            found.append((2 * len(held) < documents, -different, path))
    return min(found)[2] if found else None


def _group(path: FieldPath | None) -> Derived:
    if path is None:
        return Derived(GROUP, "count all documents", _plan(q.Count()))
    groups = q.GroupBy((q.Named("value", q.Field(path)),), (q.Aggregate("count", "count"),))
    first = q.TopK((q.Order("count", True), q.Order("value")), ROWS)
    return Derived(GROUP, f"count documents by {_told(path)}", _plan(groups, first))


def _sorted(held: _Values) -> _Values:
    """Return the values of the most frequent type, sorted."""
    usual = Counter(map(type, held)).most_common(1)
    return sorted(value for value in held if type(value) is usual[0][0]) if usual else ()


def _filter(path: FieldPath, values: _Values) -> Derived:
    if not values:
        return Derived(FILTER, "count all documents", _plan(q.Count()))
    least = values[int(len(values) * (1 - FILTERED_SHARE))]
    return Derived(FILTER, f"count documents where {_told(path)} >= {least!r}", _plan(_from(path, least), q.Count()))


def _top(path: FieldPath, key: FieldPath, values: _Values) -> Derived:
    columns = (q.Named("key", q.Field(key)), q.Named("value", q.Field(path)))
    order = q.TopK((q.Order("value", True), q.Order("key")), ROWS)
    # As in SQL, where NULL must be excluded: without a value a document is not among the largest.
    there = tuple(_from(path, each) for each in values[:1])
    return Derived(
        TOP, f"the {ROWS} documents with the largest {_told(path)}", _plan(*there, q.Project(columns), order)
    )


def _from(path: FieldPath, least: Any) -> Any:
    return q.Filter(q.Compare(q.Field(path), ">=", q.Constant(least)))


def _plan(*steps: Any) -> str:
    text: str = q.to_json(q.Plan(steps))
    return text


def _told(path: FieldPath) -> str:
    return ".".join(path)
