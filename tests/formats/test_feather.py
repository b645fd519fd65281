"""Feather keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract, WholeTableContract


class TestFeather(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=none]"


@pytest.mark.slow
class TestFeatherMapped(TabularFormatContract):
    variant = "feather[engine=pyarrow,codec=none,mapped=true]"


@pytest.mark.slow
class TestFeatherLz4(WholeTableContract):
    variant = "feather[engine=pyarrow,codec=lz4]"


@pytest.mark.slow
class TestFeatherZstd(WholeTableContract):
    variant = "feather[engine=pyarrow,codec=zstd,level=1]"


class TestFeatherByPandas(TabularFormatContract):
    variant = "feather[engine=pandas,codec=none]"


class TestFeatherByPolars(TabularFormatContract):
    variant = "feather[engine=polars,codec=none]"
