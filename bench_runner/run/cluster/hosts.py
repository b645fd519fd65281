"""Connect to a dask.distributed cluster and find its hosts: which workers run on the same machine, and which library
versions are installed there."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench_runner.clock import now_ns, pause
from bench_runner.errors import RunError
from bench_runner.operations.parallel.pool import silence_dask
from bench_runner.run.cluster import agent
from bench_runner.run.cluster.messages import HostFacts
from bench_runner.run.cluster.workers import Worker, kept_up, local_worker, ssh_hosts, ssh_worker
from bench_runner.worker.messages import decode

CONNECT_S = 15.0
"""Longest wait, in seconds, for the answer of a scheduler. If other users started the scheduler, also the longest wait
for its first worker."""
START_S = 60.0
"""Longest wait, in seconds, for the workers that the run starts. Also the longest wait for the first answer of any
worker, because a worker imports all formats before this answer."""
LOOK_S = 1.0
"""During a call, the client checks at this interval, in seconds, whether the worker still exists."""
ANSWER_S = 15.0
"""Longest wait, in seconds, for an answer of a worker."""
SLOWEST_BYTES_PER_S = 50_000
"""Slowest expected transfer rate. If a call sends files, its time limit is extended by the size of the files divided by
this rate."""
FORMS = "local:N, ssh:FILE, tcp://HOST:PORT or tls://HOST:PORT"
MOST_DIFFERENCES = 4
"""Maximum number of differing versions that an error lists."""


class HostLost(Exception):
    """No worker of the host is connected any more."""


class SlowHost(Exception):
    """A worker has not answered in time, but is still connected."""


class SchedulerLost(Exception):
    """The scheduler does not answer."""


class _WorkerLost(Exception):
    """One worker is no longer connected. Other workers of the host may be."""


@dataclass
class Host:
    """A machine of the cluster, with the addresses of its workers."""

    facts: HostFacts
    label: str
    """The name of the host in records, and of its result folder. `division.label_hosts` makes the label unique within
    the run."""
    addresses: list[str] = field(default_factory=list)


class Cluster:
    """A connection to a dask scheduler, through which functions are called on hosts."""

    def __init__(self, connect: Callable[[], Any], keep_up: Callable[[], None]) -> None:
        """`connect` returns a dask Client, or raises OSError, TimeoutError or ValueError. `keep_up` restarts the
        workers that this run has started, if they have ended."""
        self._connect, self.keep_up = connect, keep_up
        self._client = connect()
        self._known: dict[str, HostFacts] = {}
        """Facts about hosts by the address of a worker. The facts are stored so that hosts are not disturbed while
        measuring: when the workers of a lost host are searched, only new workers are asked."""

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def reconnect(self) -> None:
        """Connect again after SchedulerLost. Raises SchedulerLost if the scheduler still does not answer."""
        self._client.close()
        try:
            self._client = self._connect()
        except (OSError, TimeoutError, ValueError) as error:
            raise SchedulerLost(str(error)) from None

    def call(self, host: Host, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function of the agent on a host, through any of its workers, and return the result. Raises HostLost if
        the host has no worker, SlowHost if the answer takes too long, SchedulerLost if the scheduler does not answer,
        and the errors of the function."""
        for address in tuple(host.addresses):
            try:
                return self._answer(address, function, *given)
            except _WorkerLost:
                host.addresses.remove(address)
        raise HostLost(host.label)

    def _answer(self, address: str, function: Callable[..., Any], *given: Any, limit_s: float = ANSWER_S) -> Any:
        from concurrent.futures import CancelledError, wait

        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        if address not in self.addresses():
            raise _WorkerLost(address)
        future = self._client.submit(function, *given, workers=[address], pure=False, retries=0)
        # One request for the answer. `future.result(timeout)` makes another one each time, so that an answer that takes
        # longer on a slow line than the timeout would be sent again and again, and never arrive.
        found = asyncio.run_coroutine_threadsafe(
            self._client.gather([future], asynchronous=True), self._client.loop.asyncio_loop
        )
        limit_s += sum(len(each) for each in given if isinstance(each, bytes)) / SLOWEST_BYTES_PER_S
        until = now_ns() + limit_s * 1e9
        while now_ns() < until and address in self.addresses():
            wait([found], timeout=LOOK_S)
            if not found.done():
                continue
            try:
                return found.result()[0]
            except (CancelledError, KilledWorker, CommClosedError):
                # Either the worker or the scheduler is gone.
                break
        found.cancel()
        future.cancel()
        if address in self.addresses():
            raise SlowHost(address)
        raise _WorkerLost(address)

    def addresses(self) -> set[str]:
        """Return the addresses of all connected workers. Raises SchedulerLost if the scheduler does not answer."""
        try:
            known = self._client.scheduler_info(n_workers=-1)
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            raise SchedulerLost(str(error)) from None
        # A client that has given up its scheduler answers with an empty dict.
        if "workers" not in known:
            raise SchedulerLost("the connection to the scheduler is closed")
        there = set(known["workers"])
        # A new worker may get the address of one that has gone.
        self._known = {address: facts for address, facts in self._known.items() if address in there}
        return there

    def hosts(self) -> list[Host]:
        """Return the hosts of the cluster with all their workers, sorted by name. Raises RunError if a worker cannot be
        used, and SchedulerLost if the scheduler does not answer."""
        found: dict[str, Host] = {}
        for address in sorted(self.addresses()):
            facts = self._facts(address)
            found.setdefault(facts.identity, Host(facts, facts.name)).addresses.append(address)
        for host in found.values():
            # The label becomes the name of a folder.
            host.label = re.sub(r"[^A-Za-z0-9_-]", "-", host.label)[:60] or "host"
        return sorted(found.values(), key=lambda host: host.label)

    def _facts(self, address: str) -> HostFacts:
        """Return the facts about the host of the worker at `address`. Raises RunError if the worker cannot be used, and
        SchedulerLost if the scheduler does not answer."""
        if address in self._known:
            return self._known[address]
        try:
            facts: HostFacts = decode(self._answer(address, agent.facts, limit_s=START_S), HostFacts)
        except SlowHost:
            raise RunError(
                f"The worker {address} has not answered within {START_S:.0f} s.",
                "Find out what this worker is doing, or end it.",
                parameter="cluster",
            ) from None
        except (_WorkerLost, ImportError, AttributeError, RuntimeError) as error:
            # dask ends a worker that cannot load the function.
            told = (
                "the worker has ended"
                if isinstance(error, _WorkerLost)
                else str(error.__cause__ or error).splitlines()[0]
            )
            raise RunError(
                f"Either the worker {address} or its scheduler cannot load Format Bench ({told[:200]}).",
                "Start the worker and the scheduler in environments with the same version of Format Bench as here.",
                parameter="cluster",
            ) from None
        self._known[address] = facts
        return facts

    def look_for(self, host: Host) -> None:
        """Find new workers of a host that has lost all its workers, and add them to the host. A worker is ignored if
        its library versions differ from the versions that the host had before. Raises SchedulerLost if the scheduler
        does not answer."""
        for address in self.addresses():
            with suppress(RunError):
                facts = self._facts(address)
                if (facts.identity, facts.versions) == (host.facts.identity, host.facts.versions):
                    host.addresses.append(address)


@contextmanager
def connected(where: str, *, insecure: bool) -> Iterator[Cluster]:
    """Yield a connection to a cluster. With `local:N` and `ssh:FILE`, start the cluster before and end it afterwards.
    Raises RunError if there is no connection."""
    try:
        import distributed
    except ImportError:
        raise RunError(
            "`cluster` needs dask.distributed, which is not installed.",
            "Run: pip install -e '.[cluster]'",
            parameter="cluster",
            given=where,
        ) from None
    # dask logs lost connections, about which the run informs its user itself.
    silence_dask()
    kind, _, rest = where.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest):
        names = [f"local-{number}" for number in range(1, int(rest) + 1)]
        with _started(distributed, lambda scheduler: [local_worker(name, scheduler) for name in names]) as cluster:
            yield cluster
    elif kind == "ssh" and rest:
        hosts = ssh_hosts(Path(rest))
        with _started(distributed, lambda scheduler: [ssh_worker(host, scheduler) for host in hosts]) as cluster:
            yield cluster
    elif kind in ("tcp", "tls") and _has_port(where):
        if kind == "tcp" and not insecure and not _is_loopback(urlsplit(where).hostname or ""):
            raise RunError(
                f"{where} is not encrypted. Anyone who can connect to a dask scheduler can run code on its workers.",
                "Use tls:// with dask's own TLS options, or accept this with `insecure`.",
                parameter="cluster",
                given=where,
            )
        with _existing(distributed, where) as cluster:
            yield cluster
    else:
        raise RunError(parameter="cluster", given=where, allowed=FORMS)


@contextmanager
def _started(distributed: Any, workers_of: Callable[[str], Sequence[Worker]]) -> Iterator[Cluster]:
    """Start a scheduler on loopback and its workers, wait until all workers are connected, and yield the connection.
    Raises RunError if a worker does not start."""
    with distributed.LocalCluster(
        n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as scheduler:
        workers = workers_of(scheduler.scheduler_address)
        with kept_up(workers) as keep_up:
            cluster = Cluster(lambda: distributed.Client(scheduler, set_as_default=False), keep_up)
            try:
                until = now_ns() + START_S * 1e9
                while len(cluster.addresses()) < len(workers):
                    ended = next((worker for worker in workers if worker.has_ended()), None)
                    if ended or now_ns() > until:
                        failed = ended or workers[-1]
                        missing = f"this worker has not started within {START_S:.0f} s"
                        raise RunError(
                            f"{failed.name}: {'the worker has ended' if ended else missing} ({failed.last_line()}).",
                            f"To find out why, run: {failed.trial}",
                            parameter="cluster",
                        )
                    pause(0.1)
                yield cluster
            finally:
                cluster.close()


@contextmanager
def _existing(distributed: Any, where: str) -> Iterator[Cluster]:
    """Yield a connection to an existing scheduler, which this run has not started."""
    if where.startswith("tls") and not distributed.Security().tls_client_cert:
        raise RunError(
            f"{where} needs certificates, and dask's settings name none.",
            "Set distributed.comm.tls.ca-file and distributed.comm.tls.client.cert in dask's configuration.",
            parameter="cluster",
            given=where,
        )
    try:
        cluster = Cluster(lambda: distributed.Client(where, timeout=CONNECT_S, set_as_default=False), lambda: None)
    except (OSError, TimeoutError, ValueError) as error:
        raise RunError(
            f"No dask scheduler answers at {where} ({str(error).splitlines()[0][:200]}).",
            "Start one with `dask scheduler`, or use local:1.",
            parameter="cluster",
            given=where,
            allowed=FORMS,
        ) from None
    try:
        until = now_ns() + CONNECT_S * 1e9
        while not cluster.addresses():
            if now_ns() > until:
                raise RunError(
                    f"The scheduler at {where} has no workers.",
                    f"Start one on each host: dask worker {where}",
                    parameter="cluster",
                    given=where,
                )
            pause(0.2)
        yield cluster
    finally:
        cluster.close()


def _has_port(address: str) -> bool:
    try:
        return bool(urlsplit(address).port)
    except ValueError:
        return False


def _is_loopback(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def refuse_differences(ours: Mapping[str, str], hosts: Sequence[Host]) -> None:
    """Raise RunError if the versions of a host differ from `ours`, the versions of the client. Versions of Python, of
    libraries and of Format Bench are compared."""
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
