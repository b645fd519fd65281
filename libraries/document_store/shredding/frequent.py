"""Give a schema's remaining columns to the most frequent new paths, if documents have more paths than the schema
allows.

This happens only once in the life of a store, when the schema becomes full. Later this choice cannot change, because
a path keeps a column that was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from libraries.document_store import messagepack
from libraries.document_store.schema import ROOT, Growing, Node, Schema, extended
from libraries.document_store.shredding.reference import see
from libraries.document_store.values import ValueKind

CONSIDERED = 8
"""The maximum number of paths that are counted, as a multiple of the schema's limit. Further paths are ignored."""

_WITHOUT_COLUMN = (ValueKind.ARRAY, ValueKind.OBJECT, ValueKind.REST)


def becomes_full(before: Schema, after: Schema) -> bool:
    """Return whether the documents that extended `before` to `after` had more paths than the schema allows."""
    return len(before.leaves) < before.limit and before.rest is None and after.rest is not None


def most_frequent(rows: Sequence[bytes], schema: Schema) -> Schema:
    """Return the schema, filled to its limit with the most frequent new paths of the rows. Among equally frequent
    paths, the first one is chosen."""
    counting = _Counting(replace(schema, limit=schema.limit * CONSIDERED))
    counting.count(messagepack.decode(row) for row in rows)
    nodes, first = counting.schema().nodes, len(schema.nodes)
    columns = [index for index in range(first, len(nodes)) if nodes[index].kind not in _WITHOUT_COLUMN]
    columns.sort(key=lambda index: (-counting.rows[index], index))
    kept: set[int] = set()
    for index in columns[: schema.limit - len(schema.leaves)]:
        while index >= first and index not in kept:
            kept.add(index)
            index = nodes[index].parent
    numbers = {index: first + place for place, index in enumerate(sorted(kept))}
    chosen = (nodes[index] for index in sorted(kept))
    return extended(schema, [Node(numbers.get(node.parent, node.parent), node.kind, node.name) for node in chosen])


class _Counting(Growing):
    """Counts for each node the documents in which it occurs."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.rows: Counter[int] = Counter()
        self._met: set[int] = set()

    def count(self, documents: Iterable[dict[str, object]]) -> None:
        for document in documents:
            self._met.clear()
            see(document, self)
            self.rows.update(self._met)

    def branch(self, parent: int, name: str | None, kind: ValueKind) -> int | None:
        node = super().branch(parent, name, kind)
        if node is not None and node != ROOT:
            self._met.add(node)
        return node

    def mark_empty(self, node: int) -> None:
        super().mark_empty(node)
        marker = self._branches.get((node, None), {}).get(ValueKind.MARKER)
        if marker is not None:
            self._met.add(marker)
