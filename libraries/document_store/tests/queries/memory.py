"""A snapshot in memory, whose parts are rows or shredded columns."""

from __future__ import annotations

import numpy as np

from libraries.document_store.messagepack import encode_all
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import shred
from libraries.document_store.values import ValueKind


class MemoryPart:
    """Some shredded documents."""

    def __init__(self, documents, schema, columnar, key="id"):
        self.columnar = columnar
        self._rows = encode_all(documents)
        self._shredded = shred(self._rows, schema)
        self.schema = self._shredded.schema
        self.count = len(documents)
        keys = [document[key] for document in documents]
        self.keys = np.array(keys, np.int64 if isinstance(keys[0], int) else object)
        self.columns_read: set[int] = set()
        self.rows_read = 0

    def rows(self):
        self.rows_read += 1
        return self._rows

    def columns(self, leaf_numbers):
        self.columns_read.update(leaf_numbers)
        return {n: self._shredded.columns[n] for n in leaf_numbers if n < len(self._shredded.columns)}

    def coded_columns(self, leaf_numbers):
        return self.columns(leaf_numbers)

    def may_match(self, leaf_number, low, high):
        return leaf_number < len(self._shredded.columns)


class MemorySnapshot:
    """Parts of given sizes, every third of them with rows."""

    def __init__(
        self, documents, sizes=(3, 2, 5), columnar=(True, True, False), kind=ValueKind.INTEGER, limit=4000, key="id"
    ):
        schema = Schema.new(key, kind, limit)
        self.found: list[MemoryPart] = []
        place = 0
        while place < len(documents):
            number = len(self.found)
            piece = documents[place : place + sizes[number % len(sizes)]]
            part = MemoryPart(piece, schema, columnar[number % len(columnar)], key)
            schema = part.schema
            self.found.append(part)
            place += len(piece)

    def count(self):
        return sum(part.count for part in self.found)

    def most(self):
        return self.count()

    def parts(self, keys=None):
        # Any order is allowed, so do not use key order.
        return iter(self.found[::-1])

    def index_keys(self, path, low, high, most):
        return None
