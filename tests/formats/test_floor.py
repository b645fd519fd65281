"""The floor keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestFloor(TabularFormatContract):
    variant = "floor"
