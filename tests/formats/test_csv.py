"""CSV keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestCsv(TabularFormatContract):
    variant = "csv[engine=pandas]"


class TestCsvGzip(TabularFormatContract):
    variant = "csv[engine=pandas,codec=gzip,level=1]"


class TestCsvKeepingWords(TabularFormatContract):
    variant = "csv[engine=pandas,keep_default_na=false]"
