"""Reject strings that are not UTF-8 when a file is written, because readers would reject them."""

from __future__ import annotations

import pyarrow as pa

from libraries.f3.columns.memory_layout import shape_of
from libraries.f3.columns.shredding import Node, Piece, shred
from libraries.f3.errors import F3Error


def check_texts(node: Node, piece: Piece, rows: pa.Array, first_row: int) -> None:
    """Check that the strings of a piece are UTF-8.

    Args:
        node: the top-level column to which the piece belongs
        piece: what one of the column's physical (flat) columns stores for `rows`
        rows: rows of the top-level column
        first_row: the number of the first of these rows in the file

    Raises F3Error with the column and the row. The content of a null slot is not stored, so it is not checked. Strings
    nested below a null list or struct are stored, so they are checked.
    """
    if _is_sound(piece):
        return
    # Binary search. All rows before `first` are valid, and at least one row before `end` is not.
    first, end = 0, len(rows)
    while end - first > 1:
        middle = (first + end) // 2
        if _is_sound(_piece_of(node, piece.node, rows.slice(first, middle - first))):
            first = middle
        else:
            end = middle
    found = _first_wrong(_piece_of(node, piece.node, rows.slice(first, 1)).values)
    raise F3Error(
        f"column {piece.node.what}, row {first_row + first} (counted from 0): the string {found!r:.60} is not UTF-8\n"
        "  decode the strings from their actual encoding, or cast the column to binary"
    )


def _is_sound(piece: Piece) -> bool:
    if piece.offsets is not None or not shape_of(piece.values.type).utf8:
        return True
    try:
        piece.values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _piece_of(node: Node, wanted: Node, rows: pa.Array) -> Piece:
    return next(piece for piece in shred(node, rows) if piece.node is wanted)


def _first_wrong(values: pa.Array) -> bytes:
    binary = pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary()
    return next(text for text in values.cast(binary).to_pylist() if text is not None and not _is_utf8(text))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
