"""Convert documents to columns (shredding): rows of MessagePack become a schema, and a column for each leaf of the
schema.

The C code is the fast implementation, the module `reference` is the specification.
"""

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
