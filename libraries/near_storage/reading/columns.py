"""Map columns of a table to the numbers of their leaf columns in a Parquet file.

Dotted names are ambiguous. For example, a column `a.b` and the field b of a struct a have the same dotted name, and
pyarrow selects both. Numbers are unique.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from libraries.near_storage.errors import RequestError


def leaf_count(type_: pa.DataType) -> int:
    """Return how many leaf columns Parquet stores for an Arrow type."""
    if isinstance(type_, pa.BaseExtensionType):
        return leaf_count(type_.storage_type)
    if pa.types.is_nested(type_):
        return sum(leaf_count(type_.field(number).type) for number in range(type_.num_fields))
    return 1


class Leaves:
    """The leaf columns of a table's top-level columns, computed once because walking pyarrow schemas is slow."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names: list[str] = schema.names
        self._of: dict[str, range] = {}
        self._twice: set[str] = set()
        start = 0
        for field in schema:
            stop = start + leaf_count(field.type)
            if field.name in self._of:
                self._twice.add(field.name)
            self._of[field.name] = range(start, stop)
            start = stop

    def of(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of the leaf columns that belong to these top-level columns, in ascending order. Leaf
        columns are numbered as in the footer.

        Raises RequestError for a missing or duplicate name.
        """
        found = []
        for name in names:
            leaves = self._of.get(name)
            if leaves is None:
                some = ", ".join(map(repr, self._names[:20]))
                raise RequestError(f"no column {name!r} in the table; the columns are {some}")
            if name in self._twice:
                raise RequestError(f"the table has two columns named {name!r}: neither can be requested")
            found.append(leaves)
        return sorted(leaf for leaves in set(found) for leaf in leaves)


def leaves_of(schema: pa.Schema, names: Iterable[str]) -> list[int]:
    """Return the numbers of leaf columns like `Leaves.of`. Use `Leaves` for a schema that is used repeatedly."""
    return Leaves(schema).of(names)
