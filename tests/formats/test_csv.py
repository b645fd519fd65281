"""CSV keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestCsv(TabularFormatContract):
    variant = "csv[engine=pandas]"


class TestCsvKeepingWords(TabularFormatContract):
    variant = "csv[engine=pandas,keep_default_na=false]"
