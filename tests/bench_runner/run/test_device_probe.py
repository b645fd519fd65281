"""If a suite requests it, the device is probed with raw I/O's copy before and after the rounds. Otherwise the reason is
recorded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_runner.machine.device.reads import Reads
from bench_runner.machine.device.roofline import CACHED, CACHED_SEQUENTIAL, RANDOM, SEQUENTIAL, Line, NoRoofline
from bench_runner.plan.chain import Plan
from bench_runner.results import information
from bench_runner.results.information import MachineInfo, RunInfo
from bench_runner.results.records import SampleWriter
from bench_runner.run import device_probe
from bench_runner.run.chains import Bench
from bench_runner.run.device_probe import AFTER, BEFORE
from bench_runner.run.options import Options
from bench_runner.run.session import Session
from bench_runner.suites import Suite
from bench_runner.suites.rules import EveryFormat
from data_generator.cache import StoredDataset
from tests.bench_runner.conftest import chain_of
from tests.bench_runner.run.invented import session
from tests.bench_runner.run.test_session import Told

KINDS = (RANDOM, SEQUENTIAL, CACHED, CACHED_SEQUENTIAL)


def suite(**told: Any) -> Suite:
    fields = {"question": "?", "operations": ("save",), "datasets": ("test",), "on_request": ()}
    return Suite(name="test", reasons={}, variants=EveryFormat(tracks=("plain",)), **{**fields, **told})


@pytest.fixture
def shared(bench: Bench, dataset: StoredDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(Session, "save_info", lambda session: None)
    chains = (chain_of("faulty[fault=none]"), chain_of("raw-io"))
    return session(
        plan=Plan((suite(roofline=True),), {}, chains),
        options=Options(machine="lab"),
        folder=tmp_path,
        writer=SampleWriter(tmp_path),
        watcher=Told(),
        info=RunInfo(id="one", seed=1, machine=MachineInfo(virtualisation="kvm")),
        datasets={"test": dataset},
        benches={("default", "default"): bench},
    )


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of each probed copy. The simulated device returns ten reads of each kind."""
    seen: list[int] = []

    def roofline(path: Path, *, seed: int) -> list[Line]:
        seen.append(path.stat().st_size)
        return [Line(kind, Reads(4096, 1, 10, 1_000_000, 950_000, compiled=True)) for kind in KINDS]

    monkeypatch.setattr(device_probe, "roofline", roofline)
    monkeypatch.setattr(device_probe.folders, "folder_facts", lambda folder: {"filesystem": "ext4"})
    return seen


@pytest.mark.rule(16)
def test_before_and_after_on_raw_io_s_copy_which_is_gone_then(
    shared: Session, probed: list[int], dataset: StoredDataset, tmp_path: Path
) -> None:
    for when in (BEFORE, AFTER):
        device_probe.look(shared, when)
    assert [(each.dataset, each.work_dir, each.when) for each in shared.info.rooflines] == [
        ("test", "default", "before"),
        ("test", "default", "after"),
    ]
    for found in shared.info.rooflines:
        assert found.guest
        assert found.compiled
        assert found.why_none == ""
        assert dataset.size_bytes / 2 < found.copy_bytes < 2 * dataset.size_bytes
        assert [line.kind for line in found.lines] == list(KINDS)
        assert found.lines[0].per_second == 10_000
        assert found.lines[0].bytes_per_second == 40_960_000
        # The probe of the device was CPU-bound, the probe of the cache was not.
        assert [line.at_least for line in found.lines] == [True, True, False, False]
    assert probed == [each.copy_bytes for each in shared.info.rooflines]
    assert list((tmp_path / "work").iterdir()) == []


def test_a_run_that_goes_on_keeps_the_first_look_and_has_a_new_last_one(shared: Session, probed: list[int]) -> None:
    for when in (BEFORE, AFTER, BEFORE):
        device_probe.look(shared, when)
    first = list(shared.info.rooflines)
    device_probe.look(shared, AFTER)
    assert [each.when for each in shared.info.rooflines] == ["before", "after"]
    assert shared.info.rooflines[0] is first[0]
    assert shared.info.rooflines[1] is not first[1]
    assert len(probed) == 3


def test_a_quick_run_probes_once_and_suites_without_roofline_never(shared: Session, probed: list[int]) -> None:
    shared.options = Options(quick=True)
    device_probe.look(shared, BEFORE)
    device_probe.look(shared, AFTER)
    assert [each.when for each in shared.info.rooflines] == ["before"]
    shared.plan = Plan((suite(),), {}, shared.plan.chains)
    shared.info.rooflines = []
    device_probe.look(shared, BEFORE)
    assert shared.info.rooflines == []
    assert len(probed) == 1


def test_without_a_roofline_the_reason_is_kept(shared: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> str:
        shared.info.rooflines = []
        device_probe.look(shared, BEFORE)
        (found,) = shared.info.rooflines
        assert found.lines == ()
        return found.why_none

    monkeypatch.setattr(device_probe.folders, "folder_facts", lambda folder: {"filesystem": "zfs"})
    assert look() == "zfs has a separate cache (ARC), which cannot be emptied for one file"
    monkeypatch.setattr(device_probe.folders, "folder_facts", lambda folder: {"filesystem": "ext4"})
    assert "is too small to probe the device" in look()

    def refused(path: Path, *, seed: int) -> list[Line]:
        raise NoRoofline("direct reads are not supported here: Invalid argument")

    monkeypatch.setattr(device_probe, "roofline", refused)
    assert look() == "direct reads are not supported here: Invalid argument"

    def broken(path: Path, *, seed: int) -> list[Line]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(device_probe, "roofline", broken)
    assert look() == "OSError: Input/output error"
    shared.datasets = {"test": SimpleNamespace(**{**vars(shared.datasets["test"]), "path": Path("/nowhere")})}  # type: ignore[dict-item]
    assert "nowhere" in look()


def test_reports_and_probe_use_the_same_names_of_lines() -> None:
    """Reports and the probe must not import each other."""
    assert (information.RANDOM, information.SEQUENTIAL, information.CACHED, information.CACHED_SEQUENTIAL) == KINDS
