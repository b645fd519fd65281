"""Folders of runs over a cluster, as `run`, `report` and `compare` take them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.run.cluster.division import Division, StoredPart, store
from format_bench.api.compare import compare_hosts
from format_bench.api.report import stored_runs
from format_bench.api.run import run
from format_bench.errors import RequestError
from tests.reports.factory import make_run, write_run


def cluster_folder(folder: Path, *hosts: str, empty: str = "") -> Path:
    """Write a run over these hosts, of which `empty` has measured nothing."""
    parts = {}
    for host in hosts:
        found = make_run(datasets=("eq",), rounds=5)
        write_run(replace(found, samples=()) if host == empty else found, folder / host)
        parts[host] = StoredPart(identity=host, kind="cpu", groups=(), finished=host != empty)
    store(folder, Division(run_id="r", seed=1, parts=parts))
    return folder


def test_a_folder_of_a_cluster_stands_for_the_runs_of_its_hosts(tmp_path: Path) -> None:
    folder = cluster_folder(tmp_path / "run", "one", "two")
    assert [each.folder.name for each in stored_runs(folder)] == ["one", "two"]


def test_runs_over_a_cluster_are_compared_host_by_host(tmp_path: Path) -> None:
    before = cluster_folder(tmp_path / "before", "one", "two", "three")
    after = cluster_folder(tmp_path / "after", "two", "one", "four", empty="two")
    found, refused = compare_hosts(before, after)
    assert list(found) == ["one"]
    assert [reason.split(":")[0] for reason in refused] == ["two"]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    before = cluster_folder(tmp_path / "before", "one")
    with pytest.raises(RequestError, match="no host in common"):
        compare_hosts(before, cluster_folder(tmp_path / "after", "two"))
    with pytest.raises(RequestError, match=r"Name the folder of one host, such as .*one"):
        compare_hosts(before, write_run(make_run(datasets=("eq",)), tmp_path / "alone"))


def test_a_run_over_a_cluster_is_not_resumed_without_it(tmp_path: Path) -> None:
    folder = cluster_folder(tmp_path / "run", "one")
    with pytest.raises(RequestError, match="holds a run over a cluster"):
        run("tabular", out=folder, resume=True)


@pytest.mark.parametrize("given", [{"insecure": True}, {"cluster": "local:1", "machine": "lab"}])
def test_options_that_do_not_fit_together_are_refused(given: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cluster"):
        run("tabular", out=tmp_path / "run", **given)  # type: ignore[arg-type]
