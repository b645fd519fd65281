"""Findings and steps from a catalog's view and nodes' reports: pure functions, so every case is listed."""

import random

import pytest

from libraries.near_storage.storing.integrity import CatalogView, Copy, Discard, Record, Wanted, check
from libraries.near_storage.storing.partitions import Held, NodeReport

OLD_S, YOUNG_S = 1_000.0, 10.0
AGE_S = 100.0


def view(wanted=None, nodes="abc", uploading=(), removals=(), replicas=2) -> CatalogView:
    """Make a view; `wanted`: {digest: names of nodes}."""
    partitions = {digest: Wanted(5, frozenset(names), ("sales",)) for digest, names in (wanted or {}).items()}
    return CatalogView(replicas, tuple(nodes), partitions, frozenset(uploading), frozenset(removals))


def reports(age_s=OLD_S, damaged=None, **held) -> dict[str, NodeReport]:
    """Make reports from each node's digests, which are letters here."""
    return {
        name: NodeReport({digest: Held(5, age_s) for digest in digests}, frozenset((damaged or {}).get(name, "")))
        for name, digests in held.items()
    }


def found(checked) -> set[tuple]:
    return {(finding.kind, finding.node, finding.digest) for finding in checked.findings}


def test_a_whole_store():
    checked = check(view({"x": "ab", "y": "bc"}), reports(a="x", b="xy", c="y"), AGE_S)
    assert (checked.findings, checked.steps) == ((), ())


def test_a_lost_replica_is_copied_back():
    checked = check(view({"x": "ab"}), reports(a="x", b="", c=""), AGE_S)
    assert found(checked) == {("lost", "b", "x"), ("few", None, "x")}
    assert checked.steps == (Copy("x", "a", "b"),)


def test_a_damaged_replica_is_written_anew_from_a_good_one():
    checked = check(view({"x": "ab"}), reports(a="x", b="x", c="", damaged={"a": "x"}), AGE_S)
    assert found(checked) == {("damaged", "a", "x"), ("few", None, "x")}
    assert checked.steps == (Copy("x", "b", "a"),)


def test_a_replica_of_another_size_is_damaged():
    told = reports(a="x", b="x", c="")
    told["a"].held["x"] = Held(4, OLD_S)
    checked = check(view({"x": "ab"}), told, AGE_S)
    assert ("damaged", "a", "x") in found(checked)
    assert checked.steps == (Copy("x", "b", "a"),)


def test_a_silent_nodes_replicas_are_copied_to_another_node():
    checked = check(view({"x": "ab"}), reports(b="x", c=""), AGE_S)
    assert found(checked) == {("silent", "a", None), ("few", None, "x")}
    assert checked.steps == (Copy("x", "b", "c"),)


def test_without_another_node_it_is_told_and_nothing_can_be_done():
    checked = check(view({"x": "ab"}, nodes="ab"), reports(b="x"), AGE_S)
    assert found(checked) == {("silent", "a", None), ("few", None, "x")}
    assert checked.steps == ()


def test_what_no_step_mends_is_told_from_what_steps_mend():
    mended = check(view({"x": "ab"}), reports(a="x", b="", c=""), AGE_S)
    assert {finding.mendable for finding in mended.findings} == {True}
    few = check(view({"x": "ab"}, nodes="ab"), reports(b="x"), AGE_S)
    assert {(finding.kind, finding.tables) for finding in few.findings if not finding.mendable} == {
        ("silent", ()),
        ("few", ("sales",)),
    }
    gone = check(view({"x": "ab"}), reports(a="", b="", c=""), AGE_S)
    assert {finding.kind for finding in gone.findings if not finding.mendable} == {"gone"}


def test_a_node_that_the_catalog_does_not_know_counts_for_nothing():
    checked = check(view({"x": "ab"}, nodes="ab"), reports(a="x", b="", z="xq"), AGE_S)
    assert checked.steps == (Copy("x", "a", "b"),)


@pytest.mark.parametrize("damaged", [{}, {"a": "x"}])
def test_a_partition_without_a_good_replica_is_gone(damaged):
    told = reports(a="x" if damaged else "", b="", c="", damaged=damaged)
    checked = check(view({"x": "ab"}), told, AGE_S)
    (gone,) = [finding for finding in checked.findings if finding.kind == "gone"]
    assert "sales" in gone.text
    assert "put the table again" in gone.text
    assert checked.steps == ()


def test_a_partition_that_only_silent_nodes_can_have_is_told_as_that():
    checked = check(view({"x": "ab"}), reports(c=""), AGE_S)
    (gone,) = [finding for finding in checked.findings if finding.kind == "gone"]
    assert "start a, b" in gone.text
    assert checked.steps == ()


def test_a_replica_that_the_catalog_does_not_know_is_recorded_before_anything_is_copied():
    checked = check(view({"x": "ab"}), reports(a="x", b="", c="x"), AGE_S)
    assert found(checked) == {("lost", "b", "x"), ("unrecorded", "c", "x")}
    assert checked.steps == (Record("x", "c"), Copy("x", "a", "b"))


def test_a_node_where_it_is_being_put_or_removed_is_neither_source_nor_target():
    for place in ({"uploading": [("x", "c")]}, {"removals": [("x", "c")]}):
        for held in ("", "x"):
            checked = check(view({"x": "ab"}, **place), reports(a="x", c=held), AGE_S)
            assert found(checked) == {("silent", "b", None), ("few", None, "x")}
            assert checked.steps == ()


def test_orphans_are_removed_when_they_are_old():
    checked = check(view({"x": "ab"}), reports(a="xq", b="x", c="q"), AGE_S)
    assert found(checked) == {("orphan", "a", "q"), ("orphan", "c", "q")}
    assert checked.steps == (Discard("q", "a"), Discard("q", "c"))


def test_young_orphans_are_told_and_kept():
    checked = check(view(), reports(age_s=YOUNG_S, a="q", b="", c=""), AGE_S)
    assert found(checked) == {("young", "a", "q")}
    assert checked.steps == ()


def test_what_an_upload_puts_or_a_removal_takes_is_no_orphan():
    checked = check(view(uploading=[("q", "a")], removals=[("r", "a")]), reports(a="qr", b="q", c="r"), AGE_S)
    assert found(checked) == {("orphan", "b", "q"), ("orphan", "c", "r")}


def test_more_replicas_than_asked_for_are_left_alone():
    checked = check(view({"x": "abc"}), reports(a="x", b="x", c="x"), AGE_S)
    assert (checked.findings, checked.steps) == ((), ())


def test_copies_go_to_the_emptiest_nodes_and_come_from_all():
    wanted = dict.fromkeys("stuvwxyz", "ab")
    checked = check(view(wanted, nodes="abcd", replicas=3), reports(a="stuvwxyz", b="stuvwxyz", c="", d=""), AGE_S)
    copies = [step for step in checked.steps if isinstance(step, Copy)]
    assert len(copies) == len(checked.steps) == 8
    for name in "ab":
        assert sum(copy.source == name for copy in copies) == 4
    for name in "cd":
        assert sum(copy.target == name for copy in copies) == 4


def test_copies_come_before_removals():
    checked = check(view({"x": "ab"}), reports(a="xq", b="", c="q"), AGE_S)
    kinds = [type(step) for step in checked.steps]
    assert kinds == [Copy, Discard, Discard]


def test_a_store_is_mended_by_the_steps_of_its_check():
    """Random stores, seed 3: after the steps, a check finds only what cannot be repaired."""
    chance = random.Random(3)
    for _ in range(300):
        nodes = "abcd"[: chance.randint(2, 4)]
        wanted = {digest: set(chance.sample(nodes, 2)) for digest in "uvwxyz"}
        held = {name: {d for d in "uvwxyzpq" if chance.random() < 0.5} for name in nodes if chance.random() < 0.9}
        damaged = {name: {d for d in digests if chance.random() < 0.2} for name, digests in held.items()}

        for step in check(view(wanted, nodes=nodes), reports(damaged=damaged, **held), AGE_S).steps:
            if isinstance(step, Discard):
                assert step.digest not in wanted
                held[step.node].discard(step.digest)
                continue
            if isinstance(step, Copy):
                assert step.digest in held[step.source] - damaged[step.source]
                held[step.target].add(step.digest)
                damaged[step.target].discard(step.digest)
            wanted[step.digest].add(step.target if isinstance(step, Copy) else step.node)
        left = check(view(wanted, nodes=nodes), reports(damaged=damaged, **held), AGE_S)
        assert left.steps == ()
        gone = {finding.digest for finding in left.findings if finding.kind == "gone"}
        for kind, _, digest in found(left):
            if kind in ("lost", "damaged"):
                assert digest in gone
            elif kind == "few":
                assert len(held) < 2
            else:
                assert kind in ("silent", "gone")
