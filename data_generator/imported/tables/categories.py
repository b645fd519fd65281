"""Transfer categorical columns from the reading process to the main process, with one set of categories per column.

Each part of a table, such as a row group or a batch, may have a separate dictionary. In the reading process, `Coder`
replaces all dictionaries of a column by one growing set of categories, in order of appearance. In the main process,
`Decoder` combines codes and categories again. Unordered categories may appear in any order. Categories that occur in no
row are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from data_generator.imported.refusal import Refused

_PLACE = struct.Struct("<I")
_PART_BYTES = 32 << 20
"""Approximate bytes of categories per message."""


def coded(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which categorical columns have the type of their codes (integers)."""
    fields = [field.with_type(field.type.index_type) if pt.is_dictionary(field.type) else field for field in schema]
    return pa.schema(fields)


class Coder:
    """Converts batches to codes and messages with new categories, in the reading process."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = coded(schema)
        self._columns = {place: _Column(field) for place, field in enumerate(schema) if pt.is_dictionary(field.type)}

    def add(self, batch: pa.RecordBatch) -> tuple[list[bytes], pa.RecordBatch]:
        """Return messages with new categories, and the batch with codes in place of values.

        Raises Refused if the categories of several parts cannot be combined into one set.
        """
        if not self._columns:
            return [], batch
        messages: list[bytes] = []
        arrays = list(batch.columns)
        for place, column in self._columns.items():
            new, arrays[place] = column.coded(arrays[place])
            messages += [_PLACE.pack(place) + part.serialize().to_pybytes() for part in _parts(new)]
        return messages, pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _parts(values: pa.Array) -> Iterator[pa.RecordBatch]:
    step = max(1, len(values) * _PART_BYTES // max(values.nbytes, _PART_BYTES))
    for start in range(0, len(values), step):
        yield pa.record_batch([values.slice(start, step)], names=["values"])


class _Column:
    """The categories of one column so far."""

    def __init__(self, field: pa.Field) -> None:
        self._name, self._type = field.name, field.type
        self._known = pa.array([], field.type.value_type)
        self._dictionary: pa.Array | None = None
        self._codes = pa.array([], field.type.index_type)
        """Code in the combined set for each value of the last dictionary; null for a missing value."""

    def coded(self, array: pa.DictionaryArray) -> tuple[pa.Array, pa.Array]:
        """Return the categories that are new in this part, and the code of each row. Raises Refused like
        `Coder.add`."""
        new = self._known.slice(0, 0)
        if self._dictionary is None or not array.dictionary.equals(self._dictionary):
            new = self._learnt(array.dictionary)
        return new, self._codes.take(array.indices)

    def _learnt(self, dictionary: pa.Array) -> pa.Array:
        # In pandas a missing value is not a category.
        present = pc.unique(dictionary.drop_null())
        if pt.is_floating(present.type):
            present = present.filter(pc.invert(pc.is_nan(present)))
        if self._type.ordered:
            self._check_order(present)
        new = present.filter(pc.invert(pc.is_in(present, value_set=self._known)))
        self._known = pa.concat_arrays([self._known, new])
        if len(self._known) > 2 ** (self._type.index_type.bit_width - 1):
            most = 2 ** (self._type.index_type.bit_width - 1)
            raise Refused(
                f"column {self._name!r} has {len(self._known):,} categories in all parts of the table together, but "
                f"its codes ({self._type.index_type}) allow at most {most:,}",
                "Store the column with the same categories in each part, or with codes of int32.",
            )
        places = pc.index_in(dictionary, value_set=self._known)
        self._dictionary, self._codes = dictionary, places.cast(self._type.index_type)
        return new

    def _check_order(self, present: pa.Array) -> None:
        shorter = min(len(present), len(self._known))
        if not present.slice(0, shorter).equals(self._known.slice(0, shorter)):
            raise Refused(
                f"column {self._name!r} has ordered categories, and the order differs between parts of the table",
                "Give all parts the same categories in the same order, or store the categories as unordered.",
            )


class Decoder:
    """Combines codes and categories in the main process. It checks its input, because a hostile file may have made
    it."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.codes = coded(schema)
        """The schema of the batches that `decoded` takes, with codes."""
        self._known = {
            place: pa.array([], field.type.value_type)
            for place, field in enumerate(schema)
            if pt.is_dictionary(field.type)
        }

    def learn(self, message: bytes | bytearray) -> None:
        """Add categories. Raises ValueError or pyarrow.ArrowException for an invalid message."""
        (place,) = _PLACE.unpack_from(message)
        if place not in self._known:
            raise ValueError(f"The message has categories for column {place}, which is not categorical.")
        schema = pa.schema([("values", self._known[place].type)])
        batch = pa.ipc.read_record_batch(pa.py_buffer(message).slice(_PLACE.size), schema)
        batch.validate(full=True)
        together = pa.concat_arrays([self._known[place], batch.column(0)])
        if together.null_count or len(pc.unique(together)) < len(together):
            raise ValueError(f"The categories of column {place} have nulls or duplicates.")
        self._known[place] = together

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with categories in place of codes. Raises ValueError, IndexError or pyarrow.ArrowException for
        codes without a category."""
        if not self._known:
            return batch
        arrays = list(batch.columns)
        for place, known in self._known.items():
            ordered = self._schema.field(place).type.ordered
            arrays[place] = pa.DictionaryArray.from_arrays(arrays[place], known, ordered=ordered)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
