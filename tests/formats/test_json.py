"""JSON Lines keeps the contract."""

import pytest

from tests.contracts.tabular import SettingContract, TabularFormatContract, WholeTableContract


class TestJson(TabularFormatContract):
    variant = "json[engine=pandas]"


class TestJsonZstd(SettingContract):
    variant = "json[engine=pandas,codec=zstd,level=1]"


@pytest.mark.slow
class TestJsonOf15Decimals(WholeTableContract):
    variant = "json[engine=pandas,double_precision=15]"


@pytest.mark.slow
class TestJsonParsedByPyarrow(TabularFormatContract):
    variant = "json[engine=pandas,parser=pyarrow]"


class TestJsonByPolars(TabularFormatContract):
    variant = "json[engine=polars]"


class TestJsonByDuckdb(TabularFormatContract):
    variant = "json[engine=duckdb]"


class TestJsonByDask(TabularFormatContract):
    variant = "json[engine=dask]"
