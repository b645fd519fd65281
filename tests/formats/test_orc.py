"""ORC keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestOrc(TabularFormatContract):
    variant = "orc[engine=pyarrow,codec=none]"


class TestOrcZstd(TabularFormatContract):
    variant = "orc[engine=pyarrow,codec=zstd]"
