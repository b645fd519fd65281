"""Start the services that serve a stored copy, each in a separate process. If the network is to be limited, all
connections go through a proxy with a limited rate.

The services die with the run, even if the run is killed.
"""

from __future__ import annotations

import os
import secrets
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from adapters.services import TOKEN, Served, Service
from bench_runner.clock import now_ns
from bench_runner.errors import BenchError
from bench_runner.networks import rate_mbit
from bench_runner.run.launcher import finding_project
from bench_runner.run.services.messages import Destination, ProxyReady, Ready, line_of
from bench_runner.run.services.proxy import HOST, counters_file

START_LIMIT_S = 30.0
"""A service that has not reported that it is ready within this time has failed."""
END_GRACE_S = 1.0
"""Seconds to wait for the end of a service after a worker has failed. When a service dies, the kernel closes its
connections before the end of the process is visible, so the worker may fail first."""
STOP_LIMIT_S = 5.0
"""A terminated service that is still running after this time is killed."""


_Message = TypeVar("_Message", Ready, ProxyReady)


class ServiceFailed(BenchError):
    """A service did not start, or ended while it was needed. The message has its name, exit status and last output."""


@dataclass
class Running:
    """Services that are ready. `counters` is the file in which a proxy counts bytes, or None without a proxy."""

    served: Served
    counters: Path | None
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the services, without the proxy."""
        return [process.pid for process in self.processes.values()]

    def check(self, grace_s: float = 0.0) -> None:
        """Raise ServiceFailed if a service has ended, or ends within `grace_s`."""
        until_ns = now_ns() + grace_s * 1e9
        for name, process in self.processes.items():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max((until_ns - now_ns()) / 1e9, 0.0))
            if process.returncode is not None:
                raise ServiceFailed(_description(name, process, self.logs[name], "ended while it was needed"))


@contextmanager
def running(services: Sequence[Service], network: str, folder: Path) -> Iterator[Running]:
    """Start services in order, yield them as Running, and end them afterwards. `folder`, which must not exist yet, is
    created for the output of the services and removed at the end. Raises ServiceFailed if a service does not start."""
    folder.mkdir(parents=True)
    mbit = rate_mbit(network)
    started: list[subprocess.Popen[bytes]] = []
    try:
        line = _Line(mbit, folder, len(services), started) if mbit else None
        found = Running(Served({}, secrets.token_hex(16)), line.counters if line else None)
        addresses: dict[str, str] = {}
        ports: list[int] = []
        for place, service in enumerate(services):
            advertised = f"{HOST}:{line.ports[place]}" if line else ""
            process, log = _started(service, addresses, advertised, found.served.token, folder)
            started.append(process)
            found.processes[service.name], found.logs[service.name] = process, log
            port = _answer(service.name, process, log, Ready).port
            ports.append(port)
            # Services reach each other as their callers do, through the proxy if there is one.
            addresses[service.name] = advertised or f"{HOST}:{port}"
            if line:
                line.lead(place, port)
        found.served = Served(addresses, found.served.token)
        yield found
    finally:
        _end(started)
        shutil.rmtree(folder, ignore_errors=True)


class _Line:
    """The process of the proxy. The proxy listens on all ports from the start. `lead` sets the target of each port."""

    def __init__(self, mbit: int, folder: Path, number: int, started: list[subprocess.Popen[bytes]]) -> None:
        self.counters = folder / "passed"
        counters_file(self.counters)
        self._log = folder / "proxy"
        module = ("-m", "bench_runner.run.services.proxy", str(mbit), str(self.counters), str(number))
        self._process = _popen(module, {}, self._log, stdin=subprocess.PIPE)
        started.append(self._process)
        self.ports = _answer("proxy", self._process, self._log, ProxyReady).ports

    def lead(self, place: int, port: int) -> None:
        """Forward connections from the port at index `place` to `port`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line_of(Destination(place, port)))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ServiceFailed(_description("proxy", self._process, self._log, "has ended")) from None


def _started(
    service: Service, addresses: Mapping[str, str], advertised: str, token: str, folder: Path
) -> tuple[subprocess.Popen[bytes], Path]:
    words = [word.format(advertised=advertised, **addresses) for word in service.command]
    log = folder / service.name
    return _popen(words, {**service.environment, TOKEN: token}, log), log


def _popen(
    words: Sequence[str], variables: Mapping[str, str], log: Path, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    environment = finding_project({**os.environ, **variables})
    child = [sys.executable, "-P", "-m", "bench_runner.run.services.service_process", str(os.getpid())]
    with log.open("wb") as errors:
        return subprocess.Popen(
            [*child, *words], env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, cwd=log.parent
        )


def _answer(name: str, process: subprocess.Popen[bytes], log: Path, kind: type[_Message]) -> _Message:
    """Return the message with which a service reports that it is ready. Ignore other output before that line. Raises
    ServiceFailed."""
    assert process.stdout is not None
    received = b""
    until_ns = now_ns() + START_LIMIT_S * 1e9
    while (left_s := (until_ns - now_ns()) / 1e9) > 0:
        if not select.select([process.stdout], [], [], left_s)[0]:
            break
        piece = os.read(process.stdout.fileno(), 1 << 16)
        if not piece:
            process.wait()
            raise ServiceFailed(_description(name, process, log, "did not start"))
        received += piece
        *lines, received = received.split(b"\n")
        for line in lines:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):
                return msgspec.json.decode(line, type=kind)
    raise ServiceFailed(_description(name, process, log, f"does not answer after {START_LIMIT_S:g} s"))


def _description(name: str, process: subprocess.Popen[bytes], log: Path, what: str) -> str:
    code = process.poll()
    how = "" if code is None else f" (exit code {code})" if code >= 0 else f" (killed by signal {-code})"
    lines = log.read_bytes()[-2000:].decode(errors="replace").strip().splitlines()
    words = f"; it printed: {lines[-1][:200]}" if lines else ""
    return f"the service {name} {what}{how}{words}"


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes, last started first, so that a process ends before the processes that it depends on."""
    for process in reversed(processes):
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
