"""Lance keeps the contract."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from formats.registry import FORMATS
from tests.contracts.selection import SelectionContract
from tests.contracts.streams import StreamContract
from tests.contracts.tabular import SettingContract, TabularFormatContract, WholeTableContract


class TestLance(TabularFormatContract):
    variant = "lance[engine=pylance]"


@pytest.mark.slow
class TestLanceIndexed(WholeTableContract, SelectionContract, StreamContract):
    variant = "lance[engine=pylance,index=btree]"


class TestLanceZstd(SettingContract):
    variant = "lance[engine=pylance,codec=zstd,level=1]"


@pytest.mark.parametrize(
    ("version", "column", "told"),
    [
        ("2.0", pa.array([{"a": 1}, None]), "2.0 does not encode struct validity; use file version 2.1 or later"),
        ("2.1", pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "Map data type is not enabled"),
    ],
)
def test_what_a_version_does_not_hold_is_refused(version: str, column: pa.Array, told: str, tmp_path: Path) -> None:
    adapter = FORMATS.build(f"lance[engine=pylance,version={version}]")
    adapter.load_library()
    with pytest.raises(RefusedData, match=f"^version={version}: .*{re.escape(told)}"):
        adapter.save(pa.table({"value": column}), tmp_path / "stored.lance")
