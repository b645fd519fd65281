"""HDF5 keeps the contract."""

from pathlib import Path

import pytest

from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import fidelity
from formats.registry import FORMATS
from tests.contracts.tabular import TabularFormatContract


class TestHdf5Fixed(TabularFormatContract):
    variant = "hdf5-fixed[engine=pandas]"


@pytest.mark.slow
class TestHdf5TableBlosc(TabularFormatContract):
    variant = "hdf5-table[engine=pandas,codec=blosc:zstd,level=1]"


class TestHdf5Table(TabularFormatContract):
    variant = "hdf5-table[engine=pandas]"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", [Target("pandas", nulls="numpy"), Target("arrow", nulls="numpy")], ids=str)
@pytest.mark.parametrize("name", ["hdf5-fixed", "hdf5-table"])
def test_integers_with_nulls_go_through_numpy(name: str, target: Target, tmp_path: Path) -> None:
    targets.apply_strings(target)
    adapter = FORMATS.build(name)
    adapter.load_library()
    outcomes = {
        (record.kind, record.nulls): record for record in fidelity.probe(adapter, target, tmp_path / "kinds")
    }
    record = outcomes["int64", True]
    wanted = ("exact", "") if target.kind == "pandas" else ("lossy", "integers with nulls become float64")
    assert (record.outcome, record.how) == wanted
    assert outcomes["int64", False].outcome == "exact"
