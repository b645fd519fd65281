"""Lance keeps the contract."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from adapters.errors import RefusedData
from adapters.predicate import Kind, Predicate
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


def test_fragments_are_one_table_once_all_are_committed(tmp_path: Path) -> None:
    adapter, folder = FORMATS.build("lance[engine=pylance]"), tmp_path / "parts.lance"
    adapter.load_library()
    table = pa.table({"i": range(30), "word": [f"word {row}" for row in range(30)]})
    wanted = [table.slice(0, 10), table.slice(10, 5), table.slice(15)]
    for number in (2, 0, 1):
        fragment, place = adapter.part(folder, number)
        assert place == folder
        fragment.save(wanted[number], place)
    with pytest.raises(ValueError, match="not found"):
        adapter.read(folder)
    adapter.commit_parts(folder, 3)
    assert adapter.count_parts(folder) == 3
    assert adapter.read(folder).equals(table)
    assert list(folder.glob("*.json")) == [], "only Lance's own files are left"
    for number, rows in enumerate(wanted):
        assert adapter.part(folder, number)[0].read(folder).equals(rows)
    scan = adapter.part(folder, 1)[0].open(folder).scan
    assert scan is not None
    found = scan(Predicate("i", Kind.RANGE, (8, 12)), ["word"])
    assert found.to_pydict() == {"word": ["word 10", "word 11"]}


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
