"""Lance keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract, WholeTableContract


class TestLance(TabularFormatContract):
    variant = "lance[engine=pylance]"


@pytest.mark.slow
class TestLanceIndexed(TabularFormatContract):
    variant = "lance[engine=pylance,index=btree]"


@pytest.mark.slow
class TestLanceZstd(WholeTableContract):
    variant = "lance[engine=pylance,codec=zstd,level=1]"
