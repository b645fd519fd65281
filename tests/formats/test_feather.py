"""Feather keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestFeather(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=none]"


class TestFeatherMapped(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=none,mapped=true]"


class TestFeatherLz4(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=lz4]"


class TestFeatherZstd(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=zstd,level=1]"
