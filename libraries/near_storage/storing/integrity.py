"""Find what is wrong with a store and the steps to repair it, from the catalog's view and the nodes' reports.

This module reads no disk and calls no node; the caller carries out the steps. The caller first copies partitions (the
node's `put` with the partition's digest, then `upkeep.record`). Afterwards the caller removes the partitions that
`upkeep.permit` allows to remove.
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
    """A partition that a readable version needs: its size, its expected nodes, and the tables that need it."""

    stored_bytes: int
    nodes: frozenset[str]
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Removal:
    """A decided removal. The caller calls `store.remove(digest, number)` on the node, then `upkeep.removed`."""

    number: int
    digest: str
    node: str


@dataclass(frozen=True)
class CatalogView:
    """The catalog's expected state at one moment. `uploading` and `removals` are the (digest, node) pairs whose upload
    or removal is in progress."""

    replicas: int
    nodes: tuple[str, ...]
    wanted: Mapping[str, Wanted]
    uploading: frozenset[tuple[str, str]]
    removals: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Finding:
    """A deviation from the expected state. `kind` is one of:

    - silent: the node did not answer.
    - lost, damaged: a replica is missing or wrong.
    - unrecorded: a node holds a good replica that the catalog does not know.
    - few: there are fewer good replicas than required.
    - gone: no node that answered has a good replica.
    - orphan: a node holds a partition that nothing needs.
    - young: like orphan, but the partition is so recent that it is kept.

    `tables` are the tables that need the partition. `mendable` states whether the repair steps resolve the finding.
    """

    kind: ProblemKind
    node: str | None
    digest: str | None
    text: str
    tables: tuple[str, ...] = ()
    mendable: bool = True


@dataclass(frozen=True)
class Copy:
    """A repair step: the node `target` copies the partition from the node `source`. Afterwards, the caller calls
    `upkeep.record(digest, target)`."""

    digest: str
    source: str
    target: str


@dataclass(frozen=True)
class Record:
    """A repair step: the caller calls `upkeep.record(digest, node)`, because the node holds a replica that the catalog
    does not know."""

    digest: str
    node: str


@dataclass(frozen=True)
class Discard:
    """A repair step: the node holds a partition that nothing needs. The caller passes the step to `upkeep.permit`,
    which may refuse it."""

    digest: str
    node: str


Step: TypeAlias = Copy | Record | Discard


@dataclass(frozen=True)
class Check:
    """All findings, and the repair steps in their required order."""

    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]


def check(view: CatalogView, reports: Mapping[str, NodeReport], orphan_age_s: float) -> Check:
    """Compare the catalog with the nodes' reports. A node of the catalog without a report counts as silent.

    Orphans younger than `orphan_age_s` seconds are reported and kept, because the catalog may be a restored backup. The
    caller must create `view` after the nodes have reported. Otherwise partitions of an upload that ended in between
    would look like orphans.
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
        """Check one wanted partition on all nodes."""
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
        """Check whether anything needs a partition that a node holds."""
        place = (digest, node)
        if digest in self.view.wanted or place in self.view.uploading or place in self.view.removals:
            return
        if not old:
            self.find("young", node, digest, f"Partition {digest} on node {node} is unknown, and too new to remove.")
            return
        text = f"Partition {digest} on node {node} ({stored_bytes:,} bytes) is not needed by any table."
        self.find("orphan", node, digest, text)
        self.discards.append(Discard(digest, node))

    def _is_good(self, digest: str, wanted: Wanted, node: str) -> bool:
        held = self.reports[node].held.get(digest)
        if held is None or held.stored_bytes != wanted.stored_bytes or digest in self.reports[node].damaged:
            return False
        return node in wanted.nodes or self._is_free(digest, node)

    def _is_free(self, digest: str, node: str) -> bool:
        """Return whether a new replica may be on the node: no upload or removal of the partition is in progress
        there."""
        return (digest, node) not in self.view.uploading and (digest, node) not in self.view.removals

    def _targets(self, digest: str, wanted: Wanted, good: set[str], broken: list[str]) -> list[str]:
        """Return the nodes to copy a partition to. These are the nodes that should have it, then other nodes until
        there are enough replicas."""
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
            text += "." if enough else ", and too few nodes answer to hold more copies: start more nodes."
            self.find("few", None, digest, text, wanted.tables, enough)
        return targets

    def _gone(self, digest: str, wanted: Wanted) -> None:
        silent = sorted(wanted.nodes - set(self.reports))
        tables = ", ".join(wanted.tables)
        if silent:
            text = f"Partition {digest} of {tables} may exist only on silent nodes: start {', '.join(silent)}."
        else:
            text = f"Partition {digest} of {tables} has no good replica left: put the table again."
        self.find("gone", None, digest, text, wanted.tables, mendable=False)
