"""The division of a run between hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench_runner.errors import RunError
from bench_runner.run.cluster.division import Division, StoredPart, divided, host_folders, label_hosts, store, stored
from bench_runner.run.cluster.hosts import Host
from bench_runner.run.cluster.messages import Group
from tests.bench_runner.run.cluster.simulated import group, host

COSTS = {group(1): 5.0, group(2): 4.0, group(3): 3.0, group(4): 1.0}


def stored_part(label: str, *groups: Group, finished: bool, cpu: str = "cpu") -> StoredPart:
    facts = host(label, cpu).facts
    return StoredPart(identity=facts.identity, kind=facts.kind, groups=groups, finished=finished)


def test_hosts_of_one_kind_share_the_groups_by_their_cost() -> None:
    assert divided(COSTS, [host("a"), host("b")], {}) == [(group(1), group(4)), (group(2), group(3))]


def test_each_kind_of_host_measures_everything() -> None:
    first, second = divided(COSTS, [host("a"), host("b", cpu="other")], {})
    assert set(first) == set(second) == set(COSTS)


def test_more_hosts_than_groups_leave_some_without_work() -> None:
    assert divided({group(1): 1.0}, [host("a"), host("b")], {}) == [(group(1),), ()]


def test_a_resumed_run_leaves_its_groups_where_they_are() -> None:
    earlier = {
        "a": stored_part("a", group(4), finished=True),
        "b": stored_part("b", group(1), group(2), group(3), finished=False),
    }
    found = divided(COSTS, [host("a"), host("b")], earlier)
    assert found == [(group(4),), (group(1), group(2), group(3))]


def test_groups_of_a_host_that_is_gone_are_measured_by_its_kind_unless_it_has_finished() -> None:
    earlier = {
        "a": stored_part("a", group(1), finished=True),
        "b": stored_part("b", group(2), group(3), finished=False),
        "c": stored_part("c", group(4), finished=False),
    }
    assert divided(COSTS, [host("c")], earlier) == [(group(4), group(2), group(3))]


def test_groups_that_another_host_has_taken_over_and_finished_are_not_measured_again() -> None:
    earlier = {
        "a": stored_part("a", group(1), group(2), finished=True),
        "b": stored_part("b", group(2), group(3), finished=False),
    }
    assert divided(COSTS, [host("a"), host("b")], earlier)[1] == (group(3), group(4))


def test_groups_that_two_unfinished_hosts_have_stay_with_one_of_them() -> None:
    earlier = {
        "a": stored_part("a", group(1), group(2), finished=False),
        "b": stored_part("b", group(2), group(3), finished=False),
    }
    assert divided(COSTS, [host("a"), host("b")], earlier) == [(group(1), group(2)), (group(3), group(4))]


def labels_of(*hosts: Host, earlier: Mapping[str, StoredPart]) -> list[str]:
    label_hosts(hosts, earlier)
    return [each.label for each in hosts]


def test_a_host_keeps_its_label_in_a_resumed_run_and_no_other_gets_it() -> None:
    earlier = {"lab": stored_part("renamed", finished=False), "new": stored_part("other", finished=False)}
    assert labels_of(host("lab"), host("renamed"), host("new"), earlier=earlier) == ["lab-2", "lab", "new"]


def test_hosts_with_one_name_get_numbers() -> None:
    names = ("a-2", "a", "a")
    hosts = [host(f"{name} {place}") for place, name in enumerate(names)]
    for each, name in zip(hosts, names, strict=True):
        each.label = name
    assert labels_of(*hosts, earlier={}) == ["a-2", "a", "a-3"]


def test_the_stored_division_is_read_back(tmp_path: Path) -> None:
    division = Division(run_id="r", seed=3, parts={"a": stored_part("a", group(1), finished=True)})
    store(tmp_path, division)
    assert stored(tmp_path) == division
    assert host_folders(tmp_path) == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text("{}")
    assert host_folders(tmp_path) == [tmp_path / "a"]


@pytest.mark.parametrize("content", [None, b"{", b"[]", b'{"run_id": 3}'])
def test_a_folder_without_a_division_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "cluster.json").write_bytes(content)
    with pytest.raises(RunError, match="holds no run over a cluster"):
        stored(tmp_path)
