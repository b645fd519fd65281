"""Avro keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestAvro(TabularFormatContract):
    variant = "avro[engine=fastavro,codec=none]"


class TestAvroDeflate(TabularFormatContract):
    variant = "avro[engine=fastavro,codec=deflate,level=1]"
