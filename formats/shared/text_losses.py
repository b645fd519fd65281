"""Changes to data (losses) that the readers of pyarrow, polars and DuckDB make when they read text formats.

Text formats do not state the types of columns, so these readers guess types from the values. Unlike pandas' readers,
these readers can return columns of any type with nulls. The module pandas_losses has the changes that pandas' readers
make.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapters.losses import Cause, Expect, Loss, Relation
from adapters.relations import floats, integers, nulls, texts, written

_NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32")

_NULL = frozenset({"int64-null", "float64-null", "timestamp-us-null"})
"""Names of test tables in which all values are null, and whose types no reader of text can guess."""

NULLS_AS_NULL = Loss(
    "columns without any value lose their type",
    "all values are missing",
    Cause.FORMAT,
    Relation(nulls.nulls_as_null),
    _NULL,
)
"""Adapters must declare either this loss or NULLS_AS_TEXT before other losses. Otherwise the other losses would also be
applied to columns without any value, because of the type that these columns had when they were stored."""

NULLS_AS_TEXT = Loss(
    "columns without any value become text",
    "all values are missing",
    Cause.FORMAT,
    Relation(nulls.nulls_as_text),
    _NULL,
)

INTEGERS_AS_INT64 = Loss(
    "integers become int64",
    "the same numbers",
    Cause.FORMAT,
    Relation(integers.any_integers_as_int64),
    frozenset(_NARROW),
)

LARGE_INTEGERS_AS_FLOAT64 = Loss(
    "integers beyond int64 become float64",
    "rounded to float64",
    Cause.CALL,
    Relation(integers.large_integers_as_float64),
    frozenset({"uint64"}),
)

LARGE_INTEGERS_AS_DECIMALS = Loss(
    "integers beyond int64 become decimals",
    "the same numbers",
    Cause.CALL,
    Relation(integers.large_integers_as_decimals),
    frozenset({"uint64"}),
)

EMPTY_TEXT_AS_NULL = Loss(
    "empty text becomes missing",
    "no other text",
    Cause.CALL,
    Relation(texts.words_as_null({""})),
    frozenset({"string-empty"}),
)

NUMERIC_TEXT = Loss(
    "text of which every value is a number becomes numbers",
    "int64, with fractions float64",
    Cause.CALL,
    Relation(texts.any_numeric_text_as_numbers),
    frozenset({"string-digits", "string-numbers"}),
)

UNPADDED_NUMERIC_TEXT = Loss(
    "text of which every value is a number becomes numbers, unless one begins with a needless zero",
    "int64, with fractions float64",
    Cause.CALL,
    Relation(texts.unpadded_numeric_text_as_numbers),
    frozenset({"string-numbers"}),
)

WHOLE_FLOATS_AS_INT64 = Loss(
    "floats without any fraction become int64",
    "the same numbers",
    Cause.CALL,
    Relation(floats.any_whole_floats_as_int64),
    frozenset({"float64-whole"}),
)

INFINITE_FLOATS_AS_TEXT = Loss(
    "floats of which some are infinite become text",
    "the text represents the same numbers",
    Cause.CALL,
    Relation(floats.infinite_floats, parse=written.parse_text),
    frozenset({"float64-infinite"}),
)

INFINITE_AS_NULL = Loss(
    "infinite floats become missing",
    "only they",
    Cause.CALL,
    Relation(floats.infinite_as_null),
    frozenset({"float64-infinite"}),
)

BLOBS_AS_TEXT = Loss(
    "bytes become text",
    "the text represents the same bytes",
    Cause.FORMAT,
    Relation(written.of_types("binary", "large_binary"), parse=written.parse_blob),
    frozenset({"binary"}),
)

DECIMALS_AS_TEXT = Loss(
    "decimals become text",
    "the text represents the same numbers",
    Cause.CALL,
    Relation(written.of_types("decimal"), parse=written.parse_text),
    frozenset({"decimal"}),
)

_ZONED = tuple(f"timestamp-{unit}-zone" for unit in ("s", "ms", "us", "ns"))


def timestamps(what: str, bound: str, expect: Expect, *kinds: str, zoned: Iterable[str] = _ZONED) -> Loss:
    """Return a `Loss`: timestamps come back in another unit, and in UTC if they have a time zone.

    `expect` changes a column as the reader does. `kinds` and `zoned` are names of test tables on which the loss must
    occur."""
    return Loss(what, bound, Cause.CALL, Relation(expect), frozenset({*kinds, *zoned}))
