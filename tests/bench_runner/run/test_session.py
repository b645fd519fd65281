"""The shared state of a run. The watcher receives the plan, in the terms that records use, and each execution."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_runner.conditions import Conditions
from bench_runner.errors import Failure
from bench_runner.plan.chain import Chain, Excluded, Plan
from bench_runner.results.information import MachineInfo, RunInfo
from bench_runner.results.records import Cell, Run, Sample, SampleWriter, read_run, write_run_info
from bench_runner.run.interruption import Stopped
from bench_runner.run.options import Options
from bench_runner.run.resume import Earlier
from bench_runner.run.session import Session
from tests.bench_runner.run import invented


class Told:
    """A watcher that stores what it receives."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.cells: Mapping[str, Sequence[Cell]] = {}
        self.samples: list[Sample] = []

    def stage(self, text: str) -> None:
        self.events.append(f"stage {text}")

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        self.events.append(f"planned {info.id}")
        self.cells = cells

    def step(self, text: str, seconds_left: float | None) -> None:
        self.events.append(f"step {text}")

    def measured(self, samples: Sequence[Sample]) -> None:
        self.events.append(f"measured {len(samples)}")
        self.samples += samples


def chain(variant: str, *operations: str) -> Chain:
    conditions = Conditions(cache="cold", work_dir=f"/data/{os.uname().nodename}")
    return invented.chain(variant, conditions=conditions, operations=operations)


def session(folder: Path, watcher: Told, earlier: Earlier | None = None) -> Session:
    csv, excel = chain("csv[engine=pandas]", "save", "read"), chain("excel", "save")
    refused = Excluded(chain("csv[engine=pandas]", "project[columns=4]"), Failure(kind="refused", reason="no columns"))
    return invented.session(
        plan=Plan((), {}, (csv, excel), (refused,)),
        options=Options(machine="lab"),
        folder=folder,
        writer=SampleWriter(folder),
        watcher=watcher,
        info=RunInfo(id="one", machine=MachineInfo(virtualisation="kvm")),
        datasets={"eq": SimpleNamespace(rows=1000, digest="9f2c")},
        earlier=earlier or Earlier(),
    )


def test_the_watcher_receives_the_plan_in_the_names_of_samples(tmp_path: Path) -> None:
    watcher = Told()
    shared = session(tmp_path, watcher)
    shared.show_plan()
    assert watcher.events == ["planned one"]
    assert {label: [cell.operation for cell in cells] for label, cells in watcher.cells.items()} == {
        "tabular/eq/csv[engine=pandas]": ["save", "read", "project[columns=4]"],
        "tabular/eq/excel": ["save"],
    }
    for excluded in shared.plan.excluded:
        shared.keep_reason(excluded.chain, excluded.failure)
    assert watcher.events[1:] == ["measured 1"]
    cell = watcher.samples[0].cell
    assert (cell.conditions.cache, cell.conditions.work_dir, cell.machine) == ("cold (guest)", "/data/lab", "lab")
    assert cell in watcher.cells["tabular/eq/csv[engine=pandas]"]


def test_the_watcher_receives_samples_as_stored(tmp_path: Path) -> None:
    watcher = Told()
    shared = session(tmp_path, watcher)
    shared.keep_reason(chain("excel", "save", "read"), Failure(kind="memory", reason="too much"))
    write_run_info(tmp_path, shared.info)
    assert tuple(watcher.samples) == read_run(tmp_path).samples
    assert [sample.operation for sample in watcher.samples] == ["save", "read"]


def test_a_run_that_is_to_stop_takes_no_other_step(tmp_path: Path) -> None:
    watcher = Told()
    shared = session(tmp_path, watcher)
    shared.step("first", None)
    shared.stop.signal_name = "SIGTERM"
    with pytest.raises(Stopped, match="SIGTERM"):
        shared.step("second", None)
    assert watcher.events == ["step first"]


def test_samples_that_cannot_be_stored_are_not_shown(tmp_path: Path) -> None:
    watcher = Told()
    shared = session(tmp_path, watcher)
    full: Any = SimpleNamespace(append=lambda *samples: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    shared.writer = full
    with pytest.raises(OSError, match="No space"):
        shared.keep_reason(chain("excel", "save"), Failure(kind="memory", reason="too much"))
    assert watcher.events == []


def test_a_resumed_run_shows_earlier_samples(tmp_path: Path) -> None:
    first = session(tmp_path, Told())
    first.keep_reason(chain("excel", "save"), Failure(kind="memory", reason="too much"))
    write_run_info(tmp_path, first.info)
    stored: Run = read_run(tmp_path)
    watcher = Told()
    session(tmp_path, watcher, Earlier(stored)).show_plan()
    assert watcher.events == ["planned one", "measured 1"]
    assert tuple(watcher.samples) == stored.samples
