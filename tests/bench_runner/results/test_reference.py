"""The reference run: packed small, read as any run, and shown where it is asked for."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results import reference
from bench_runner.results.records import RecordError, pack_run, read_run
from format_bench.api.report import report, stored_runs
from tests.reports.factory import make_run

PACKED = reference.PLACE


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with two small runs."""
    folder = tmp_path / "package"
    for suite in ("engines", "other", "tabular"):
        (folder / suite).mkdir(parents=True)
        pack_run(make_run(datasets=("eq",), tracks=("plain",)), folder / suite)
    monkeypatch.setattr(reference, "PLACE", folder)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_packed_run_is_the_run(tmp_path: Path) -> None:
    run = make_run(datasets=("eq",), tracks=("plain",))
    pack_run(run, tmp_path)
    found = read_run(tmp_path, packed=True)
    assert replace(found, folder=run.folder) == replace(run, folder=run.folder)
    # Only where it is said: a result folder of somebody else is never unpacked.
    assert read_run(tmp_path).samples == ()


def test_it_stands_for_all_its_runs(place: Path) -> None:
    found = stored_runs("reference")
    assert [run.folder.name for run in found] == ["tabular", "engines", "other"]
    assert all(run.samples for run in found)
    assert stored_runs(found[0]) == [found[0]]


def test_a_folder_of_that_name_goes_first(place: Path) -> None:
    shutil.copytree(place / "tabular", "reference")
    assert len(stored_runs("reference")) == 1


def test_its_files_go_below_the_current_folder(place: Path, tmp_path: Path) -> None:
    written = report("reference", csv=True)
    assert {str(path.parent) for path in written} == {"reference/engines", "reference/other", "reference/tabular"}
    assert all(path.exists() for path in written)
    assert not list(place.rglob("*.csv"))


def test_a_package_without_one_says_so(place: Path) -> None:
    shutil.rmtree(place)
    with pytest.raises(RecordError, match="measure one of your own"):
        stored_runs("reference")


@pytest.mark.skipif(not PACKED.exists(), reason="not measured yet")
def test_ours_is_whole_small_and_says_nothing_of_the_machine_s_names() -> None:
    runs = reference.reference_runs()
    assert sum(path.stat().st_size for path in PACKED.rglob("*") if path.is_file()) <= 3 * 10**6
    for place in PACKED.glob("*/run.json"):
        assert not re.search(r'"/(?!dev/|")', place.read_text()), f"{place.parent.name} names a place of its machine"
    for run in runs:
        assert not run.info.partial
        assert not run.info.dirty
        assert run.info.machine.name == "reference"
        assert {sample.machine for sample in run.samples} == {"reference"}
        assert all(not sample.conditions.work_dir.startswith("/") for sample in run.samples)
