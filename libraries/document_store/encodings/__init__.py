"""Columns as bytes: one chunk for each column, in Parquet's encodings without dictionaries (paper, 4.1).

Levels are RLE and bit-packed, integers and texts delta encoded, doubles and keys plain, booleans RLE. C does it where
it was built, and numpy gives the same bytes elsewhere. It knows neither pages nor checksums.
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
