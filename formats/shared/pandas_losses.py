"""Changes to data (losses) that several formats share. Most of them happen when pandas writes or reads the format.

The `cause` of a loss is Cause.FORMAT if no call could avoid the loss, and Cause.CALL if pandas could avoid it.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapters.losses import Cause, Expect, Loss, Relation
from adapters.relations import floats, integers, lists, nulls, texts, written

READ_CSV_WORDS = frozenset(
    {
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    }
)
"""Texts that pandas.read_csv reads as missing values by default, from its documentation (`keep_default_na`)."""

TIMESTAMPS = frozenset(f"timestamp-{unit}{zone}" for unit in ("s", "ms", "us", "ns") for zone in ("", "-zone"))

_NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32")

_ARROW = frozenset({"arrow"})
_PANDAS = frozenset({"pandas"})

NULLS_AS_FLOAT64 = Loss(
    "columns without any value become float64",
    "all values are missing",
    Cause.FORMAT,
    Relation(nulls.nulls_as_float64),
    frozenset({"string-null", "bool-null", "timestamp-us-null", "date-null", "categorical-null"}),
)
"""Adapters must declare this loss before other losses. Otherwise the other losses would also be applied to columns
without any value, because of the type that these columns had when they were stored."""

CATEGORIES_OF_NULLS = Loss(
    "categoricals without any value lose their type",
    "all values are missing",
    Cause.CALL,
    Relation(nulls.dictionary_of_nulls_as_null),
    frozenset({"categorical-null"}),
    targets=_PANDAS,
)
"""pyarrow converts categoricals without any value to a dictionary whose values have the type null. Few formats support
this type."""

NAN_AS_NULL = Loss(
    "NaN becomes null", "only NaN", Cause.CALL, Relation(floats.nan_as_null), frozenset({"float64-nan"}), targets=_ARROW
)

INTEGERS_THROUGH_NUMPY = Loss(
    "integers with nulls become float64",
    "rounded to float64",
    Cause.CALL,
    Relation(integers.integers_with_nulls_as_float64),
    frozenset({"int8", "int64", "uint64"}),
    targets=_ARROW,
    nulls=frozenset({"numpy"}),
)

DECIMAL_PRECISION = Loss(
    "decimals get the precision that their values need",
    "the same numbers and scale",
    Cause.CALL,
    Relation(floats.decimals_of_needed_precision),
    frozenset({"decimal"}),
    targets=_ARROW,
)

INTEGERS_IN_MISSING_STRUCTS = Loss(
    "integers in structs of which some are missing become float64",
    "the same numbers, rounded to float64",
    Cause.CALL,
    Relation(integers.integers_in_missing_structs_as_float64),
    frozenset({"struct"}),
    targets=_ARROW,
)

TEXT_AS_STR = Loss(
    "text becomes pandas' dtype str",
    "the same text",
    Cause.CALL,
    Relation(written.of_types("string", "large_string"), strings="str"),
    frozenset({"string", "string-unicode"}),
    targets=_PANDAS,
    strings=frozenset({"object"}),
)
"""This loss occurs only if the user's DataFrame has text as Python objects. pyarrow's own conversion to pandas
nevertheless returns the dtype str."""

VECTORS_AS_LISTS = Loss(
    "vectors become lists: their length is not part of the type",
    "the same values",
    Cause.CALL,
    Relation(lists.vectors_as_lists),
    frozenset({"vector", "vector-long"}),
    targets=_ARROW,
)
"""In pandas, a column of vectors is a column of numpy arrays, which may have any length."""

DICTIONARY_AS_VALUES = Loss(
    "categoricals become plain columns",
    "the same values",
    Cause.FORMAT,
    Relation(texts.dictionary_as_values),
    frozenset({"categorical", "categorical-ordered", "categorical-int64", "categorical-float64"}),
)
"""Adapters must declare this loss before losses of plain columns. The losses of plain columns are then also applied to
the values of dictionaries."""

DICTIONARY_OF_NUMBERS_AS_VALUES = Loss(
    "categoricals of numbers become plain columns",
    "the same values",
    Cause.CALL,
    Relation(texts.dictionary_of_numbers_as_values),
    frozenset({"categorical-int64", "categorical-float64"}),
)
"""The loss of readers that return dictionaries only for text. This loss is a part of `DICTIONARY_AS_VALUES`, so an
adapter declares only one of these losses."""

ORDER_OF_CATEGORIES = Loss(
    "ordered categories lose their order",
    "the same values",
    Cause.CALL,
    Relation(texts.dictionary_without_order),
    frozenset({"categorical-ordered"}),
)

NUMERIC_TEXT = Loss(
    "text of which every value is a number becomes numbers",
    "int64, with nulls or fractions float64",
    Cause.CALL,
    Relation(texts.numeric_text_as_numbers),
    frozenset({"string-digits", "string-numbers"}),
)

NULL_AS_EMPTY_TEXT = Loss(
    "missing text becomes empty text",
    "only nulls",
    Cause.CALL,
    Relation(texts.null_as_empty_text),
    frozenset({"string", "string-unicode"}),
)

ANYTHING_WITH_NULLS_AS_TEXT = Loss(
    "columns with missing values become text",
    "the text represents the same values",
    Cause.CALL,
    Relation(written.anything_with_nulls, parse=written.parse_text),
    frozenset({"int64", "float64", "float64-nan", "bool", "decimal"}),
)


WHOLE_FLOATS_AS_INT64 = Loss(
    "floats without any fraction become int64",
    "the same numbers",
    Cause.CALL,
    Relation(floats.whole_floats_as_int64),
    frozenset({"float64-whole"}),
)


def objects_of_nulls(*kinds: str, strings: Iterable[str] = ("str", "object")) -> Loss:
    """Return a `Loss`: pandas' columns of Python objects come back without a type if all values are missing."""
    return Loss(
        "columns of objects without any value lose their type",
        "all values are missing",
        Cause.CALL,
        Relation(nulls.objects_of_nulls_as_null),
        frozenset(kinds),
        targets=_ARROW,
        strings=frozenset(strings),
    )


def categories_of_nulls_with(values: str, targets: Iterable[str] = _ARROW) -> Loss:
    """Return a `Loss`: a categorical without any value comes back as a categorical whose values have the Arrow type
    `values`."""
    return Loss(
        f"categoricals without any value become those of {values}",
        "all values are missing",
        Cause.CALL,
        Relation(nulls.dictionary_of_nulls_with(values)),
        frozenset({"categorical-null"}),
        targets=frozenset(targets),
    )


BY_CONVERSION = (
    objects_of_nulls("date-null"),
    categories_of_nulls_with("null"),
    NAN_AS_NULL,
    DECIMAL_PRECISION,
    VECTORS_AS_LISTS,
)
"""Changes to data when an Arrow table is converted to a DataFrame. A format that stores the DataFrame itself, without
changes, has only these losses."""


def missing_words(words: Iterable[str], lossless: str | None = None) -> Loss:
    """Return a `Loss`: the given words come back as missing values. `lossless` names a variant without this loss."""
    return Loss(
        "'NA', 'null', '' and the like become missing",
        "only the words that read_csv documents",
        Cause.CALL,
        Relation(texts.words_as_null(words)),
        frozenset({"string-empty", "string-missing"}),
        lossless=lossless,
    )


def integers_as_int64(*kinds: str) -> Loss:
    """Return a `Loss`: integers without nulls come back as int64, or as uint64 if their values require it."""
    return Loss(
        "integers become int64 (uint64 where needed)",
        "the same numbers",
        Cause.FORMAT,
        Relation(integers.integers_as_int64),
        frozenset(kinds),
    )


def integers_with_nulls_as_float64(*kinds: str) -> Loss:
    """Return a `Loss`: integers with nulls come back as float64, because numpy's integers cannot be null."""
    return Loss(
        "integers with nulls become float64",
        "rounded to float64",
        Cause.CALL,
        Relation(integers.integers_with_nulls_as_float64),
        frozenset(kinds),
    )


INTEGERS_AS_INT64 = integers_as_int64(*_NARROW)

INTEGERS_WITH_NULLS_AS_FLOAT64 = integers_with_nulls_as_float64(*_NARROW, "int64", "int64-exact", "uint64")

BOOLEANS_WITH_NULLS_AS_FLOAT64 = Loss(
    "booleans with nulls become float64",
    "1.0 and 0.0",
    Cause.CALL,
    Relation(integers.booleans_with_nulls_as_float64),
    frozenset({"bool"}),
)

BOOLEANS_WITH_NULLS_AS_OBJECTS = Loss(
    "booleans with nulls become objects",
    "True, False and missing",
    Cause.CALL,
    Relation(integers.booleans_with_nulls, nulls="numpy"),
    frozenset({"bool"}),
    targets=_PANDAS,
)

TEXT_TYPES_WITH_NULLS = (
    Loss(
        "integers with nulls become float64",
        "rounded to float64",
        Cause.CALL,
        Relation(integers.small_integers_with_nulls_as_float64),
        frozenset({*_NARROW, "int64", "int64-exact"}),
    ),
    Loss(
        "integers beyond int64 become text when some are missing",
        "the text represents the same numbers",
        Cause.CALL,
        Relation(integers.large_integers_with_nulls, parse=written.parse_text),
        frozenset({"uint64"}),
    ),
    BOOLEANS_WITH_NULLS_AS_OBJECTS,
)


def float32_as_float64(*, bound: str, tolerance: float = 0.0, relative_tolerance: float = 0.0) -> Loss:
    """Return a `Loss`: float32 columns come back as float64. `bound` describes the tolerances in words."""
    return Loss(
        "float32 becomes float64",
        bound,
        Cause.FORMAT,
        Relation(floats.float32_as_float64, tolerance, relative_tolerance),
        frozenset({"float32"}),
    )


def float16_as_float64(*, bound: str, tolerance: float = 0.0, relative_tolerance: float = 0.0) -> Loss:
    """Return a `Loss`: float16 columns come back as float64. `bound` describes the tolerances in words."""
    return Loss(
        "float16 becomes float64",
        bound,
        Cause.FORMAT,
        Relation(floats.float16_as_float64, tolerance, relative_tolerance),
        frozenset({"float16"}),
    )


FLOAT16_AS_WRITTEN = float16_as_float64(
    bound="float64 within half a unit of float16", tolerance=2.0**-25, relative_tolerance=2.0**-11
)
"""pandas writes the fewest digits that distinguish a float16 from its neighbours."""

FLOAT16_AS_FLOAT32 = Loss(
    "float16 becomes float32",
    "the same numbers",
    Cause.CALL,
    Relation(floats.float16_as_float32),
    frozenset({"float16"}),
)


def vectors_as_lists_of_float64(*, bound: str, tolerance: float = 0.0, relative_tolerance: float = 0.0) -> Loss:
    """Return a `Loss`: float32 vectors come back as lists of float64. `bound` describes the tolerances in words."""
    return Loss(
        "vectors become lists of float64",
        bound,
        Cause.FORMAT,
        Relation(lists.vectors_as_lists_of_float64, tolerance, relative_tolerance),
        frozenset({"vector", "vector-long"}),
    )


def decimals_as_float64(*, tolerance: float = 0.0, relative_tolerance: float = 0.0) -> Loss:
    """Return a `Loss`: decimals come back as float64 within the given tolerances."""
    return Loss(
        "decimals become float64",
        "rounded to float64",
        Cause.CALL,
        Relation(floats.decimals_as_float64, tolerance, relative_tolerance),
        frozenset({"decimal"}),
    )


DECIMALS_AS_FLOAT64 = decimals_as_float64(relative_tolerance=2.0**-52)


def written_as_text(*kinds: str, expect: Expect = written.written_as_text) -> Loss:
    """Return a `Loss`: values of types that a format lacks come back as the text that pandas writes for them."""
    return Loss(
        "dates, times, bytes and nested values become text",
        "the text represents the same values",
        Cause.FORMAT,
        Relation(expect, parse=written.parse_text),
        frozenset(kinds),
    )
