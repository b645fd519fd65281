"""Feather keeps the contract."""

import pytest

from tests.contracts.tabular import SettingContract, TabularFormatContract


class TestFeather(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=none]"


@pytest.mark.slow
class TestFeatherMapped(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=none,mapped=true]"


class TestFeatherLz4(SettingContract):
    variant = "feather[engine=pyarrow,codec=lz4]"


class TestFeatherZstd(SettingContract):
    variant = "feather[engine=pyarrow,codec=zstd,level=1]"


class TestFeatherByPandas(TabularFormatContract):
    variant = "feather[engine=pandas,codec=none]"


class TestFeatherByPolars(TabularFormatContract):
    variant = "feather[engine=polars,codec=none]"
