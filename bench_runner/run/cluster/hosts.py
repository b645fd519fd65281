"""Connecting to a dask.distributed cluster, and its hosts: which workers share a machine, what each has installed."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench_runner.errors import RunError
from bench_runner.run.cluster import agent
from bench_runner.run.cluster.messages import HostFacts

CONNECT_S = 15.0
"""Longest wait for a scheduler, for the first worker, and for an answer of a worker that does nothing else."""
FORMS = "local:N, tcp://HOST:PORT, tls://HOST:PORT or ssh:FILE"
MOST_DIFFERENCES = 4


class HostLost(Exception):
    """All workers of a host are gone."""


@dataclass
class Host:
    """A machine of the cluster, with the addresses of its workers."""

    facts: HostFacts
    label: str
    """Its name in records and in the result folder; unique within the run."""
    addresses: list[str] = field(default_factory=list)


class Cluster:
    """A connection to a scheduler."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def call(self, host: Host, function: Callable[..., Any], *given: Any, limit_s: float = CONNECT_S) -> Any:
        """Call a function of the agent on a host, by any of its workers. Raises HostLost, and the function's error."""
        for address in list(host.addresses):
            future = self._client.submit(function, *given, workers=[address], pure=False, retries=0)
            try:
                return future.result(timeout=limit_s)
            except TimeoutError:
                future.cancel()
                if address in self._addresses():
                    raise
            except Exception as error:
                if address in self._addresses():
                    raise
                if type(error).__name__ not in ("KilledWorker", "CancelledError", "FutureCancelledError"):
                    raise
            host.addresses.remove(address)
        raise HostLost(host.label)

    def _addresses(self) -> set[str]:
        return set(self._client.scheduler_info(n_workers=-1)["workers"])

    def hosts(self) -> list[Host]:
        """Return the machines of the cluster, with all their workers. Raises RunError if a worker cannot be used."""
        found: dict[str, Host] = {}
        for address in sorted(self._addresses()):
            alone = Host(HostFacts("", "", "", 0, 0, {}), address, [address])
            try:
                facts = msgspec.msgpack.decode(self.call(alone, agent.facts), type=HostFacts)
            except (ImportError, AttributeError) as error:
                raise RunError(
                    f"The worker {address} cannot load Format Bench ({error}).",
                    "Install the same version there, and start the worker with that environment's Python.",
                    parameter="cluster",
                ) from None
            host = found.setdefault(facts.boot_id, Host(facts, facts.name))
            host.addresses.append(address)
        names = [host.label for host in found.values()]
        for number, host in enumerate(found.values(), 1):
            if names.count(host.label) > 1:
                host.label = f"{host.label}-{number}"
        return list(found.values())

    def refresh(self, hosts: Sequence[Host]) -> None:
        """Add workers that have joined or come back to their hosts."""
        known = {address for host in hosts for address in host.addresses}
        fresh = self._addresses() - known
        if not fresh:
            return
        by_boot = {host.facts.boot_id: host for host in hosts}
        for host in self.hosts():
            if (there := by_boot.get(host.facts.boot_id)) is not None:
                there.addresses = host.addresses


@contextmanager
def connected(where: str, *, insecure: bool) -> Iterator[Cluster]:
    """Yield a connection to a cluster, which is started first for `local:N` and `ssh:FILE`. Raises RunError."""
    try:
        import distributed
    except ImportError:
        raise RunError(
            "`cluster` needs dask.distributed.",
            "Install it: pip install 'format-bench[cluster]'",
            parameter="cluster",
            given=where,
        ) from None
    with _started(where, distributed, insecure=insecure) as address:
        try:
            client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise RunError(
                f"No scheduler answers at {where} ({str(error).splitlines()[0][:200]}).",
                "Start one with `dask scheduler`, or use local:1.",
                parameter="cluster",
                given=where,
                allowed=FORMS,
            ) from None
        try:
            try:
                client.wait_for_workers(1, timeout=CONNECT_S)
            except TimeoutError:
                raise RunError(
                    f"The scheduler at {where} has no workers.",
                    "Start one on each host with `dask worker ADDRESS`.",
                    parameter="cluster",
                    given=where,
                ) from None
            yield Cluster(client)
        finally:
            client.close()


@contextmanager
def _started(where: str, distributed: Any, *, insecure: bool) -> Iterator[Any]:
    """Yield what dask's client connects to."""
    kind, _, rest = where.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest):
        with distributed.LocalCluster(
            n_workers=int(rest), threads_per_worker=2, host="127.0.0.1", dashboard_address=None, memory_limit=0
        ) as cluster:
            yield cluster
    elif kind == "ssh" and rest:
        with distributed.SSHCluster(
            ["localhost", *_hosts_of(Path(rest))], worker_options={"nthreads": 2, "memory_limit": 0}
        ) as cluster:
            yield cluster
    elif kind in ("tcp", "tls") and urlsplit(where).port:
        if kind == "tcp" and not insecure and not _is_loopback(urlsplit(where).hostname or ""):
            raise RunError(
                f"{where} is not encrypted, and whoever reaches a dask scheduler can run code on its hosts.",
                "Use tls:// with dask's own TLS options, or accept it with `insecure`.",
                parameter="cluster",
                given=where,
            )
        yield where
    else:
        raise RunError(f"`cluster` must be {FORMS}.", parameter="cluster", given=where, allowed=FORMS)


def _hosts_of(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"The file of hosts cannot be read: {error}", parameter="cluster", given=str(file)) from None
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise RunError(f"{file} names no host.", "Write one host a line.", parameter="cluster", given=str(file))
    return found


def _is_loopback(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def refuse_differences(ours: Mapping[str, str], hosts: Sequence[Host]) -> None:
    """Raise RunError if a host has another version of Python, of a library or of Format Bench than the client."""
    for host in hosts:
        theirs = host.facts.versions
        names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        if names:
            shown = [f"{name} {theirs.get(name, 'absent')} (here {ours.get(name, 'absent')})" for name in names]
            more = f" and {len(names) - MOST_DIFFERENCES} more" if len(names) > MOST_DIFFERENCES else ""
            raise RunError(
                f"{host.label} differs from this machine: {', '.join(shown[:MOST_DIFFERENCES])}{more}.",
                "Install the same versions on all hosts, from the same constraints.txt.",
                parameter="cluster",
            )
