"""A new kind of data needs one class and its registrations. It runs, resumes and is reported; `recommend` is not
supported."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_runner import data_kinds, registries
from bench_runner.errors import PlanError
from bench_runner.operations import targets
from bench_runner.results.records import read_run
from bench_runner.suites import SUITES
from bench_runner.worker import verification
from data_generator.catalogue import CATALOGUE
from format_bench import recommend, report, run
from format_bench.cli import main
from tests.bench_runner.conftest import PLUGINS, plugins_in

ROOT = Path(__file__).parents[2]
ROOMS = tuple(sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"))
MOST_COMPARISONS = 10
"""Largest number of comparisons with one kind of data, outside bench_runner/data_kinds.py. Such a comparison is easily
missed when a kind is added. A property of the kind takes its place."""
REGISTRATIONS = (data_kinds.KINDS, targets.MAKERS, verification.COMPARISONS, registries.REGISTRIES, CATALOGUE, SUITES)


@pytest.fixture
def graphs() -> Iterator[None]:
    """Register graphs as a kind of data, in this process and in workers."""
    with plugins_in(PLUGINS / "fourth_kind"), pytest.MonkeyPatch.context() as patch:
        for registered in REGISTRATIONS:
            for name, value in registered.items():
                patch.setitem(registered, name, value)  # type: ignore[arg-type]
        module = importlib.import_module("graph_data")
        patch.setitem(SUITES, "graphs", module.SUITE)  # type: ignore[arg-type]
        yield
        for registered in REGISTRATIONS:
            registered.pop("graphs", None)  # type: ignore[attr-defined]
        CATALOGUE.pop("ring")  # type: ignore[attr-defined]
        sys.modules.pop("graph_data")


def comparisons(text: str) -> Iterator[int]:
    """Yield the lines of a module that compare something with one kind of data, or with the name of a kind or of its
    only target."""
    tree = ast.parse(text)
    kinds = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == data_kinds.__name__
        for name in node.names
        if name.name.isupper() and name.name != "KINDS"
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
        if any(
            (isinstance(part, ast.Name) and part.id in kinds)
            or (isinstance(part, ast.Attribute) and ast.unparse(part).startswith("data_kinds."))
            or (isinstance(part, ast.Constant) and part.value in data_kinds.KINDS)
            for part in parts
        ):
            yield node.lineno


def test_comparisons_with_a_kind_are_found() -> None:
    text = "from bench_runner.data_kinds import KINDS, TABLES as T\nfrom elsewhere import IMAGES\n"
    other = "x is IMAGES\nx in KINDS\nx = T\nx.has_columns == 1\n"
    found = "x is not T\nx.kinds == (T,)\nx is data_kinds.TABLES\ntarget == 'images'\n"
    assert list(comparisons(text + other)) == []
    assert list(comparisons(text + found)) == [3, 4, 5, 6]


def test_few_places_ask_for_one_kind() -> None:
    assert {"bench_runner", "format_bench", "reports"} <= set(ROOMS)
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if path != ROOT / "bench_runner/data_kinds.py" and "tests" not in path.parts
        for line in comparisons(path.read_text())
    ]
    assert len(found) <= MOST_COMPARISONS, found


def test_a_fourth_kind_of_data(
    graphs: None, runs_at_rest: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    run("graphs", rounds=1, out=folder)
    measured = run("graphs", rounds=2, out=folder, resume=True)
    assert measured.failed == 0
    samples = [sample for sample in read_run(folder).samples if sample.round > 0]
    assert [(sample.operation, sample.round) for sample in samples] == [
        *(("save", 1), ("read", 1), ("save", 2), ("read", 2))
    ]
    assert {sample.fidelity for sample in samples if sample.operation == "read"} == {"exact"}
    assert {sample.conditions.target for sample in samples} == {"edges"}

    page, *_ = report(folder, pdf=True, html=tmp_path / "site")
    assert "5,000 edges" in page.read_text()
    assert (folder / "report.pdf").stat().st_size > 10_000
    with pytest.raises(SystemExit) as ended:
        main(["report", str(folder)])
    assert not ended.value.code
    assert "graph-npz" in capsys.readouterr().out

    with pytest.raises(PlanError, match="does not support graphs: formats of graphs have not been compared yet"):
        recommend(datasets="ring")
