"""HDF5 keeps the contract."""

from tests.contracts.tabular import TabularFormatContract


class TestHdf5Fixed(TabularFormatContract):
    variant = "hdf5-fixed[engine=pandas]"


class TestHdf5Table(TabularFormatContract):
    variant = "hdf5-table[engine=pandas]"
