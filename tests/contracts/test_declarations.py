"""What the contract says of an undeclared change can be pasted, and then the contract is content."""

from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from adapters.losses import Cause, Loss, Relation
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.results.records import Fidelity
from bench_runner.worker import fidelity
from formats.csv import CsvPyarrow
from formats.shared import pandas_losses as shared
from formats.shared import text_losses as text
from tests.contracts import declarations

ARROW = Target("arrow")


class Undeclared(CsvPyarrow):
    """CSV by pyarrow, of which nobody has said yet what it loses."""

    losses: ClassVar = ()


class ColumnsTurned(Undeclared):
    """A fault that no relation describes."""

    def __init__(self) -> None:
        super().__init__()
        self.load_library()

    def read(self, location: Path) -> pa.Table:
        return super().read(location)[::-1]


def undeclared(adapter: Undeclared, folder: Path) -> list[Fidelity]:
    targets.apply_strings(ARROW)
    found = declarations.records("csv", adapter, ARROW, folder)
    return [record for record in found if record.outcome == fidelity.ERROR and not record.cause]


@pytest.fixture
def adapter() -> Undeclared:
    adapter = Undeclared()
    adapter.load_library()
    return adapter


def test_what_it_says_to_paste_declares_what_it_explains(adapter: Undeclared, tmp_path: Path) -> None:
    before = undeclared(adapter, tmp_path / "before")
    said = declarations.report(adapter, before, tmp_path)
    assert "text.INTEGERS_AS_INT64,  # int16, int32, int8, uint16, uint32, uint8" in said
    assert "shared.DICTIONARY_AS_TEXT," in said
    pasted = said[said.index("losses = (") : said.index("\n)") + 2]
    contract = {"Cause": Cause, "Loss": Loss, "Relation": Relation}
    names = {**declarations.RELATIONS, **contract, "shared": shared, "text": text}
    exec(pasted, names)
    adapter.losses = names["losses"]  # type: ignore[misc,assignment]
    explained = {record.kind for record in before} - {record.kind for record in undeclared(adapter, tmp_path / "after")}
    assert {"int8", "uint32", "float32", "categorical", "string-digits", "float64-whole"} <= explained


def test_what_nothing_explains_is_said_too(adapter: Undeclared, tmp_path: Path) -> None:
    by_nobody = Fidelity(
        variant="csv", target="arrow", strings="str", kind="int64-exact", nulls=False, outcome=fidelity.ERROR, how="odd"
    )
    said = declarations.report(ColumnsTurned(), [by_nobody], tmp_path)
    assert "nothing ready-made fits int64-exact" in said
    assert "losses = (" not in said


def test_a_stale_declaration_needs_no_other(adapter: Undeclared, tmp_path: Path) -> None:
    adapter.losses = (text.BLOBS_AS_TEXT,)  # type: ignore[misc,assignment]
    stale = [each for each in undeclared(adapter, tmp_path / "kinds") if each.kind == "binary"]
    assert stale
    said = declarations.report(adapter, stale, tmp_path)
    assert "bytes become text" in said
    assert "paste" not in said
