"""docs/results.md describes samples and names only existing fields and figures. Its example runs."""

from __future__ import annotations

import re
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import asdict

from bench_runner.operations.operation import READ_ALL
from bench_runner.operations.streams.tables import SAVE_ALL
from bench_runner.operations.tables.append import REWRITE
from bench_runner.plan.candidates import SPELLED
from bench_runner.request import Request
from bench_runner.results.figures import FIGURES
from bench_runner.results.information import RunInfo, StoredInfo
from bench_runner.results.records import (
    Cell,
    Conditions,
    Failure,
    Fidelity,
    Sample,
    SampleWriter,
    changed,
    write_run_info,
)
from bench_runner.results.statistics import summarise
from bench_runner.suites import SUITES
from tests.bench_runner.results.invented import make_sample, make_save

PAGE = (Path(__file__).parents[3] / "docs/results.md").read_text()

PARTS = [kind for kind in StoredInfo.__subclasses__() if kind is not RunInfo]
"""The objects in run.json."""


def fields(record: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(record))


@pytest.mark.parametrize("record", [Sample, Fidelity, Conditions])
def test_every_field_is_described(record: type[msgspec.Struct]) -> None:
    assert [name for name in fields(record) if f"`{name}`" not in PAGE] == []


def section(heading: str) -> str:
    """Return the text below a heading of the page."""
    _, found, text = PAGE.partition(f"## {heading}\n")
    assert found
    return text.partition("\n## ")[0]


def test_fields_named_for_run_json_exist() -> None:
    records: list[type[msgspec.Struct]] = [RunInfo, Request, *PARTS]
    known = {name for record in records for name in fields(record)}
    cells = re.findall(r"^\| (`[^|]+`) \|", section("What does `run.json` hold?"), re.MULTILINE)
    named = {name for cell in cells for spelled in re.findall(r"`([\w.]+)`", cell) for name in spelled.split(".")}
    assert len(named) > 10
    assert named - known == set()


def test_figures_are_listed_by_the_command_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = section("Which figures does a sample have?")
    (code,) = re.findall(r'^python -c "(.+)"$', text, re.MULTILINE)
    exec(code, {})
    listed = {line.partition(" | ")[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == set(FIGURES)
    assert set(re.findall(r"`(\w+_(?:ns|bytes|count|permille))`", text)) <= listed


@pytest.mark.parametrize("name", FIGURES)
def test_the_register_describes_each_figure(name: str) -> None:
    figure = FIGURES[name]
    assert figure.title
    assert len(figure.meaning.split()) >= 3
    assert name == "repetitions" or name.endswith((f"_{figure.unit}", "_rows"))


def row_of(name: str) -> str:
    """Return the description of a field of samples on the page."""
    return next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))


def test_every_track_target_and_fallback_is_named() -> None:
    conditions = row_of("conditions")
    told_tracks = re.findall(r"\w+", conditions.partition("`track` (")[2].partition(")")[0])
    assert {track for suite in SUITES.values() for track in suite.tracks} | {SPELLED} <= set(told_tracks)
    targets = {suite.target if suite.kind.has_columns else next(iter(suite.kind.targets)) for suite in SUITES.values()}
    assert targets <= set(re.findall(r"\w+", conditions.partition("`target` (")[2].partition(")")[0]))
    for fallback in (READ_ALL, REWRITE, SAVE_ALL):
        assert f"`{fallback}`" in row_of("fallback")


def loaded(folder: Path, *samples: Sample) -> dict[str, Any]:
    """Run the page's example on a run of these samples, and return the names that it defines."""
    write_run_info(folder, RunInfo(id="x"))
    SampleWriter(folder).append(*samples)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace("results/<folder>", str(folder)), names)
    return names


def test_the_example_loads_a_run_and_counts_as_reports_do(tmp_path: Path) -> None:
    counted = loaded(
        tmp_path,
        make_sample(round=0, position=0),
        make_save(position=1),
        make_sample(position=2),
        make_sample(round=2, position=3, unsettled=True),
        make_sample(round=3, position=4, figures={}, failure=Failure(kind="crash", reason="x")),
        make_sample(round=4, position=5),
        make_sample(round=5, position=6, in_service=True),
    )["counted"]
    assert sorted(counted[counted["operation"] == "read"]["round"]) == [1, 4]


def test_the_example_mixes_no_two_cells(tmp_path: Path) -> None:
    usual = Conditions()
    others: list[dict[str, Any]] = [
        *({"conditions": changed(usual, threads="1")}, {"conditions": changed(usual, network="loopback")}),
        *({"rows": 50_000}, {"suite": "engines"}, {"machine": "lab-2"}, {"dataset": "core"}),
    ]
    samples = [
        made(**told, figures={"wall_ns": 10_000_000 * (place + 1) + number}, round=number, position=number)
        for place, told in enumerate([{}, *others])
        for number in (1, 2, 3)
        for made in (make_save, make_sample)
        # In the first chain, one save has no counted read, and another save was measured twice.
        if (made, place, number) != (make_sample, 0, 2)
    ]
    samples.append(make_sample(round=2, position=2, unsettled=True, saw_all=False))
    samples.append(make_save(round=3, position=40, figures={"wall_ns": 99}))
    samples = [changed(each, in_service=each.operation == "read" and each.suite == "engines") for each in samples]
    medians_s = loaded(tmp_path, *samples)["medians_s"]

    def key(cell: Cell) -> tuple[object, ...]:
        told = {field.name: getattr(cell, field.name) for field in fields_of(cell)}
        told |= {f"conditions.{name}": value for name, value in asdict(cell.conditions).items()}
        return tuple(told[name] for name in medians_s.index.names)

    known = {
        key(cell): each.figures["wall_ns"].median / 1e9 for cell, each in summarise(samples).items() if each.figures
    }
    assert len(known) == 2 * (1 + len(others)) - 1
    assert medians_s.to_dict() == pytest.approx(known)
