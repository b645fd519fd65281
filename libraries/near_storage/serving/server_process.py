"""Run a catalog or a node as a process until it is terminated.

The functions print nothing. They pass the server's address to a callback once the server answers requests.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from libraries.near_storage.errors import BusyError, RequestError, UnavailableError
from libraries.near_storage.serving import clock
from libraries.near_storage.serving.catalog_server import CatalogServer
from libraries.near_storage.serving.limits import Limits
from libraries.near_storage.serving.node import StorageNode
from libraries.near_storage.serving.security import Tls, is_everywhere
from libraries.near_storage.serving.tickets import LIFETIME_S
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.partitions import PartitionStore

LOG = logging.getLogger("near_storage")

REGISTER_EVERY_S = 1.0
"""Seconds between attempts of a node to reach its catalog."""

TELL_EVERY_S = 60.0
"""Seconds between log messages that the node still waits for its catalog."""

Ready = Callable[[str], None]


def serve_catalog(
    folder: Path,
    secret: bytes,
    tokens: Collection[str],
    host: str = "127.0.0.1",
    port: int = 0,
    replicas: int = 2,
    tls: Tls | None = None,
    tls_roots: bytes | None = None,
    limits: Limits | None = None,
    grace_s: float = 3600.0,
    orphan_age_s: float = 3600.0,
    ready: Ready | None = None,
) -> None:
    """Serve the catalog in `folder` until SIGTERM or SIGINT. Call it from the main thread.

    `secret` is the cluster's secret, `tokens` are hashes of the clients' tokens (`security.hash_token`). `tls_roots`
    are PEM certificates to verify nodes. `ready` is called with the address once requests are answered. Raises errors
    of near storage if the folder, the address or a file cannot be used.
    """
    if grace_s < LIFETIME_S:
        raise RequestError(
            f"the grace period must be at least {LIFETIME_S} s, the lifetime of a ticket (got {grace_s:g} s)"
        )
    stopping = _stop_signals()
    catalog = Catalog(folder, replicas, grace_s)
    server = CatalogServer(catalog, secret, tokens, host, port, tls, tls_roots, limits, orphan_age_s)
    if ready is not None:
        ready(server.location)
    stopping.wait()
    _end(server)


def serve_node(
    folder: Path,
    secret: bytes,
    name: str,
    catalog: str,
    host: str = "127.0.0.1",
    port: int = 0,
    advertise: str | None = None,
    tls: Tls | None = None,
    tls_roots: bytes | None = None,
    limits: Limits | None = None,
    ready: Ready | None = None,
) -> None:
    """Serve the partitions in `folder` until SIGTERM or SIGINT. Call it from the main thread.

    `name` is permanent for this node. The node registers at `catalog`, and waits until the catalog is available. It
    registers the address `advertise`, by default the address at which it listens. Then `ready` is called with the
    address at which it listens. `tls_roots` are PEM certificates to verify catalog and other nodes. Raises errors of
    near storage if the folder, the address or the name cannot be used.
    """
    if advertise is None and is_everywhere(host):
        raise RequestError(f"clients cannot call {host}: give the node's own address with --advertise")
    stopping = _stop_signals()
    store = PartitionStore(folder)
    server = StorageNode(store, name, secret, host, port, tls, tls_roots, limits)
    try:
        if _registered(server, catalog, advertise, stopping):
            if ready is not None:
                ready(server.location)
            stopping.wait()
    finally:
        _end(server)


def _registered(server: StorageNode, catalog: str, advertise: str | None, stopping: threading.Event) -> bool:
    """Try to register the node until this succeeds or the process is stopped. Return whether the node is registered.
    Log each new reason for waiting."""
    told, told_s = "", 0.0
    while not stopping.is_set():
        try:
            server.register(catalog, advertise)
            return True
        except (UnavailableError, BusyError) as error:
            if str(error) != told:
                told, told_s = str(error), clock.elapsed_s()
                LOG.warning("node %s waits for the catalog: %s", server.name, told)
            elif clock.elapsed_s() - told_s >= TELL_EVERY_S:
                told_s = clock.elapsed_s()
                LOG.warning("node %s still waits for the catalog", server.name)
            stopping.wait(REGISTER_EVERY_S)
    return False


def _stop_signals() -> threading.Event:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def _end(server: CatalogServer | StorageNode) -> None:
    if server.close():
        return
    # A call hangs if its client stopped reading, and such a call cannot be ended from here. Exiting is safe, because
    # data is synced.
    LOG.warning("hanging streams were cut off")
    os._exit(0)
