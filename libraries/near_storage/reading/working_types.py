"""Convert rows to types in which they can be filtered, sliced and aggregated, and back to the types of the table.

Arrow's view types of text, bytes and lists have two disadvantages. Each slice and each message carries the complete
buffers to which its views refer, and Arrow cannot filter views (pyarrow 26). Therefore columns of views are cast to
types without views once, after decoding, and cast back before rows are returned or sent.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat


def mapped(type_: pa.DataType, rule: Callable[[pa.DataType], pa.DataType | None]) -> pa.DataType:
    """Replace the type and all types inside it according to `rule`, which takes a type and returns its replacement, or
    None to keep the type."""
    if (changed := rule(type_)) is not None:
        return mapped(changed, rule)

    def inside(field: pa.Field) -> pa.Field:
        return field.with_type(mapped(field.type, rule))

    if pat.is_map(type_):
        return pa.map_(inside(type_.key_field), inside(type_.item_field), type_.keys_sorted)
    if pat.is_struct(type_):
        return pa.struct([inside(type_.field(number)) for number in range(type_.num_fields)])
    if pat.is_fixed_size_list(type_):
        return pa.list_(inside(type_.value_field), type_.list_size)
    for is_kind, make in _LISTS:
        if is_kind(type_):
            return make(inside(type_.value_field))
    return type_


_LISTS = (
    (pat.is_list, pa.list_),
    (pat.is_large_list, pa.large_list),
    (pat.is_list_view, pa.list_view),
    (pat.is_large_list_view, pa.large_list_view),
)


def working_type(type_: pa.DataType) -> pa.DataType:
    """Return the type without views that holds the same values. A type without views is returned unchanged."""
    return mapped(_without_list_views(type_), _without_view)


def _without_list_views(type_: pa.DataType) -> pa.DataType:
    """Return the type with list views replaced by ordinary lists, at the top level and inside structs and list views.
    List views inside ordinary lists and maps stay, because neither Arrow nor `_cast` could restore them."""
    if pat.is_list_view(type_):
        return pa.list_(type_.value_field.with_type(_without_list_views(type_.value_type)))
    if pat.is_large_list_view(type_):
        return pa.large_list(type_.value_field.with_type(_without_list_views(type_.value_type)))
    if pat.is_struct(type_):
        fields = [type_.field(number) for number in range(type_.num_fields)]
        return pa.struct([field.with_type(_without_list_views(field.type)) for field in fields])
    return type_


def _without_view(type_: pa.DataType) -> pa.DataType | None:
    if pat.is_string_view(type_):
        return pa.large_string()
    if pat.is_binary_view(type_):
        return pa.large_binary()
    if isinstance(type_, pa.BaseExtensionType) and working_type(type_.storage_type) != type_.storage_type:
        return type_.storage_type
    return None


def working(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows without views. Converted columns get separate memory."""
    return cast(batch, working_schema(batch.schema))


def working_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of `working` rows. A schema without views is returned unchanged."""
    types = [working_type(field.type) for field in schema]
    if types == schema.types:
        return schema
    return pa.schema([field.with_type(type_) for field, type_ in zip(schema, types, strict=True)])


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast the rows to the types of `schema`, column by column. Raises an ArrowException that names the failing
    column."""
    if not batch.num_columns or batch.schema.equals(schema):
        return batch
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        try:
            columns.append(_cast(column, field.type))
        except pa.ArrowException as error:
            raise type(error)(f"column {field.name!r} as {field.type}: {str(error)[:100]}") from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if column.type.equals(type_):
        return column
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, _cast(column, type_.storage_type))
    if isinstance(column.type, pa.BaseExtensionType):
        return _cast(column.storage, type_)
    if pat.is_list_view(type_) or pat.is_large_list_view(type_):
        return _list_view(column, type_)
    if pat.is_list_view(column.type) or pat.is_large_list_view(column.type):
        return _list(column, type_)
    if pat.is_struct(type_) and any(_without_list_views(each) != each for each in (column.type, type_)):
        fields = [type_.field(number) for number in range(type_.num_fields)]
        children = [_cast(column.field(number), field.type) for number, field in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
    return column.cast(type_)


def _list_view(column: pa.ListArray | pa.LargeListArray, type_: pa.DataType) -> pa.Array:
    """Convert lists to list views that contain only the values of these lists."""
    make = pa.ListViewArray if pat.is_list_view(type_) else pa.LargeListViewArray
    offsets = column.offsets
    first, last = (offsets[0].as_py(), offsets[-1].as_py()) if len(offsets) else (0, 0)
    values = _cast(column.values.slice(first, last - first), type_.value_type)
    starts = pc.subtract(offsets.slice(0, len(column)), pa.scalar(first, offsets.type))
    sizes = pc.subtract(offsets.slice(1), offsets.slice(0, len(column)))
    return make.from_arrays(starts, sizes, values, type=type_, mask=column.is_null())


def _list(column: pa.ListViewArray | pa.LargeListViewArray, type_: pa.DataType) -> pa.Array:
    """Convert list views to lists with values in order. Arrow's cast returns arrays that are too short (pyarrow 26)."""
    make, offset_type = (pa.ListArray, pa.int32()) if pat.is_list(type_) else (pa.LargeListArray, pa.int64())
    sizes = pc.fill_null(pc.list_value_length(column), 0).cast(offset_type)
    offsets = pa.concat_arrays([pa.array([0], offset_type), pc.cumulative_sum(sizes)])
    return make.from_arrays(offsets, _cast(column.flatten(), type_.value_type), type=type_, mask=column.is_null())
