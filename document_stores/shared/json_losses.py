"""Losses that several stores declare: stores that receive documents as JSON text, and stores with one schema for all
documents.

A loss has a view, a function that removes from a document what the loss changes. The views of the stored and of the
read document are equal if only this loss occurred.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from adapters.document_store import DocumentLoss
from adapters.losses import Cause


def everywhere(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a view (a function that changes a document). It applies `change` to every value at any depth, except
    arrays and objects."""

    def view(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: view(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [view(inner) for inner in value]
        return change(value)

    return view


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_base64(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _as_double(value: Any) -> Any:
    return float(value) if type(value) is int else value


def without_nulls(value: Any) -> Any:
    """Return a document without the fields that are null, at any depth. Nulls in arrays are kept."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value


def without_empty_objects(value: Any) -> Any:
    """Return a document without the fields that are empty objects, or objects that contain only such fields. Empty
    objects in arrays are kept."""
    if isinstance(value, list):
        return [without_empty_objects(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    inner = {name: without_empty_objects(part) for name, part in value.items()}
    return {name: part for name, part in inner.items() if part != {}}


def _whole_as_integer(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < CLICKHOUSE_EXPONENT:
        # ClickHouse writes the same digits as Python, and zeros in place of the exponent.
        return int(Decimal(repr(value)))
    return value


NOT_FINITE_AS_NULL = DocumentLoss(
    "NaN and infinities become null: JSON has no notation for them",
    "null in their place",
    Cause.FORMAT,
    frozenset({"not finite"}),
    everywhere(_finite),
)
BINARY_AS_BASE64 = DocumentLoss(
    "bytes become text in Base64: JSON has no notation for them",
    "the same bytes, as text",
    Cause.FORMAT,
    frozenset({"binary"}),
    everywhere(_as_base64),
)
JSON_TEXT = (NOT_FINITE_AS_NULL, BINARY_AS_BASE64)
"""Losses of every store that receives documents as JSON text."""


def _without_sign_of_zero(value: Any) -> Any:
    return 0.0 if type(value) is float and value == 0 else value


def _large_as_double(value: Any) -> Any:
    return float(value) if type(value) is int and abs(value) >= FIRST_EXPONENT else value


FIRST_EXPONENT = 10**16
"""Smallest whole double whose JSON text has an exponent. The JSON texts of smaller whole doubles end in '.0'."""

MINUS_ZERO_AS_ZERO = DocumentLoss(
    "-0.0 becomes 0.0: decimal numbers have one zero",
    "zero",
    Cause.FORMAT,
    frozenset({"doubles"}),
    everywhere(_without_sign_of_zero),
)
LARGE_WHOLE_AS_INTEGER = DocumentLoss(
    "a whole double from 1e16 on becomes an integer: its exponent is written out",
    "the double nearest to it",
    Cause.FORMAT,
    frozenset({"doubles"}),
    everywhere(_large_as_double),
)
CLICKHOUSE_EXPONENT = 1e21
"""Smallest whole double that ClickHouse writes with an exponent."""

WHOLE_AS_INTEGER = DocumentLoss(
    "a whole double comes back as an integer: its JSON text has no decimal point",
    "the integer with the same digits; doubles from 1e21 on are kept",
    Cause.FORMAT,
    frozenset({"doubles", "changing types"}),
    everywhere(_whole_as_integer),
)
NULLS_DROPPED = DocumentLoss(
    "a field that is null is missing: the store has no value for it",
    "no other field, and no other value",
    Cause.FORMAT,
    frozenset(
        {
            *("not finite", "nulls", "only nulls", "missing and null", "mixed scalars", "changing types"),
            "references to no database",
        }
    ),
    without_nulls,
)
EMPTY_OBJECTS_DROPPED = DocumentLoss(
    "a field that is an empty object is missing: the store has only paths of values",
    "no other field, and no other value",
    Cause.FORMAT,
    frozenset({"empty objects", "object or empty object"}),
    without_empty_objects,
)


def missing_as_null(*kinds: str) -> DocumentLoss:
    """Return the loss of a store that returns missing fields as null, for these kinds of documents."""
    return DocumentLoss(
        "a field that is missing comes back as null: all documents have one schema",
        "no other field, and no other value",
        Cause.FORMAT,
        frozenset(kinds),
        without_nulls,
    )


def numbers_as_double(*kinds: str) -> DocumentLoss:
    """Return the loss of a store that changes integers to doubles if the field has doubles in other documents."""
    return DocumentLoss(
        "an integer becomes a double where the field has doubles in other documents",
        "the double nearest to it",
        Cause.FORMAT,
        frozenset(kinds),
        everywhere(_as_double),
    )


def refused(what: str, cause: Cause, *kinds: str, lossless: str | None = None) -> DocumentLoss:
    """Return the loss of a store that refuses documents of these kinds. `what` describes the reason."""
    return DocumentLoss(what, "refused when they are stored", cause, frozenset(kinds), lossless=lossless)


ENCODED_DOT_REFUSED = refused(
    "'%2E' in a name, which is how the store writes a dot", Cause.FORMAT, "encoded dot in a name"
)
NUL_REFUSED = refused("a NUL in a text or in a name", Cause.FORMAT, "NUL in a text", "NUL in a name")
