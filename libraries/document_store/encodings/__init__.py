"""Encode columns as bytes: one chunk per column, in Parquet's encodings without dictionaries (paper, 4.1).

Levels are RLE and bit-packed, integers and texts are delta encoded, keys are plain, booleans are RLE. Doubles are
plain, except in columns that hold only decimals (`decimals.py`); this encoding is not in the paper. C code encodes and
decodes if it was built; otherwise numpy produces the same bytes.
"""

from libraries.document_store.encodings.chunk import (
    MOST_TEXT_BYTES,
    MOST_TOKENS,
    decode_coded,
    decode_column,
    encode_column,
)

__all__ = ["MOST_TEXT_BYTES", "MOST_TOKENS", "decode_coded", "decode_column", "encode_column"]
