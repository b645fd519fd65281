"""Pickle keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract, WholeTableContract


class TestPickle(TabularFormatContract):
    variant = "pickle[engine=pandas]"


@pytest.mark.slow
class TestPickleXz(WholeTableContract):
    variant = "pickle[engine=pandas,codec=xz,level=1]"
