"""Collect JSON values into columns. Nested objects become structs, and arrays become lists.

Records are added in parts. Numbers, strings and booleans are kept as their text in the file until all values of a
column are known. Numbers that a type holds exactly as written are converted earlier. If a path (a column or nested
field, such as `a.b`) has values of several kinds in different records, these values become text (JSON). If the text of
these values was not kept, the records are parsed again. This module does not depend on files.
"""

from __future__ import annotations

import contextlib
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from data_generator.imported.tables import table_types
from data_generator.imported.tables.json_lines.scalars import compact, same_type, typed_scalars
from data_generator.imported.tables.json_lines.values import KINDS, Number, text_of
from data_generator.imported.tables.text_types.column_notes import Note, column_option

MOST_LEVELS = 60
"""Maximum number of levels of nested objects and lists. Arrow's file format supports 64 levels."""

Path = tuple[str | None, ...]
"""Path of a nested value: the name of the column, then for each level the name of a field, or None for the items of a
list."""
PlaceOf = Callable[[int], int]
"""Function that converts the index of a value in a part of the sample to the row of the sample with this value."""

_NULL = type(None)
_EMPTY: dict[str, Any] = {}


def shown(path: Path) -> str:
    """Return the path as text for messages, such as 'a.b[].c'."""
    first, *below = path
    return str(first) + "".join("[]" if name is None else f".{name}" for name in below)


class TooDeep(Exception):
    """Raised for values that are nested more than MOST_LEVELS levels deep, or too deep for Python's recursion."""

    def __init__(self, place: int) -> None:
        """`place` is the row of the sample that has the value."""
        super().__init__()
        self.place = place


class Limit:
    """Counts columns while they are found. Each field of a struct counts, as in table_types.check_number."""

    def __init__(self) -> None:
        # Count 1 for the records themselves; `add_objects` replaces it by the number of their fields.
        self._columns = 1

    def add(self, columns: int) -> None:
        """Add a number of columns to the count. Raises Refused if the table now has too many columns."""
        self._columns += columns
        table_types.check_number(self._columns)


@dataclass
class Column:
    """The values of one path, such as `a.b`. `as_text` has all paths whose values are kept as text from the start."""

    path: Path
    as_text: frozenset[Path]
    limit: Limit
    counts: Counter[type] = field(default_factory=Counter)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Kind of value -> (row in the sample, text) of the first value of this kind."""
    _parts: dict[int, pa.Array] = field(default_factory=dict)
    """Number of a part -> texts of the values in this part. For objects and lists: whether each value is not null."""
    fields: dict[str, Column] = field(default_factory=dict)
    _item: Column | None = None
    _offsets: dict[int, Any] = field(default_factory=dict)

    @property
    def kinds(self) -> set[str]:
        """Return the kinds of the values of this path, such as 'number' or 'object', without null."""
        return {KINDS[kind] for kind in self.counts if kind is not _NULL}

    @property
    def is_text(self) -> bool:
        """Return whether the values of this path are kept as text from the start."""
        return self.path in self.as_text

    @property
    def _is_mixed(self) -> bool:
        return len(self.kinds) > 1

    def __post_init__(self) -> None:
        """Check the path. Raises UnicodeEncodeError for a name with an unpaired surrogate."""
        "".join(name or "" for name in self.path).encode()

    def add(self, part: int, values: Sequence[Any], place_of: PlaceOf) -> None:
        """Add the values of this path in the next part.

        There is one value for each record, or for each parent object or list item. Raises Refused for too many columns,
        TooDeep for too many levels, and UnicodeEncodeError for text with an unpaired surrogate.
        """
        counts = Counter(map(type, values))
        for kind in counts.keys() - self.counts.keys() - {_NULL}:
            if KINDS[kind] not in self.first:
                place = next(place for place, value in enumerate(values) if type(value) is kind)
                self.first[KINDS[kind]] = place_of(place), text_of(values[place]) or ""
        self.counts.update(counts)
        if counts.keys() == {_NULL}:
            return
        if self.is_text:
            self._parts[part] = pa.array(map(text_of, values), pa.string())
        elif dict not in self.counts and list not in self.counts:
            texts = pa.array(map(text_of, values) if bool in counts else values, pa.string())
            self._parts[part] = compact(texts, Number in counts) if self.kinds == {"number"} else texts
        else:
            self._parts[part] = pa.array([value is not None for value in values], pa.bool_())
            self._add_nested(part, values, place_of)

    def _add_nested(self, part: int, values: Sequence[Any], place_of: PlaceOf) -> None:
        """Add the fields of objects, or the items of lists, to the columns below this one.

        If objects are mixed with lists or other values, do nothing: `mixed` then reports the path, and the caller
        collects the values of this path again as text.
        """
        if self._is_mixed:
            return
        if len(self.path) > MOST_LEVELS:
            raise TooDeep(place_of(next(place for place, value in enumerate(values) if value is not None)))
        if dict in self.counts:
            self.add_objects(part, values, place_of)
        else:
            self._add_lists(part, values, place_of)

    def add_objects(self, part: int, values: Sequence[Any], place_of: PlaceOf) -> None:
        """Add objects. The values of each field are added to the column of this field, with the same errors as in
        `add`."""
        columns = by_name([_EMPTY if value is None else value for value in values])
        new = columns.keys() - self.fields.keys()
        # A struct counts as its fields. It was counted as one column before its fields were known.
        self.limit.add(len(new) - bool(new and not self.fields))
        for name, below in columns.items():
            if name in new:
                self.fields[name] = Column((*self.path, name), self.as_text, self.limit)
            self.fields[name].add(part, below, place_of)

    def _add_lists(self, part: int, values: Sequence[Any], place_of: PlaceOf) -> None:
        offsets = np.cumsum([0, *(0 if value is None else len(value) for value in values)])
        self._offsets[part] = offsets
        self._item = self._item or Column((*self.path, None), self.as_text, self.limit)
        items = [item for value in values if value for item in value]
        if items:
            self._item.add(part, items, lambda item: place_of(int(np.searchsorted(offsets, item, "right")) - 1))

    def mixed(self) -> Iterator[Path]:
        """Yield the paths at and below this column that have values of several kinds whose text was not kept.

        The values of these paths must be collected again as text.
        """
        if self.is_text:
            return
        if self._is_mixed:
            if any(not pt.is_string(part.type) for part in self._parts.values()):
                yield self.path
            return
        for below in self.fields.values():
            yield from below.mixed()
        if self._item is not None:
            yield from self._item.mixed()

    def typed(self, lengths: Sequence[int], notes: list[Note]) -> list[pa.Array]:
        """Return an array for each part, all with one type that holds every value of the path.

        Warnings are appended to `notes`. `lengths` are the numbers of values of the parts. Call this method only once,
        because it releases the collected values, and only if `mixed` yields nothing.
        """
        parts = [self._parts.pop(part, None) for part in range(len(lengths))]
        if self.is_text or self._is_mixed:
            notes += self._notes_of_text()
            return _filled(parts, lengths, pa.string())
        if self.fields:
            fields = {name: below.typed(lengths, notes) for name, below in self.fields.items()}
            return [
                pa.StructArray.from_arrays(
                    [arrays[part] for arrays in fields.values()], list(fields), mask=_is_missing(valid, length)
                )
                for part, (valid, length) in enumerate(zip(parts, lengths, strict=True))
            ]
        if self._item is not None:
            return self._typed_lists(parts, lengths, notes)
        if self.kinds == {"object"}:
            notes.append(self._note("object", "objects without fields stay text"))
            texts = [None if valid is None else pa.compute.if_else(valid, "{}", None) for valid in parts]
            return _filled(texts, lengths, pa.string())
        if not self.kinds:
            return [pa.nulls(length, pa.float64()) for length in lengths]
        (kind,) = self.kinds
        if kind == "number" and (numbers := same_type(parts)) is not None:
            return _filled(numbers, lengths, next(part.type for part in numbers if part is not None))
        texts = [None if part is None else part.cast(pa.string()) for part in parts]
        values, found = typed_scalars(shown(self.path), pa.chunked_array(_filled(texts, lengths, pa.string())), kind)
        notes += found if len(self.path) == 1 else [replace(note, step=self._step) for note in found]
        return _cut(values, lengths)

    def _typed_lists(self, parts: Sequence[pa.Array | None], lengths: Sequence[int], notes: list[Note]) -> list[Any]:
        assert self._item is not None
        offsets = [self._offsets.get(part, np.zeros(length + 1, int)) for part, length in enumerate(lengths)]
        items = self._item.typed([int(places[-1]) for places in offsets], notes)
        return [
            pa.ListArray.from_arrays(pa.array(places, pa.int32()), below, mask=_is_missing(valid, length))
            for places, below, valid, length in zip(offsets, items, parts, lengths, strict=True)
        ]

    def _notes_of_text(self) -> list[Note]:
        if not self._is_mixed:
            return []
        counted: Counter[str] = Counter()
        for kind, count in self.counts.items():
            if kind is not _NULL:
                counted[KINDS[kind]] += count
        listed = counted.most_common()
        said = ", ".join(f"{kind} ({count:,})" for kind, count in listed)
        return [self._note(listed[1][0], f"mixed, stays text (JSON): {said}")]

    def _note(self, kind: str, said: str) -> Note:
        return Note(shown(self.path), *self.first[kind], said, self._step)

    @property
    def _step(self) -> str:
        whole = "the column" if len(self.path) == 1 else "the whole column"
        return f"repair the file; {column_option(str(self.path[0]), 'text')} takes {whole} as text (JSON)"


def by_name(records: Sequence[dict[str, Any]]) -> Mapping[str, Sequence[Any]]:
    """Return field name -> values of this field in all objects, with None for an object without the field.

    Raises Refused for more names than a table may have columns.
    """
    first = records[0]
    if len(first) > 1 and set(map(len, records)) == {len(first)}:
        # In most files all records have the same fields. For such files, this takes a third of the time.
        with contextlib.suppress(KeyError):
            return dict(zip(first, zip(*map(operator.itemgetter(*first), records), strict=True), strict=True))
    columns: dict[str, list[Any]] = {}
    rows = len(records)
    for row, record in enumerate(records):
        for name, value in record.items():
            column = columns.get(name)
            if column is None:
                columns[name] = column = [None] * rows
                if len(columns) > table_types.MOST_COLUMNS:
                    table_types.check_number(len(set().union(*records)))
            column[row] = value
    return columns


def _filled(parts: Sequence[pa.Array | None], lengths: Sequence[int], kind: pa.DataType) -> list[pa.Array]:
    """Return the parts, with an array of nulls of the type `kind` in place of each missing part."""
    return [pa.nulls(length, kind) if part is None else part for part, length in zip(parts, lengths, strict=True)]


def _is_missing(valid: pa.Array | None, length: int) -> pa.Array:
    return pa.array([True] * length, pa.bool_()) if valid is None else pa.compute.invert(valid)


def _cut(values: pa.ChunkedArray, lengths: Sequence[int]) -> list[pa.Array]:
    found, start = [], 0
    for length in lengths:
        chunks = values.slice(start, length).chunks
        found.append(
            chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.nulls(0, values.type)
        )
        start += length
    return found
