"""ORC keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract


class TestOrc(TabularFormatContract):
    variant = "orc[engine=pyarrow,codec=none]"


@pytest.mark.slow
class TestOrcZstd(TabularFormatContract):
    variant = "orc[engine=pyarrow,codec=zstd]"


class TestOrcByPandas(TabularFormatContract):
    variant = "orc[engine=pandas,codec=none]"
