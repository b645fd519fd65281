"""The catalog's maintenance of nodes: compare contents, replace missing replicas, remove unneeded bytes.

`storing` decides on the steps; this module carries out each step with a call to a node.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from libraries.near_storage.errors import BusyError, DamagedError, NearStorageError, NotFoundError
from libraries.near_storage.serving.node import DESCRIBING_S, copy_s
from libraries.near_storage.serving.protocol import (
    Checked,
    Copy,
    Finding,
    OfDigest,
    Piece,
    Removing,
    Repaired,
    Report,
    Reported,
)
from libraries.near_storage.serving.rpc import CALL_S, Caller
from libraries.near_storage.storing import integrity
from libraries.near_storage.storing.catalog import Catalog, TableVersion
from libraries.near_storage.storing.partition_metadata import PartitionInfo
from libraries.near_storage.storing.partitions import Held, NodeReport
from libraries.near_storage.storing.uploads import Node

LOG = logging.getLogger("near_storage")

VERIFY_S = 3600.0
"""Time limit for a node to read its partitions."""
COLLECT_EVERY_S = 60.0
ASKED_AT_ONCE = 16

Ticket = Callable[[Piece, int], bytes]
"""A function that takes a partition and its size in bytes. It returns a ticket with which a node can copy the partition
from another node."""


class Maintaining:
    """Checks and repairs the partitions of one catalog, and removes unneeded ones. Only one check or repair runs at a
    time. Thread-safe."""

    def __init__(self, catalog: Catalog, peers: Caller, ticket: Ticket, orphan_age_s: float) -> None:
        self._catalog = catalog
        self._peers = peers
        self._ticket = ticket
        self._orphan_age_s = orphan_age_s
        self._one = threading.Lock()
        self._stopped = False
        self._hurry = threading.Event()
        self._collector = threading.Thread(target=self._collect_for_ever, name="near-storage-collector", daemon=True)

    def start(self) -> None:
        """Start removing unneeded partitions in the background."""
        self._collector.start()

    def hurry(self) -> None:
        """Wake the background removal now."""
        self._hurry.set()

    def stop(self) -> None:
        """End the background work."""
        self._stopped = True
        self._hurry.set()
        if self._collector.is_alive():
            self._collector.join(CALL_S)

    def check(self, verify: bool) -> Checked:
        """Return the deviations from the expected state. Raises BusyError while another check or repair runs.

        With `verify`, nodes read every byte. If a running node does not complete this, its error (e.g. BusyError or
        UnavailableError) is raised and names the node.
        """
        with self._alone():
            found = self._checked(verify)
        return Checked(_findings(found), len(found.steps))

    def repair(self, verify: bool) -> Repaired:
        """Repair what is possible, replicas first and removals last. Raises the errors of `check` before any change."""
        with self._alone():
            found = self._checked(verify)
            failed: list[str] = []
            copied = recorded = 0
            for step in found.steps:
                try:
                    if isinstance(step, integrity.Copy):
                        self._copy(step)
                        copied += 1
                    elif isinstance(step, integrity.Record):
                        self._record(step)
                        recorded += 1
                except NotFoundError:
                    continue
                except NearStorageError as error:
                    failed.append(f"partition {step.digest}: {error}")
            discards = [step for step in found.steps if isinstance(step, integrity.Discard)]
            self._catalog.upkeep.collect()
            removed = self._remove(self._catalog.upkeep.permit(discards), failed)
            return Repaired(_findings(found), copied, recorded, removed, tuple(failed))

    def restore(self, version: TableVersion) -> None:
        """Replace damaged descriptions of this version's partitions in the catalog by the descriptions that the nodes
        have.

        Raises DamagedError if no node can describe one of these partitions.
        """
        for partition in version.partitions:
            try:
                self._catalog.info(partition.digest)
            except DamagedError as error:
                if not any(self._restored(node.uri, partition.digest) for node in partition.nodes):
                    raise error

    # --- inside ------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._one.acquire(timeout=CALL_S / 2):
            raise BusyError("another check or repair is running: retry later")
        try:
            yield
        finally:
            self._one.release()

    def _checked(self, verify: bool) -> integrity.Check:
        nodes = self._catalog.nodes()
        with ThreadPoolExecutor(ASKED_AT_ONCE) as asking:
            answers = list(asking.map(lambda node: self._report(node, verify), nodes))
        reports = {node.name: report for node, report in zip(nodes, answers, strict=True) if report is not None}
        return integrity.check(self._catalog.upkeep.view(), reports, self._orphan_age_s)

    def _report(self, node: Node, verify: bool) -> NodeReport | None:
        """Return a node's report, or None if the node does not answer. With `verify`, raise an error if the node
        answers but could not read all its partitions."""
        try:
            told = self._peers.ask(node.uri, "report", Report(verify), Reported, VERIFY_S if verify else CALL_S)
        except NearStorageError as error:
            if verify and self._report(node, False) is not None:
                # If this node were treated as gone, all its partitions would be copied to other nodes.
                raise type(error)(f"node {node.name} is running, but did not read all its data: {error}") from None
            return None
        return NodeReport({digest: Held(*held) for digest, held in told.held.items()}, frozenset(told.damaged))

    def _restored(self, location: str, digest: str) -> bool:
        try:
            self._catalog.restore_info(PartitionInfo.decode(self._peers.act(location, "describe", OfDigest(digest))))
        except NearStorageError:
            return False
        return True

    def _copy(self, step: integrity.Copy) -> None:
        locations = {node.name: node.uri for node in self._catalog.nodes()}
        stored_bytes = self._catalog.info(step.digest).stored_bytes
        ticket = self._ticket(Piece(0, step.digest, ()), stored_bytes)
        message = Copy(step.digest, stored_bytes, locations[step.source], ticket)
        most_s = copy_s(stored_bytes) + DESCRIBING_S
        info = PartitionInfo.decode(self._peers.act(locations[step.target], "copy", message, most_s))
        if not info.same_content(self._catalog.info(step.digest)):
            raise DamagedError(
                f"node {step.target} describes its copy of partition {step.digest} differently than the catalog does; "
                "the copy is not recorded"
            )
        self._catalog.upkeep.record(step.digest, step.target)

    def _record(self, step: integrity.Record) -> None:
        # If the partition was removed since the node reported it, this raises NotFoundError and nothing is recorded.
        locations = {node.name: node.uri for node in self._catalog.nodes()}
        self._peers.act(locations[step.node], "describe", OfDigest(step.digest))
        self._catalog.upkeep.record(step.digest, step.node)

    def _remove(self, removals: Iterable[integrity.Removal], failed: list[str]) -> int:
        locations = {node.name: node.uri for node in self._catalog.nodes()}
        silent: set[str] = set()
        removed = 0
        for removal in removals:
            if removal.node in silent or removal.node not in locations:
                continue
            try:
                self._peers.act(locations[removal.node], "remove", Removing(removal.digest, removal.number))
            except NearStorageError as error:
                silent.add(removal.node)
                failed.append(f"node {removal.node}: {error}")
                continue
            self._catalog.upkeep.removed(removal)
            removed += 1
        return removed

    def _collect_for_ever(self) -> None:
        while True:
            self._hurry.wait(COLLECT_EVERY_S)
            self._hurry.clear()
            if self._stopped:
                return
            try:
                with self._one:
                    self._remove(self._catalog.upkeep.collect(), [])
            except Exception:
                # Keep the thread alive and log the error, because nothing else removes partitions or would show the
                # failure.
                LOG.exception("collecting failed")


def _findings(found: integrity.Check) -> tuple[Finding, ...]:
    return tuple(
        Finding(each.kind, each.node, each.digest, each.text, each.tables, each.mendable) for each in found.findings
    )
