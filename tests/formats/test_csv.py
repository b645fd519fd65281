"""CSV keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract, WholeTableContract


class TestCsv(TabularFormatContract):
    variant = "csv[engine=pandas]"


@pytest.mark.slow
class TestCsvGzip(WholeTableContract):
    variant = "csv[engine=pandas,codec=gzip,level=1]"


@pytest.mark.slow
class TestCsvKeepingWords(WholeTableContract):
    variant = "csv[engine=pandas,keep_default_na=false]"


@pytest.mark.slow
class TestCsvParsedByPyarrow(TabularFormatContract):
    variant = "csv[engine=pandas,parser=pyarrow]"


class TestCsvByPyarrow(TabularFormatContract):
    variant = "csv[engine=pyarrow]"


class TestCsvByPolars(TabularFormatContract):
    variant = "csv[engine=polars]"


class TestCsvByDuckdb(TabularFormatContract):
    variant = "csv[engine=duckdb]"
