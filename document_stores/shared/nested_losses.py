"""Losses of stores that store all documents in the columns of one schema."""

from __future__ import annotations

from adapters.losses import Cause
from document_stores.shared.json_losses import missing_as_null, numbers_as_double, refused

DUCKDB_LOSSES = (
    missing_as_null("missing", "missing and null", "changing fields", "object or empty object"),
    numbers_as_double("integers and doubles"),
    refused(
        "a field without a name, and names that differ only by case",
        Cause.CALL,
        *("empty name", "names that differ by case"),
    ),
)
DUCKDB_PARQUET_LOSSES = (
    refused("deeply nested arrays: each level doubles the time to read", Cause.CALL, "deep arrays"),
)
PYARROW_LOSSES = (
    missing_as_null("missing", "missing and null", "changing fields", "object or empty object"),
    numbers_as_double("integers and doubles"),
    refused(
        "values of different types in one field: a column has one type",
        Cause.FORMAT,
        *("mixed scalars", "object or scalar", "object or array", "mixed items", "changing types"),
        lossless="parquet-variant",
    ),
    refused("an object that never has a field: a group in Parquet needs one", Cause.FORMAT, "empty objects"),
    refused("deeply nested arrays", Cause.CALL, "deep arrays"),
    refused(
        "an array with a null as its first of several items: pyarrow's JSON reader miscounts its items",
        Cause.CALL,
        *("nulls in arrays",),
        lossless="parquet-nested[engine=duckdb]",
    ),
)
