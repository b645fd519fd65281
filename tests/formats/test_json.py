"""JSON Lines keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract


class TestJson(TabularFormatContract):
    variant = "json[engine=pandas]"


@pytest.mark.slow
class TestJsonZstd(TabularFormatContract):
    variant = "json[engine=pandas,codec=zstd,level=1]"


@pytest.mark.slow
class TestJsonOf15Decimals(TabularFormatContract):
    variant = "json[engine=pandas,double_precision=15]"
