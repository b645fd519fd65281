"""No chain is lost and none is measured twice on a machine, whatever fails."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from bench_runner.errors import RunError
from bench_runner.results.records import Sample
from bench_runner.run.cluster import dispatch
from bench_runner.run.cluster.dispatch import MOST_KILLED, Dispatch, Part
from bench_runner.run.cluster.messages import Group, Piece, Progress
from bench_runner.run.interruption import Stopped, StopRequest
from bench_runner.worker.messages import encode
from tests.bench_runner.results.invented import make_sample
from tests.bench_runner.run.cluster.simulated import (
    CHAINS_OF_A_GROUP,
    TASK,
    Notes,
    SimulatedCluster,
    SimulatedHost,
    group,
    host,
    part,
)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let pauses take no time, but move the clock."""
    now = [0]
    monkeypatch.setattr(dispatch, "now_ns", lambda: now[0])
    monkeypatch.setattr(dispatch, "pause", lambda seconds: now.__setitem__(0, now[0] + int(seconds * 1e9)))
    return now


def simulated(tmp_path: Path, *labels: str, seed: int = 1, fault_share: float = 0.0) -> SimulatedCluster:
    hosts = {label: SimulatedHost(tmp_path / "there" / label) for label in labels}
    for each in hosts.values():
        each.folder.mkdir(parents=True)
    return SimulatedCluster(hosts, random.Random(seed), fault_share)


def dispatched(cluster: SimulatedCluster, parts: list[Part], stop: StopRequest | None = None) -> Notes:
    watcher = Notes()
    stop = StopRequest() if stop is None else stop
    Dispatch(cluster, TASK, parts, watcher, stop, changed=lambda: None, began_ns=0).finish()  # type: ignore[arg-type]
    return watcher


def fetched(of: Part) -> list[Sample]:
    file = of.folder / "samples.jsonl"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Sample) for line in lines]


@pytest.mark.parametrize("seed", range(8))
def test_of_200_chains_on_three_hosts_none_is_lost_and_none_is_twice(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    cluster = simulated(tmp_path, "a", "b", "c", seed=seed, fault_share=0.15)
    groups = [group(number) for number in range(20)]
    parts = [part(tmp_path, host(label), *groups[number::3]) for number, label in enumerate("abc")]
    if chance.random() < 0.5:
        cluster.never_back.add(chance.choice("abc"))
    dispatched(cluster, parts)
    for each in parts:
        there = fetched(each)
        assert max(Counter(sample.variant for sample in there).values(), default=1) == 1
        assert {sample.machine for sample in there} <= {each.host.label}
    finished = {measured: one for one in parts if one.finished for measured in one.groups}
    for measured, owner in finished.items():
        assert sum(sample.dataset == measured.dataset for sample in fetched(owner)) == CHAINS_OF_A_GROUP
    unfinished = set(groups) - finished.keys()
    assert not unfinished or all(one.finished or one.reason for one in parts)
    assert not unfinished or not any(one.finished for one in parts)


def test_a_lost_host_is_replaced_by_one_of_its_kind_only(tmp_path: Path) -> None:
    cluster = simulated(tmp_path, "a", "b", "other")
    cluster.gone, cluster.never_back = {"a"}, {"a"}
    parts = [
        part(tmp_path, host("a"), group(1)),
        part(tmp_path, host("b"), group(2)),
        part(tmp_path, host("other", cpu="other"), group(1), group(2)),
    ]
    watcher = dispatched(cluster, parts)
    assert [one.groups for one in parts[1:]] == [(group(2), group(1)), (group(1), group(2))]
    assert [one.finished for one in parts] == [False, True, True]
    assert watcher.notes == [
        "a has no worker any more; waiting for it",
        "a is given up: the host was lost, so b measures its part",
    ]


def test_a_lost_host_without_replacement_is_reported(tmp_path: Path, clock: list[int]) -> None:
    cluster = simulated(tmp_path, "a", "b")
    cluster.gone, cluster.never_back = {"a"}, {"a"}
    parts = [part(tmp_path, host("a"), group(1)), part(tmp_path, host("b", cpu="other"), group(1))]
    dispatched(cluster, parts)
    assert (parts[0].reason, parts[1].finished) == ("the host was lost, and no other of its kind is left", True)
    assert clock[0] >= dispatch.LOST_S * 1e9


def test_a_host_that_has_lost_its_folder_gets_the_clients_copy(tmp_path: Path) -> None:
    cluster = simulated(tmp_path, "a")
    (only,) = parts = [part(tmp_path, host("a"), group(1))]
    cluster.hosts["a"].task = msgspec.structs.replace(TASK, groups=(group(1),), machine="a")
    cluster.hosts["a"].running = True
    cluster.hosts["a"].measure(4)
    (only.folder / "samples.jsonl").write_bytes((cluster.hosts["a"].folder / "samples.jsonl").read_bytes())
    cluster.hosts["a"] = SimulatedHost(tmp_path / "new")
    cluster.hosts["a"].folder.mkdir()
    dispatched(cluster, parts)
    assert len(fetched(only)) == CHAINS_OF_A_GROUP
    assert cluster.hosts["a"].measured_here == CHAINS_OF_A_GROUP - 4


def test_a_part_that_is_refused_does_not_stop_the_others(tmp_path: Path) -> None:
    cluster = simulated(tmp_path, "a", "b")
    cluster.hosts["a"].refusal = "No space left on device"
    parts = [part(tmp_path, host("a"), group(1)), part(tmp_path, host("b"), group(2))]
    dispatched(cluster, parts)
    assert (parts[0].reason, parts[1].finished) == ("No space left on device", True)


def test_a_process_that_is_always_killed_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = simulated(tmp_path, "a")
    monkeypatch.setattr(cluster, "_start", lambda there, task: None)
    (only,) = parts = [part(tmp_path, host("a"), group(1))]
    dispatched(cluster, parts)
    assert only.reason == f"its process was killed {MOST_KILLED} times in a row"


def test_a_scheduler_that_comes_back_costs_nothing(tmp_path: Path) -> None:
    cluster = simulated(tmp_path, "a")
    cluster.scheduler_down = 5
    (only,) = parts = [part(tmp_path, host("a"), group(1))]
    watcher = dispatched(cluster, parts)
    assert only.finished
    assert watcher.notes == ["the scheduler does not answer; waiting for it"]


def test_a_scheduler_that_does_not_come_back_ends_the_run(tmp_path: Path) -> None:
    cluster = simulated(tmp_path, "a")
    cluster.scheduler_down = 10_000
    with pytest.raises(RunError, match="not come back within 120 s") as error:
        dispatched(cluster, [part(tmp_path, host("a"), group(1))])
    assert "resume" in error.value.next_step


def test_a_stopped_run_keeps_what_its_hosts_have_measured(tmp_path: Path) -> None:
    cluster = simulated(tmp_path, "a")
    stop = StopRequest()
    (only,) = parts = [part(tmp_path, host("a"), group(1), group(2))]
    watched: list[Group] = []

    def ask_to_stop(samples: object) -> None:
        if len(fetched(only)) > 3:
            stop.signal_name = "SIGINT"
            watched.append(group(1))

    watcher = Notes()
    watcher.measured = ask_to_stop  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        Dispatch(cluster, TASK, parts, watcher, stop, changed=lambda: None, began_ns=0).finish()  # type: ignore[arg-type]
    assert watched
    assert not cluster.hosts["a"].running
    assert len(fetched(only)) == len(cluster.hosts["a"].there()) > 3


def test_a_restarted_part_has_only_the_rest_of_the_budget(tmp_path: Path, clock: list[int]) -> None:
    cluster = simulated(tmp_path, "a")
    (only,) = parts = [part(tmp_path, host("a"), group(1))]
    clock[0] = 40 * 10**9
    task = msgspec.structs.replace(TASK, budget_s=100.0)
    Dispatch(cluster, task, parts, Notes(), StopRequest(), changed=lambda: None, began_ns=0).finish()  # type: ignore[arg-type]
    assert only.finished
    assert cluster.hosts["a"].task is not None
    assert cluster.hosts["a"].task.budget_s == 60.0


@pytest.mark.parametrize(("name", "start"), [("samples.jsonl", 5), ("../run.json", 0)])
def test_an_answer_that_does_not_fit_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, start: int
) -> None:
    cluster = simulated(tmp_path, "a")
    line = msgspec.json.encode(make_sample()) + b"\n"
    answer = Progress(pieces=(Piece(name, start, line),), info=b"", state="finished", message="")
    monkeypatch.setattr(cluster, "_progress", lambda *given: encode(answer))
    (only,) = parts = [part(tmp_path, host("a"), group(1))]
    dispatched(cluster, parts)
    assert "cannot be appended" in only.reason
    assert not any(only.folder.iterdir())
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("content", [b"not JSON\n", b"{}\n"])
def test_lines_that_are_no_samples_are_refused_and_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    cluster = simulated(tmp_path, "a")
    answer = Progress(pieces=(Piece("samples.jsonl", 0, content),), info=b"", state="finished", message="")
    monkeypatch.setattr(cluster, "_progress", lambda *given: encode(answer))
    (only,) = parts = [part(tmp_path, host("a"), group(1))]
    dispatched(cluster, parts)
    assert "a has given an invalid answer" in only.reason
    assert not any(only.folder.iterdir())
