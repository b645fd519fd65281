"""Pickle keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestPickle(TabularFormatContract):
    variant = "pickle[engine=pandas]"


class TestPickleXz(TabularFormatContract):
    variant = "pickle[engine=pandas,codec=xz,level=1]"
