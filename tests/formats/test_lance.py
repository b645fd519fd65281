"""Lance keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestLance(TabularFormatContract):
    variant = "lance[engine=pylance]"
