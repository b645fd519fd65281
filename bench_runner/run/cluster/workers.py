"""Start dask workers on this machine, or by SSH on the hosts that a file lists.

The scheduler and all workers listen on loopback only. To connect a worker on another host, SSH forwards two ports: the
scheduler's port to that host, and the worker's port to this machine. So nothing is open on the network, and SSH
encrypts and authenticates.
"""

from __future__ import annotations

import os
import random
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from bench_runner.clock import now_ns
from bench_runner.errors import RunError
from bench_runner.run.launcher import finding_project

RESTART_S = 5.0
"""Shortest time, in seconds, between two starts of a worker."""
END_S = 5.0
"""Longest wait, in seconds, for a worker to end."""
_PORTS = (20_000, 32_000)
"""Range of the ports that SSH and the worker open on another host. It is above the well-known ports and below the ports
that Linux assigns."""
_WORKER = (
    "-m distributed.cli.dask_worker {scheduler} --listen-address tcp://127.0.0.1:{port} --contact-address {contact} "
    "--nthreads 2 --memory-limit 0 --no-nanny --no-dashboard --death-timeout 15 --name {name}"
)
_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15")


@dataclass(frozen=True)
class SshHost:
    """One host of a file of hosts. `destination` is the host as `ssh` accepts it. `python` is the path of the Python
    interpreter on that host that has Format Bench installed."""

    destination: str
    python: str


def ssh_hosts(file: Path) -> list[SshHost]:
    """Read a file of hosts. Each line has the destination of a host, and optionally the path of the Python interpreter
    on that host. The default is the path of the interpreter that runs this function. Raises RunError if the file is
    missing or wrong."""
    given = str(file)
    try:
        lines = [shlex.split(line, comments=True) for line in file.read_text().splitlines()]
    except (OSError, ValueError) as error:
        raise RunError(f"The file of hosts {file} cannot be read: {error}.", parameter="cluster", given=given) from None
    found = [line for line in lines if line]
    problem = "" if found else f"The file of hosts {file} lists no host."
    for number, line in enumerate(lines, 1):
        if len(line) > 2:
            problem = f"{file}, line {number}: at most a host and a path of Python are allowed (got {len(line)} words)."
            break
        if line and line[0].startswith("-"):
            problem = f"{file}, line {number}: a host must not begin with '-' (got {line[0]!r})."
            break
    if problem:
        step = "Write one host per line, e.g. me@host1 /home/me/format-bench/.venv/bin/python"
        raise RunError(problem, step, parameter="cluster", given=given)
    return [SshHost(line[0], line[1] if len(line) > 1 else sys.executable) for line in found]


class Worker:
    """A worker of this run's scheduler. `keep_up` starts it, and starts it again after it has ended."""

    def __init__(self, name: str, command: Callable[[], Sequence[str]], trial: str) -> None:
        """`command` returns the command for the next start. It is called for each start, because ports may change.
        `trial` is a command that shows the user why the worker does not start."""
        self.name, self._command, self.trial = name, command, trial
        self._began_ns = 0
        self._printed: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def has_ended(self) -> bool:
        """Return whether the worker was started and has ended."""
        return self._process is not None and self._process.poll() is not None

    def last_line(self) -> str:
        """Return the last line that the worker or SSH printed, or '' if nothing was printed."""
        if self._printed is None:
            return ""
        self._printed.seek(0)
        lines = self._printed.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else ""

    def keep_up(self) -> None:
        """Start the worker if it is not running and was not started within the last RESTART_S seconds. Otherwise do
        nothing."""
        if self._process is not None and (not self.has_ended() or now_ns() - self._began_ns < RESTART_S * 1e9):
            return
        self.close()
        self._began_ns = now_ns()
        self._printed = TemporaryFile()  # noqa: SIM115
        # A separate session, so that Ctrl-C reaches this process alone, which then ends all parts in an orderly way.
        self._process = subprocess.Popen(
            self._command(),
            env=finding_project(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=self._printed,
            start_new_session=True,
        )

    def close(self) -> None:
        """End the worker."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._printed is not None:
            self._printed.close()
        self._process = self._printed = None


def local_worker(name: str, scheduler: str) -> Worker:
    """Return a worker on this machine that is not started yet."""

    def command() -> list[str]:
        port = _free_port()
        contact = f"tcp://127.0.0.1:{port}"
        return [
            sys.executable,
            "-P",
            *_WORKER.format(scheduler=scheduler, port=port, contact=contact, name=name).split(),
        ]

    return Worker(name, command, f"{sys.executable} -m distributed.cli.dask_worker --version")


def ssh_worker(host: SshHost, scheduler: str) -> Worker:
    """Return a worker on another host that is not started yet. SSH starts it."""
    scheduler_port = scheduler.rpartition(":")[2]

    def command() -> list[str]:
        theirs, port = random.SystemRandom().sample(range(*_PORTS), 2)
        here = _free_port()
        worker = _WORKER.format(
            scheduler=f"tcp://127.0.0.1:{theirs}",
            port=port,
            contact=f"tcp://127.0.0.1:{here}",
            name=shlex.quote(host.destination),
        )
        return [
            *_SSH,
            *("-R", f"127.0.0.1:{theirs}:127.0.0.1:{scheduler_port}", "-L", f"127.0.0.1:{here}:127.0.0.1:{port}"),
            host.destination,
            f"exec {shlex.quote(host.python)} {worker}",
        ]

    trial = f"ssh {host.destination} {shlex.quote(host.python)} -m distributed.cli.dask_worker --version"
    return Worker(host.destination, command, trial)


@contextmanager
def kept_up(workers: Sequence[Worker]) -> Iterator[Callable[[], None]]:
    """Start the workers. Yield a function that restarts workers that have ended. End all workers afterwards."""

    def keep_up() -> None:
        for worker in workers:
            worker.keep_up()

    try:
        keep_up()
        yield keep_up
    finally:
        for worker in workers:
            with suppress(OSError):
                worker.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
