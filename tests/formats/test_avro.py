"""Avro keeps the contract."""

from pathlib import Path

import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from formats.avro import arrow_schema, avro_schema
from formats.registry import FORMATS
from tests.contracts.tabular import SettingContract, TabularFormatContract


class TestAvro(TabularFormatContract):
    variant = "avro[engine=fastavro,codec=none]"


class TestAvroZstandard(SettingContract):
    variant = "avro[engine=fastavro,codec=zstandard,level=1]"


class TestAvroDeflate(SettingContract):
    variant = "avro[engine=fastavro,codec=deflate,level=1]"


class TestAvroByPolars(TabularFormatContract):
    variant = "avro[engine=polars,codec=none]"


def test_a_field_is_a_union_only_where_it_may_be_null() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    described = avro_schema(schema)
    assert isinstance(described, dict)
    assert [field["type"] for field in described["fields"]] == ["long", ["null", "string"]]


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.null(),
        pa.int32(),
        pa.float32(),
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us"),
        pa.timestamp("ms", "UTC"),
        pa.decimal128(12, 2),
        pa.list_(pa.struct({"x": pa.int64(), "y": pa.map_(pa.string(), pa.binary())})),
    ],
    ids=str,
)
def test_schemas_there_and_back(arrow_type: pa.DataType) -> None:
    schema = pa.schema({"a": arrow_type})
    assert arrow_schema(avro_schema(schema)) == schema


def test_polars_takes_no_column_of_nulls_without_another_type(tmp_path: Path) -> None:
    adapter = FORMATS.build("avro[engine=polars]")
    adapter.load_library()
    table = pa.table({"a": [1, 2], "odd": pa.nulls(2)})
    with pytest.raises(RefusedData, match="column odd"):
        adapter.save(targets.to_native(table, Target("arrow"), adapter.native), tmp_path / "t.avro")


@pytest.mark.parametrize(
    "arrow_type", [pa.duration("us"), pa.timestamp("ns"), pa.map_(pa.int64(), pa.int64())], ids=str
)
def test_types_that_avro_does_not_have_are_refused_beforehand(arrow_type: pa.DataType) -> None:
    schema = pa.schema({"a": pa.int64(), "odd": arrow_type})
    with pytest.raises(RefusedData, match="column odd"):
        avro_schema(schema)
    assert "column odd" in str(FORMATS.build("avro").refusal(schema, 1))
