"""JSON Lines keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestJson(TabularFormatContract):
    variant = "json[engine=pandas]"


class TestJsonZstd(TabularFormatContract):
    variant = "json[engine=pandas,codec=zstd,level=1]"


class TestJsonOf15Decimals(TabularFormatContract):
    variant = "json[engine=pandas,double_precision=15]"
