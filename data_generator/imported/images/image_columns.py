"""Find the columns of a table that contain images and labels, and return the rows of these columns.

The Hugging Face hub stores images as structs of `bytes` and `path`, and labels as integers. The names of the columns
differ between data sets. Plain binary columns are accepted too. This module does not decode images.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from data_generator.imported.refusal import Refused

_IMAGE_NAMES = ("image", "img", "picture", "photo", "jpg", "png")
_LABEL_NAMES = ("label", "labels", "fine_label", "class", "target", "coarse_label")
"""Names of label columns. If a table has several of these columns, the first name in this order is used. For CIFAR-100,
this is the finer label."""
_EMBED = "Save the data set with the images inside, as 'save_to_disk' and 'push_to_hub' of datasets do."


@dataclass(frozen=True)
class Columns:
    """Names of the image column and of the label column."""

    image: str
    label: str


def choose(schema: pa.Schema) -> Columns:
    """Return the names of the image column and of the column with integer labels.

    Raises Refused, with a list of all columns, if the table has no image column, several image columns, or no label
    column.
    """
    able = [field.name for field in schema if _holds_files(field.type)]
    images = [name for name in _IMAGE_NAMES if name in able] or able
    has = f"its columns: {', '.join(f'{field.name} ({field.type})' for field in schema) or 'none'}"
    if not images:
        raise Refused(
            f"has no column of images; {has}",
            "A column of images is binary, or a struct with a binary field 'bytes', as on the Hugging Face hub.",
        )
    if images == able and len(able) > 1:
        raise Refused(
            f"has several columns that may hold images: {', '.join(able)}",
            "Rename the right column to 'image', or leave the other columns out.",
        )
    labels = [name for name in _LABEL_NAMES if name in schema.names and pt.is_integer(schema.field(name).type)]
    if not labels:
        raise Refused(f"has no column of integer labels; {has}", "Labels must be integers in a column named 'label'.")
    return Columns(images[0], labels[0])


def rows(table: pa.Table | pa.RecordBatch, columns: Columns) -> Iterator[tuple[bytes, int]]:
    """Yield (image file, label) for each row. Raises Refused for a row without an image or without a label."""
    # Check offsets, because in a damaged Arrow file they could point anywhere in memory.
    table.validate(full=True)
    contents = table.column(columns.image).to_pylist()
    labels = table.column(columns.label).to_pylist()
    for content, label in zip(contents, labels, strict=True):
        yield _content(content), _label(label)


def _content(value: bytes | dict[str, object] | None) -> bytes:
    held = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(held, bytes):
        return held
    path = value.get("path") if isinstance(value, dict) else None
    if path is not None:
        raise Refused(f"has no image, only a path ({path})", _EMBED)
    raise Refused("has no image", "Leave the row out.")


def _label(value: int | None) -> int:
    if value is None:
        raise Refused("has no label", "Leave the row out.")
    if value >= 1 << 63:
        raise Refused(f"has the label {value}, which is not a signed 64-bit integer", "Number the classes from 0.")
    return value


def _holds_files(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        place = kind.get_field_index("bytes")
        return place >= 0 and _is_binary(kind.field(place).type)
    return _is_binary(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
