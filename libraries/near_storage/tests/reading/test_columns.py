"""Map columns of the table to leaf columns of the file."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from libraries.near_storage.errors import RequestError
from libraries.near_storage.reading.columns import leaf_count, leaves_of

STRUCT = pa.struct([("c", pa.int64()), ("d", pa.list_(pa.struct([("e", pa.int8()), ("f", pa.string())])))])
TYPES = {
    "a": pa.int64(),
    "s.c": pa.string(),
    "s": STRUCT,
    "m": pa.map_(pa.string(), STRUCT),
    "l": pa.large_list(pa.int8()),
    "x": pa.list_(pa.float32(), 3),
    "t": pa.dictionary(pa.int32(), pa.string()),
    "u": pa.uuid(),
    "n": pa.null(),
    "z": pa.int64(),
}


def test_leaves_are_those_of_the_footer():
    schema = pa.schema(TYPES.items())
    file = io.BytesIO()
    pq.write_table(schema.empty_table(), file)
    parquet = pq.ParquetFile(file)
    tops = [parquet.schema.column(number).path for number in range(parquet.metadata.num_columns)]
    for field in schema:
        leaves = leaves_of(schema, [field.name])
        assert len(leaves) == leaf_count(field.type)
        assert all(tops[leaf] == field.name or tops[leaf].startswith(f"{field.name}.") for leaf in leaves)
    assert leaves_of(schema, list(TYPES)) == list(range(len(tops)))
    assert leaves_of(parquet.schema_arrow, ["z", "a"]) == [0, len(tops) - 1]


def test_a_dotted_name_is_not_a_field():
    schema = pa.schema(TYPES.items())
    assert leaves_of(schema, ["s.c"]) == [1]
    assert leaves_of(schema, ["s"]) == [2, 3, 4]
    assert leaves_of(schema, []) == []


def test_unknown_and_doubled_names_are_refused():
    schema = pa.schema([("a", pa.int8()), ("b", pa.int8()), ("a", pa.int16())])
    with pytest.raises(RequestError, match="no column 'c' in the table; the columns are 'a', 'b', 'a'"):
        leaves_of(schema, ["b", "c"])
    with pytest.raises(RequestError, match=r"two columns .*'a'"):
        leaves_of(schema, ["a"])
    assert leaves_of(schema, ["b"]) == [1]
