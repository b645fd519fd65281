"""Pickle keeps the contract."""

from tests.contracts.tabular import SettingContract, TabularFormatContract


class TestPickle(TabularFormatContract):
    variant = "pickle[engine=pandas]"


class TestPickleXz(SettingContract):
    variant = "pickle[engine=pandas,codec=xz,level=1]"
