"""ORC keeps the contract."""

from tests.contracts.tabular import SettingContract, TabularFormatContract


class TestOrc(TabularFormatContract):
    variant = "orc[engine=pyarrow,codec=none]"


class TestOrcZstd(SettingContract):
    variant = "orc[engine=pyarrow,codec=zstd]"


class TestOrcByPandas(TabularFormatContract):
    variant = "orc[engine=pandas,codec=none]"


class TestOrcByDask(TabularFormatContract):
    variant = "orc[engine=dask,codec=none]"
