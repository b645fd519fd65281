"""ORC keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract, WholeTableContract


class TestOrc(TabularFormatContract):
    variant = "orc[engine=pyarrow,codec=none]"


@pytest.mark.slow
class TestOrcZstd(WholeTableContract):
    variant = "orc[engine=pyarrow,codec=zstd]"


class TestOrcByPandas(TabularFormatContract):
    variant = "orc[engine=pandas,codec=none]"
