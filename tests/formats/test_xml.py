"""XML keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestXml(TabularFormatContract):
    variant = "xml[engine=pandas]"
