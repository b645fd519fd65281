"""Convert a part of a column to the type that was found in a sample of the column.

A whole text file may be larger than memory. Therefore, the types are found in a sample, and the file is then read part
by part. The conversion must not change the meaning of a value. A value that does not fit is an error; it is never
changed or left out.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

from data_generator.imported.refusal import Refused, printable

_FINER = ("s", "ms", "us", "ns")


class Unfit(Exception):
    """Raised for values that do not fit a type."""


def fitted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values converted to `kind`, which must hold all of them without a change of meaning.

    If a struct lacks a field of `kind`, the field becomes null. Raises Unfit if the values do not fit.
    """
    if values.type == kind:
        return values
    if values.null_count == len(values):
        return pa.nulls(len(values), kind)
    if pt.is_struct(kind) and pt.is_struct(values.type):
        return _fitted_struct(values, kind)
    if pt.is_list(kind) and pt.is_list(values.type):
        items = fitted(values.values, kind.value_type)
        return pa.ListArray.from_arrays(values.offsets, items, kind, mask=values.is_null())
    if not _is_wider(kind, values.type):
        raise Unfit
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        raise Unfit from None


def _fitted_struct(values: pa.StructArray, kind: pa.StructType) -> pa.Array:
    names = {values.type.field(place).name for place in range(values.type.num_fields)}
    wanted = [kind.field(place) for place in range(kind.num_fields)]
    if names - {field.name for field in wanted}:
        raise Unfit
    parts = [
        fitted(values.field(field.name), field.type) if field.name in names else pa.nulls(len(values), field.type)
        for field in wanted
    ]
    return pa.StructArray.from_arrays(parts, fields=wanted, mask=values.is_null())


def _is_wider(kind: pa.DataType, found: pa.DataType) -> bool:
    """Return whether a cast from the type `found` to `kind` keeps the meaning of every value that can be cast."""
    if pt.is_integer(found):
        return pt.is_integer(kind) or pt.is_floating(kind)
    if pt.is_timestamp(kind):
        same_zone = pt.is_timestamp(found) and found.tz == kind.tz
        return (pt.is_date(found) and kind.tz is None) or (
            same_zone and _FINER.index(found.unit) <= _FINER.index(kind.unit)
        )
    return False


def first_unfit(count: int, fits: Callable[[int], bool]) -> int:
    """Return the index of the first of `count` values that does not fit.

    `fits(n)` returns whether the first n values fit. `fits(count)` must be False.
    """
    fitting, failing = 0, count
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        fitting, failing = (middle, failing) if fits(middle) else (fitting, middle)
    return failing - 1


def not_of_sample(name: str, value: str, kind: pa.DataType | str | None, sampled_rows: int, where: str) -> Refused:
    """Return the error for a value that does not fit the type found in a sample of `sampled_rows` rows.

    `kind` is this type or a description; None for a column that the sample lacks. `where` is the position of the value.
    """
    as_text = f"`columns={ {name: 'text'}!r}`"
    said = "does not occur" if kind is None else f"is {kind}"
    return Refused(
        f"column {name!r} holds {printable(value)[:60]!r}, but {said} in the {sampled_rows:,} sampled rows",
        f"State the type of the column, e.g. {as_text} to read all of its values as text.",
        where,
    )
