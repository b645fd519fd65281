"""HDF5 keeps the contract."""

import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from adapters.contract import Can
from adapters.errors import RefusedData
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import fidelity
from data_generator.generated.kinds import KINDS
from formats.registry import FORMATS
from tests.contracts.tabular import SettingContract, TabularFormatContract


class TestHdf5Fixed(TabularFormatContract):
    variant = "hdf5-fixed[engine=pandas]"


class TestHdf5TableBlosc(SettingContract):
    variant = "hdf5-table[engine=pandas,codec=blosc:zstd,level=1]"


class TestHdf5Table(TabularFormatContract):
    variant = "hdf5-table[engine=pandas]"


class TestHdf5TableByDask(TabularFormatContract):
    variant = "hdf5-table[engine=dask]"


class Marks:
    """An object that leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def test_a_read_runs_what_somebody_wrote_into_an_attribute(tmp_path: Path) -> None:
    adapter = FORMATS.build("hdf5-table")
    adapter.load_library()
    location, mark = tmp_path / "table.h5", tmp_path / "mark"
    adapter.save(pd.DataFrame({"a": [1, 2]}), location)
    with h5py.File(location, "a") as file:
        file["table"].attrs["info"] = np.bytes_(pickle.dumps(Marks(mark), protocol=0))
    assert not mark.exists()
    adapter.read(location)
    assert mark.exists() is (Can.NO_PICKLE not in adapter.capabilities)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (pd.DataFrame({"number": [3], "text": ["z"]}), r"other types.*integers.*floats"),
        (pd.DataFrame({"number": [3.5], "text": ["longer"]}), "text longer"),
    ],
    ids=["type", "text"],
)
def test_rows_that_do_not_fit_behind_the_others_are_refused(more: pd.DataFrame, reason: str, tmp_path: Path) -> None:
    adapter = FORMATS.build("hdf5-table")
    adapter.load_library()
    adapter.save(pd.DataFrame({"number": [1.5, None], "text": ["x", "y"]}), tmp_path / "table.h5")
    with pytest.raises(RefusedData, match=reason):
        adapter.append(more, tmp_path / "table.h5")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", [Target("pandas", nulls="numpy"), Target("arrow", nulls="numpy")], ids=str)
@pytest.mark.parametrize("name", ["hdf5-fixed", "hdf5-table"])
def test_integers_with_nulls_go_through_numpy(name: str, target: Target, tmp_path: Path) -> None:
    targets.apply_strings(target)
    adapter = FORMATS.build(name)
    adapter.load_library()
    outcomes = {
        (record.kind, record.nulls): record
        for record in fidelity.probe(adapter, target, tmp_path / "kinds", [KINDS["int64"]])
    }
    record = outcomes["int64", True]
    wanted = ("exact", "") if target.kind == "pandas" else ("lossy", "integers with nulls become float64")
    assert (record.outcome, record.how) == wanted
    assert outcomes["int64", False].outcome == "exact"
