"""Columns as bytes: one chunk for each column, in Parquet's encodings without dictionaries (paper, 4.1).

Levels are RLE and bit-packed, integers and texts delta encoded, keys plain, booleans RLE. Doubles are plain unless all
of a column are decimals, which the paper does not have (`decimals.py`). C does it where it was built, and numpy gives
the same bytes elsewhere.
"""

from __future__ import annotations

from libraries.document_store.encodings.chunk import (
    MOST_TEXT_BYTES,
    MOST_TOKENS,
    decode_coded,
    decode_column,
    encode_column,
)

__all__ = ["MOST_TEXT_BYTES", "MOST_TOKENS", "decode_coded", "decode_column", "encode_column"]
