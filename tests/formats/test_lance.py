"""Lance keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestLance(TabularFormatContract):
    variant = "lance[engine=pylance]"


class TestLanceZstd(TabularFormatContract):
    variant = "lance[engine=pylance,codec=zstd,level=1]"
