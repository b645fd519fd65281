"""The reference run: packed to a small size, read like any run, and shown on request."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results import records, reference
from bench_runner.results.records import RecordError, pack_run, read_run
from format_bench.api.report import report, stored_runs
from tests.reports.factory import make_run

PACKED = reference.PLACE


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder that contains two small runs."""
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
    found = read_run(tmp_path)
    assert replace(found, folder=run.folder) == replace(run, folder=run.folder)
    (tmp_path / "samples.jsonl").touch()
    with pytest.raises(RecordError, match="Remove one of them"):
        read_run(tmp_path)


def test_packed_lines_that_are_broken_or_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack_run(make_run(datasets=("eq",), tracks=("plain",)), tmp_path)
    with monkeypatch.context() as less:
        less.setattr(records, "MOST_UNPACKED_BYTES", 1_000)
        with pytest.raises(RecordError, match="unpacks to more than 1,000 bytes"):
            read_run(tmp_path)
    packed = tmp_path / "samples.jsonl.xz"
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(RecordError, match="cannot be unpacked"):
        read_run(tmp_path)
    packed.write_bytes(b"no xz")
    with pytest.raises(RecordError, match="cannot be unpacked"):
        read_run(tmp_path)


def test_it_includes_all_its_runs(place: Path) -> None:
    found = stored_runs("reference")
    assert [run.folder.name for run in found] == ["tabular", "engines", "other"]
    assert all(run.samples for run in found)
    assert stored_runs(found[0]) == [found[0]]


def test_the_name_means_the_package_even_if_a_folder_has_it(place: Path) -> None:
    shutil.copytree(place / "tabular", "reference")
    assert [run.folder.name for run in stored_runs("reference")] == ["tabular", "engines", "other"]
    assert [run.folder.name for run in stored_runs("./reference")] == ["reference"]


@pytest.mark.parametrize("named", ["reference", "package/engines"])
def test_its_files_go_among_the_results_here(place: Path, tmp_path: Path, named: str) -> None:
    written = report(named, csv=True)
    folders = {str(path.parent) for path in written}
    assert "results/reference/engines" in folders
    assert all(folder.startswith("results/reference/") for folder in folders)
    assert all(path.exists() for path in written)
    assert not list(place.rglob("*.csv"))
    assert not (tmp_path / "reference").exists()
    with pytest.raises(RecordError, match=r"no run\.json"):
        stored_runs("results/reference")


def test_a_package_without_a_reference_run_is_refused(place: Path) -> None:
    shutil.rmtree(place)
    with pytest.raises(RecordError, match="Measure your own"):
        stored_runs("reference")


@pytest.mark.skipif(not PACKED.exists(), reason="not measured yet")
def test_ours_is_complete_and_small_and_does_not_name_its_machine() -> None:
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
