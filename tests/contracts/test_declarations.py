"""The lines that the contract suggests for undeclared changes can be pasted, and the contract then passes."""

import ast
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from adapters.contract import Native, TabularFormat
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.results.records import Fidelity
from bench_runner.worker import fidelity, verify
from formats.csv import CsvPyarrow
from formats.shared import text_losses as text
from tests.contracts import declarations

ARROW, PANDAS = Target("arrow"), Target("pandas")


class Undeclared(CsvPyarrow):
    """CSV by pyarrow, without its declared losses."""

    losses: ClassVar = ()


class RowsReversed(Undeclared):
    """A format that reverses the rows. No relation describes this fault."""

    def __init__(self) -> None:
        super().__init__()
        self.load_library()

    def read(self, location: Path) -> pa.Table:
        return super().read(location)[::-1]


class WritesTimes(TabularFormat):
    """A format that keeps tables in memory and changes some types.

    It returns dates and times as text, timestamps with a zone in microseconds and UTC, and categories as plain values.
    """

    format = "writes-times"
    engine = "dict"
    title = "Writes times"
    distributions = ()
    native = Native.ARROW
    suffix = ".times"
    capabilities = frozenset()
    losses = ()

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Path, pa.Table] = {}

    def load_library(self) -> None:
        """Nothing."""

    def save(self, table: pa.Table, location: Path) -> None:
        self.kept[location] = table

    def read(self, location: Path) -> pa.Table:
        table = self.kept[location]
        return pa.table({name: self.changed(table[name]) for name in table.column_names})

    def changed(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        if pa.types.is_timestamp(column.type) and column.type.tz:
            return pc.floor_temporal(column, 1, "microsecond").cast(pa.timestamp("us", "UTC"))
        if pa.types.is_date(column.type) or pa.types.is_time(column.type):
            return column.cast(pa.string())
        return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


@pytest.fixture(scope="module")
def of_csv(tmp_path_factory: pytest.TempPathFactory) -> list[Fidelity]:
    """Return the undeclared changes of `Undeclared`."""
    adapter = Undeclared()
    adapter.load_library()
    return undeclared(adapter, tmp_path_factory.mktemp("csv"))


def undeclared(adapter: TabularFormat, folder: Path, *also: Target) -> list[Fidelity]:
    found = []
    for target in (ARROW, *also):
        targets.apply_strings(target)
        found += declarations.records("format", adapter, target, folder / target.kind)
    return [record for record in found if record.outcome == fidelity.ERROR and not record.cause]


def paste(said: str, adapter: TabularFormat) -> str:
    """Execute the suggested lines, set the adapter's losses from them, and return the lines."""
    start = said.index("from ", said.index("Paste those"))
    lines = said[start : said.index("\n)", start) + 2]
    names: dict[str, Any] = {}
    exec(lines, names)
    adapter.losses = names["losses"]  # type: ignore[misc]
    return lines


@pytest.fixture
def adapter() -> Undeclared:
    adapter = Undeclared()
    adapter.load_library()
    return adapter


def test_pasted_lines_declare_every_change_and_are_found_with_few_comparisons(
    adapter: Undeclared, of_csv: list[Fidelity], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few comparisons matter, because a developer waits for the message of the failing test."""
    compared = []
    compare = verify.compare
    with monkeypatch.context() as counting:
        counting.setattr(verify, "compare", lambda *given: compared.append(given) or compare(*given))
        said = declarations.report(adapter, of_csv, tmp_path)
    assert len(compared) < 40 * len(of_csv)
    assert "    # int16, int32, int8, uint16, uint32, uint8\n    text.INTEGERS_AS_INT64,\n" in said
    assert "No ready-made declaration" not in said
    paste(said, adapter)
    assert undeclared(adapter, tmp_path / "after") == []


def test_pasted_lines_run_unchanged_and_use_helpers_and_the_types_that_occurred(tmp_path: Path) -> None:
    adapter = WritesTimes()
    lines = paste(declarations.report(adapter, undeclared(adapter, tmp_path, PANDAS), tmp_path), adapter)
    assert undeclared(adapter, tmp_path / "after", PANDAS) == []
    assert max(map(len, lines.splitlines())) <= 120
    tree = ast.parse(lines)
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"losses", "frozenset"}
    assert "    shared.written_as_text(" in lines
    assert 'expect=written.of_types("date32", "time64")' in lines
    # This candidate would fit the columns with nulls, but leave dates without nulls undeclared.
    assert "anything_with_nulls" not in lines
    assert "    text.timestamps(" in lines
    assert "Loss(" not in lines
    assert lines.count("categorical,") == lines.count("shared.DICTIONARY_AS_VALUES") == 1


def test_changes_that_no_declaration_explains_are_reported(adapter: Undeclared, tmp_path: Path) -> None:
    unexplained = Fidelity(
        variant="csv", target="arrow", strings="str", kind="int64-exact", nulls=False, outcome=fidelity.ERROR, how="odd"
    )
    said = declarations.report(RowsReversed(), [unexplained], tmp_path)
    assert "No ready-made declaration fits int64-exact" in said
    assert "losses = (" not in said


def test_a_stale_declaration_gets_no_suggestion(adapter: Undeclared, tmp_path: Path) -> None:
    adapter.losses = (text.BLOBS_AS_TEXT,)  # type: ignore[misc,assignment]
    stale = [each for each in undeclared(adapter, tmp_path / "kinds") if each.kind == "binary"]
    assert stale
    said = declarations.report(adapter, stale, tmp_path)
    assert "bytes become text" in said
    assert "Paste" not in said
