"""Vortex keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestVortex(TabularFormatContract):
    variant = "vortex[engine=vortex-data]"


class TestVortexCompact(TabularFormatContract):
    variant = "vortex[engine=vortex-data,codec=compact]"
