"""Vortex keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract


class TestVortex(TabularFormatContract):
    variant = "vortex[engine=vortex-data]"


@pytest.mark.slow
class TestVortexCompact(TabularFormatContract):
    variant = "vortex[engine=vortex-data,codec=compact]"
