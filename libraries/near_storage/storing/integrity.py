"""What is wrong with a store, and the steps that mend it: from what the catalog wants and what the nodes report.

Pure: nothing here reads a disk or asks a node. Who runs the steps copies first (the node's `put` under the partition's
digest, then `upkeep.record`), and removes only what `upkeep.permit` lets him remove.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from libraries.near_storage.storing.partitions import NodeReport
from libraries.near_storage.words import number_of

ProblemKind: TypeAlias = Literal["silent", "lost", "damaged", "unrecorded", "few", "gone", "orphan", "young"]


@dataclass(frozen=True)
class Wanted:
    """A partition of some readable version: its size, where it should lie, and which tables need it."""

    stored_bytes: int
    nodes: frozenset[str]
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Removal:
    """What was decided to be removed from a node: `store.remove(digest, number)` there, then `upkeep.removed`."""

    number: int
    digest: str
    node: str


@dataclass(frozen=True)
class CatalogView:
    """What the catalog wants, as of one moment. `uploading` and `removals` are (digest, node) that are in progress."""

    replicas: int
    nodes: tuple[str, ...]
    wanted: Mapping[str, Wanted]
    uploading: frozenset[tuple[str, str]]
    removals: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be. `gone` loses data, `young` is only told.

    silent: the node did not answer. lost, damaged: a replica is missing or wrong. unrecorded: a replica that the
    catalog does not know. few: fewer good replicas than there should be. gone: no good replica anywhere. orphan, young:
    bytes that nothing needs, for longer or shorter than the grace. `tables` are those that need the partition;
    `mendable` says whether the steps, if all are done, leave nothing of it that harms.
    """

    kind: ProblemKind
    node: str | None
    digest: str | None
    text: str
    tables: tuple[str, ...] = ()
    mendable: bool = True


@dataclass(frozen=True)
class Copy:
    """Have `target` put the partition that `source` holds; then `upkeep.record(digest, target)`."""

    digest: str
    source: str
    target: str


@dataclass(frozen=True)
class Record:
    """The node holds a partition that the catalog does not know to be there: `upkeep.record(digest, node)`."""

    digest: str
    node: str


@dataclass(frozen=True)
class Discard:
    """The node holds bytes that nothing needs: give it to `upkeep.permit`, which may say no."""

    digest: str
    node: str


Step: TypeAlias = Copy | Record | Discard


@dataclass(frozen=True)
class Check:
    """All findings, and the steps in the order in which they are to be done."""

    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]


def check(view: CatalogView, reports: Mapping[str, NodeReport], orphan_age_s: float) -> Check:
    """Compare the catalog with the nodes' reports; a node of the catalog without a report counts as silent.

    Orphans younger than `orphan_age_s` seconds are told and kept: the catalog may be an old copy put back. Take the
    view after the reports, else an upload that ended between the two looks like orphans.
    """
    checking = _Checking(view, {name: reports[name] for name in view.nodes if name in reports})
    for name in view.nodes:
        if name not in reports:
            text = f"Node {name} did not answer: start it, or forget it if it is gone for good."
            checking.find("silent", name, None, text, mendable=False)
    for digest, wanted in view.wanted.items():
        checking.partition(digest, wanted)
    for name, report in checking.reports.items():
        for digest, held in report.held.items():
            checking.held(name, digest, held.age_s >= orphan_age_s, held.stored_bytes)
    return Check(tuple(checking.findings), (*checking.kept, *checking.copies, *checking.discards))


class _Checking:
    def __init__(self, view: CatalogView, reports: Mapping[str, NodeReport]) -> None:
        self.view, self.reports = view, reports
        self.findings: list[Finding] = []
        self.kept: list[Record] = []
        self.copies: list[Copy] = []
        self.discards: list[Discard] = []
        self._reading = dict.fromkeys(reports, 0)
        self._holding = {
            name: sum(held.stored_bytes for held in report.held.values()) for name, report in reports.items()
        }

    def find(
        self,
        kind: ProblemKind,
        node: str | None,
        digest: str | None,
        text: str,
        tables: tuple[str, ...] = (),
        mendable: bool = True,
    ) -> None:
        self.findings.append(Finding(kind, node, digest, text, tables, mendable))

    def partition(self, digest: str, wanted: Wanted) -> None:
        """One wanted partition on all nodes."""
        good = {name for name in self.reports if self._is_good(digest, wanted, name)}
        broken = [name for name in sorted(wanted.nodes - good) if name in self.reports]
        for name in broken:
            kind: ProblemKind = "damaged" if digest in self.reports[name].held else "lost"
            self.find(kind, name, digest, f"Partition {digest} is {kind} on node {name}.", wanted.tables)
        for name in sorted(good - wanted.nodes):
            text = f"Partition {digest} is on node {name}, unknown to the catalog."
            self.find("unrecorded", name, digest, text, wanted.tables)
            self.kept.append(Record(digest, name))
        if not good:
            self._gone(digest, wanted)
            return
        for target in self._targets(digest, wanted, good, broken):
            source = min(good, key=lambda name: (self._reading[name], name))
            self._reading[source] += wanted.stored_bytes
            self._holding[target] += wanted.stored_bytes
            self.copies.append(Copy(digest, source, target))

    def held(self, node: str, digest: str, old: bool, stored_bytes: int) -> None:
        """One partition that a node holds, if nothing needs it."""
        place = (digest, node)
        if digest in self.view.wanted or place in self.view.uploading or place in self.view.removals:
            return
        if not old:
            self.find("young", node, digest, f"Partition {digest} on node {node} is unknown, and too young to remove.")
            return
        text = f"Partition {digest} on node {node} ({stored_bytes:,} bytes) is needed by nothing."
        self.find("orphan", node, digest, text)
        self.discards.append(Discard(digest, node))

    def _is_good(self, digest: str, wanted: Wanted, node: str) -> bool:
        held = self.reports[node].held.get(digest)
        if held is None or held.stored_bytes != wanted.stored_bytes or digest in self.reports[node].damaged:
            return False
        return node in wanted.nodes or self._is_free(digest, node)

    def _is_free(self, digest: str, node: str) -> bool:
        """Whether the node may become a replica: nothing is about to put it there, or to remove it."""
        return (digest, node) not in self.view.uploading and (digest, node) not in self.view.removals

    def _targets(self, digest: str, wanted: Wanted, good: set[str], broken: list[str]) -> list[str]:
        """Where to copy: to the nodes that should have it, then to others until there are enough."""
        missing = self.view.replicas - len(good)
        others = sorted(
            (name for name in self.reports if name not in good | wanted.nodes and self._is_free(digest, name)),
            key=lambda name: (self._holding[name], name),
        )
        targets = broken + others[: max(0, missing - len(broken))]
        if missing > 0:
            tables = ", ".join(wanted.tables)
            text = f"Partition {digest} of {tables} has {number_of(len(good), 'good replica')} of {self.view.replicas}"
            enough = len(targets) >= missing
            text += "." if enough else ", and too few nodes answer to copy it to: start more."
            self.find("few", None, digest, text, wanted.tables, enough)
        return targets

    def _gone(self, digest: str, wanted: Wanted) -> None:
        silent = sorted(wanted.nodes - set(self.reports))
        tables = ", ".join(wanted.tables)
        if silent:
            text = f"Partition {digest} of {tables} can be only on silent nodes: start {', '.join(silent)}."
        else:
            text = f"Partition {digest} of {tables} has no good replica left: put the table again."
        self.find("gone", None, digest, text, wanted.tables, mendable=False)
