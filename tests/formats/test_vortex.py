"""Vortex keeps the contract."""

from pathlib import Path

import pyarrow as pa
import pytest

from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from formats.registry import FORMATS
from tests.contracts.tabular import SettingContract, TabularFormatContract


class TestVortex(TabularFormatContract):
    variant = "vortex[engine=vortex-data]"


LONG = "longer than a view can hold itself"
TEXTS_INSIDE = {
    "list": (pa.list_(pa.string()), [["a", None, LONG], [], None, [""]]),
    "bytes": (pa.list_(pa.binary()), [[b"a", None, LONG.encode()], [], None]),
    "list of lists": (pa.list_(pa.list_(pa.string())), [[["a"], []], [], None, [None, [LONG, None]]]),
    "list of structs": (
        pa.list_(pa.struct({"a": pa.string(), "b": pa.int64()})),
        [[{"a": "x", "b": 1}], [], None, [{"a": None, "b": 2}]],
    ),
    "struct of lists": (
        pa.struct({"a": pa.list_(pa.string()), "b": pa.string()}),
        [{"a": ["x", None], "b": "y"}, {"a": [], "b": None}],
    ),
    "map to lists": (pa.map_(pa.string(), pa.list_(pa.string())), [[("a", ["x", None])], [], None, [("b", None)]]),
}


@pytest.mark.parametrize("kind", TEXTS_INSIDE)
@pytest.mark.parametrize("target", [Target("pandas"), Target("arrow")], ids=lambda target: target.kind)
def test_text_within_other_values_comes_back(kind: str, target: Target, tmp_path: Path) -> None:
    """Vortex returns views, but pyarrow cannot convert lists of views of text to pandas."""
    arrow, values = TEXTS_INSIDE[kind]
    table = pa.table({"key": pa.array(range(len(values))), "value": pa.array(values, arrow)})
    targets.apply_strings(target)
    adapter = FORMATS.build("vortex[engine=vortex-data]")
    adapter.load_library()
    # Saved from Arrow, because the types of a DataFrame would be guessed.
    adapter.save(table, tmp_path / "t.vortex")
    read = adapter.read(tmp_path / "t.vortex")
    got = targets.from_native(read, target, adapter.native_read)
    assert verify.compare(table, got, target, adapter.losses).problems == ()
    assert read["value"].to_pylist() == values
    handle = adapter.open(tmp_path / "t.vortex")
    assert handle.project is not None
    assert handle.project(["value"]).equals(read.select(["value"]))


def test_text_outside_of_lists_is_left_as_vortex_gives_it(tmp_path: Path) -> None:
    """Tables without such lists cost no conversion."""
    adapter = FORMATS.build("vortex[engine=vortex-data]")
    adapter.load_library()
    adapter.save(pa.table({"a": ["x"], "b": [{"c": "y"}], "d": [[1]]}), tmp_path / "t.vortex")
    assert adapter.read(tmp_path / "t.vortex").schema.types[0] == pa.string_view()


class TestVortexCompact(SettingContract):
    variant = "vortex[engine=vortex-data,codec=compact]"
