"""Documents to columns: rows of MessagePack become a schema and one column for each of its leaves.

C is the fast implementation, `reference` the specification.
"""

from __future__ import annotations

from libraries.document_store.shredding.columns import CodedColumn, Column, Texts, key_column
from libraries.document_store.shredding.frequent import becomes_full, most_frequent
from libraries.document_store.shredding.shredder import Shredded, infer, shred

__all__ = [
    "CodedColumn",
    "Column",
    "Shredded",
    "Texts",
    "becomes_full",
    "infer",
    "key_column",
    "most_frequent",
    "shred",
]
