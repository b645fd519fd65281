"""Start worker processes and watch each worker with its child processes: read the memory every 2 ms, enforce limits of
time and memory, and record how the worker ends.

A launcher starts all its workers with the same number of threads. Workers are forked from one forkserver (a process
that has loaded the libraries), or with isolate='spawn', are new interpreters. A launcher runs one worker at a time.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from bench_runner.clock import now_ns
from bench_runner.errors import BenchError, Failure
from bench_runner.machine import linux
from bench_runner.machine.process_tree import ProcessTree, total
from bench_runner.run.forkserver import MESSAGE_BYTES
from bench_runner.run.services.monitor import ServiceMonitor
from bench_runner.thread_variables import ONE_THREAD
from bench_runner.worker.messages import (
    Answer,
    AnyTask,
    Done,
    Ended,
    Failed,
    Measured,
    Preload,
    Preloaded,
    Probed,
    Started,
    decode,
    encode,
)
from bench_runner.worker.phase import PHASE_AFTER, PHASE_CLOCK, PHASE_READY

POLL_MS = 2
"""Interval at which the launcher reads the memory of a worker and of the worker's child processes (rule 13)."""
KILL_LIMIT_S = 5.0
"""Longest wait in seconds for a killed process to end. Usually a process ends within milliseconds, unless it is blocked
in a system call."""
PROJECT_ROOT = Path(__file__).resolve().parents[2]


def finding_project(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with this checkout added to PYTHONPATH. A Python process with these environment variables
    can import the project from any current folder."""
    # An empty entry in PYTHONPATH would mean the current folder. Python without -P would add that folder too.
    parts = [str(PROJECT_ROOT), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    return {**environment, "PYTHONPATH": os.pathsep.join(part for part in parts if part)}


_Answer = TypeVar("_Answer", bound=msgspec.Struct)


@dataclass
class Outcome:
    """The result of one task: the messages from the worker, the launcher's observations, and how the worker ended.

    `peak_private_bytes` and `peak_tree_resident_bytes` include the worker and its child processes.
    `peak_tree_resident_bytes` is 0 if the worker started no child process.
    """

    answers: list[Answer] = field(default_factory=list)
    peak_private_bytes: int = 0
    peak_tree_resident_bytes: int = 0
    peak_of_one_bytes: int = 0
    """Largest growth of one child process's private memory during the measured time."""
    launched_ns: int = 0
    ended_ns: int = 0
    printed: str = ""
    failure: Failure | None = None

    def answer(self, kind: type[_Answer]) -> _Answer:
        """Return the only message of type `kind` from the worker."""
        (found,) = self.answers_of(kind)
        return found

    def answers_of(self, kind: type[_Answer]) -> list[_Answer]:
        """Return all messages of type `kind` from the worker."""
        return [answer for answer in self.answers if isinstance(answer, kind)]

    def added_bytes(self, answer: Measured | Probed) -> int:
        """Return the private memory that the worker and its child processes added during the measured time."""
        highest = max(self.peak_private_bytes, answer.private_end_bytes)
        return max(highest - answer.private_before_bytes, 0)


@dataclass(frozen=True)
class Limits:
    """Limits of a worker: the seconds of each phase, and the private memory of the worker and its child processes
    together."""

    timeout_s: float
    memory_bytes: int


class Launcher:
    """Starts worker processes that all have the same number of threads."""

    def __init__(self, *, isolate: str, threads: int | None, preload: list[str], strings: str = "str") -> None:
        """`isolate` is 'forkserver' or 'spawn'. The forkserver loads the libraries of the variants in `preload`, with
        `strings` as pandas' dtype of text."""
        self._threads = threads
        self._preload = preload
        self._strings = strings
        self._isolate = isolate
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self.preload_failures: dict[str, str] = {}

    def twin(self) -> Launcher:
        """Return another launcher with the same settings, for use in another thread."""
        return Launcher(isolate=self._isolate, threads=self._threads, preload=self._preload, strings=self._strings)

    def load(self) -> None:
        """Start the forkserver, which loads the libraries, before the first job."""
        if self._isolate != "spawn":
            self._forkserver()

    def run(
        self, task: AnyTask, limits: Limits, *, spawn: bool = False, monitor: ServiceMonitor | None = None
    ) -> Outcome:
        """Execute one task in a fresh worker, wait for its end and return the outcome. The worker never outlives this
        call. `monitor` observes the services that the task uses, during the measured time. With `spawn`, the worker is
        a new interpreter."""
        task = msgspec.structs.replace(task, threads=self._threads)
        task.printed.unlink(missing_ok=True)
        answers, answers_worker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(answers_worker, True)
        phase_page = os.memfd_create("phase")
        os.ftruncate(phase_page, mmap.PAGESIZE)
        outcome = Outcome(launched_ns=now_ns())
        try:
            start = self._spawn if spawn or self._isolate == "spawn" else self._fork
            try:
                worker = start(task, answers_worker, phase_page)
            except _ForkserverLost:
                outcome.launched_ns = now_ns()
                worker = start(task, answers_worker, phase_page)
            os.close(answers_worker)
            answers_worker = -1
            with mmap.mmap(phase_page, mmap.PAGESIZE) as phase:
                killed_for = _watch(worker, answers, phase, limits, outcome, monitor)
            status = worker.wait()
            outcome.ended_ns = now_ns()
        except BaseException:
            # The forkserver may still send messages about this task, so use a new forkserver for the next task.
            self.close()
            raise
        finally:
            for descriptor in (answers, answers_worker, phase_page):
                if descriptor >= 0:
                    os.close(descriptor)
        outcome.printed = _tail(task.printed)
        outcome.failure = _failure(outcome, killed_for, status, limits)
        return outcome

    def close(self) -> None:
        """End the forkserver."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    # --- two ways to start a fresh process ---

    def _fork(self, task: AnyTask, answers: int, phase_page: int) -> _Worker:
        control = self._forkserver()
        try:
            socket.send_fds(control, [encode(task)], [answers, phase_page])
            started: Started = decode(control.recv(MESSAGE_BYTES), Started)
        except (ValueError, OSError):
            self.close()
            raise _ForkserverLost from None
        return _Forked(started.process_id, control, self)

    def _forkserver(self) -> socket.socket:
        if self._control is None and not self._started():
            # A library ended the process while loading. Without preloading, this affects only the variants of that
            # library.
            self.preload_failures["all"] = "loading the libraries ended the forkserver; each worker loads its own"
            self._preload = []
            if not self._started():
                raise BenchError(
                    "The forkserver cannot start.",
                    "Try `isolate='spawn'`.",
                    parameter="isolate",
                    given="forkserver",
                    allowed=("spawn",),
                )
        assert self._control is not None
        return self._control

    def _started(self) -> bool:
        """Start a forkserver, which loads the libraries. Return False if the forkserver ended while loading the
        libraries."""
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
        self._server = self._popen("bench_runner.run.forkserver", [theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._control = ours
        try:
            ours.send(encode(Preload(tuple(self._preload), self._strings)))
            preloaded: Preloaded = decode(ours.recv(MESSAGE_BYTES), Preloaded)
        except (ValueError, OSError):
            return False
        self.preload_failures |= preloaded.failures
        return True

    def _spawn(self, task: AnyTask, answers: int, phase_page: int) -> _Worker:
        process = self._popen("bench_runner.worker.jobs", [answers, phase_page], stdin=subprocess.PIPE)
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(encode(task))
            process.stdin.close()
        return _Spawned(process)

    def _popen(self, module: str, descriptors: list[int], stdin: int) -> subprocess.Popen[bytes]:
        environment = finding_project(dict(os.environ) | (ONE_THREAD if self._threads == 1 else {}))
        # With -P, the current folder does not precede the project in the module search path.
        command = [sys.executable, "-P", "-m", module, str(os.getpid()), *map(str, descriptors)]
        if self._threads == 1:
            cores = sorted(os.sched_getaffinity(0))
            # Set the affinity here, where the child inherits it. Few calls are safe between fork and exec.
            os.sched_setaffinity(0, {cores[-1]})
        try:
            # Ctrl-C reaches the whole foreground process group. In a separate session the child does not receive it.
            # Libraries may print while loading, which must not appear in the run's output.
            return subprocess.Popen(
                command,
                env=environment,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=descriptors,
                start_new_session=True,
            )
        finally:
            if self._threads == 1:
                os.sched_setaffinity(0, set(cores))


class _ForkserverLost(Exception):
    """The forkserver has died since the last request."""


class _Worker(Protocol):
    pid: int

    def wait(self) -> int:
        """Wait for the worker's end and return its wait status."""


class _Forked:
    def __init__(self, pid: int, control: socket.socket, launcher: Launcher) -> None:
        self.pid, self._control, self._launcher = pid, control, launcher

    def wait(self) -> int:
        try:
            ended: Ended = decode(self._control.recv(MESSAGE_BYTES), Ended)
        except (ValueError, OSError):
            self._launcher.close()
            return signal.SIGKILL
        return ended.status


class _Spawned:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid, self._process = process.pid, process

    def wait(self) -> int:
        code = self._process.wait()
        return -code if code < 0 else code << 8


def _watch(
    worker: _Worker, answers: int, phase: mmap.mmap, limits: Limits, outcome: Outcome, monitor: ServiceMonitor | None
) -> str:
    """Follow the worker to its end. Return 'timeout' or 'memory' if the launcher killed the worker for that reason,
    else ''."""
    try:
        handle = os.pidfd_open(worker.pid)
    except ProcessLookupError:
        # The worker has ended already, but its answers are in the pipe.
        _drain(answers, bytearray(), outcome)
        return ""
    received = bytearray()
    killed_for = ""
    reader = linux.MemoryReader(worker.pid)
    tree = ProcessTree(worker.pid)
    poll = select.poll()
    poll.register(answers, select.POLLIN)
    poll.register(handle, select.POLLIN)
    current_phase, phase_since = phase[0], now_ns()
    before_bytes: dict[int, int] = {}
    try:
        alive = True
        while alive:
            ready = dict(poll.poll(POLL_MS))
            tree.look()
            _observe(tree, monitor, phase)
            before = phase[0]
            level = reader.read()
            if level is not None:
                if tree.members:
                    level = total((level, tree.memory()))
                if before == PHASE_CLOCK == phase[0]:
                    outcome.peak_private_bytes = max(outcome.peak_private_bytes, level.private_bytes)
                    if tree.members:
                        highest = max(outcome.peak_tree_resident_bytes, level.resident_bytes)
                        outcome.peak_tree_resident_bytes = highest
                        grown = (own - before_bytes.get(process, 0) for process, own in tree.private_bytes.items())
                        outcome.peak_of_one_bytes = max(outcome.peak_of_one_bytes, *grown)
                elif phase[0] != PHASE_CLOCK:
                    before_bytes = tree.private_bytes
                services_bytes = monitor.private_bytes() if monitor is not None else 0
                if level.private_bytes + services_bytes > limits.memory_bytes:
                    killed_for = killed_for or "memory"
            if phase[0] != current_phase:
                current_phase, phase_since = phase[0], now_ns()
            if now_ns() - phase_since > limits.timeout_s * 1e9:
                killed_for = killed_for or "timeout"
            if killed_for:
                _kill(handle)
            if answers in ready and not _drain(answers, received, outcome):
                poll.unregister(answers)
            alive = handle not in ready
        _drain(answers, received, outcome)
    finally:
        # On Ctrl-C too, neither the worker nor its child processes may outlive this call.
        _kill(handle)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)
        select.select([handle], [], [], KILL_LIMIT_S)
        os.close(handle)
        reader.close()
        tree.close()
    return killed_for


def _observe(tree: ProcessTree, monitor: ServiceMonitor | None, phase: mmap.mmap) -> None:
    """Read the memory of child processes, and the figures of services, before and after the measured time. A worker
    that has child processes or uses services waits meanwhile."""
    if phase[0] == PHASE_READY and phase[1] != PHASE_READY:
        tree.read_shared_again()
        if monitor is not None:
            monitor.begin()
        phase[1] = PHASE_READY
    elif phase[0] == PHASE_AFTER and phase[1] == PHASE_READY:
        if monitor is not None:
            monitor.end()
        phase[1] = PHASE_AFTER


def _kill(handle: int) -> None:
    """Kill the process. It may have ended already."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _drain(answers: int, received: bytearray, outcome: Outcome) -> bool:
    """Read all available messages from the pipe. Return False if the worker has closed the pipe."""
    while True:
        try:
            piece = os.read(answers, 1 << 16)
        except BlockingIOError:
            return True
        if not piece:
            return False
        received += piece
        while (end := received.find(b"\n")) >= 0:
            outcome.answers.append(decode(received[:end], Answer))
            del received[: end + 1]


def _tail(path: Path, limit: int = 2000) -> str:
    try:
        return path.read_bytes()[-limit:].decode(errors="replace").strip()
    except FileNotFoundError:
        return ""


def _failure(outcome: Outcome, killed_for: str, status: int, limits: Limits) -> Failure | None:
    if killed_for == "timeout":
        reason = f"took longer than {limits.timeout_s:g} s; --timeout allows more"
        return Failure(kind="timeout", reason=reason)
    if killed_for == "memory":
        reason = f"needed more than {limits.memory_bytes / 1e9:.1f} GB of memory, the limit on this machine"
        return Failure(kind="memory", reason=reason)
    for failed in outcome.answers_of(Failed):
        return failed.failure
    if outcome.answers and isinstance(outcome.answers[-1], Done):
        return None
    last_words = f"; it printed: {outcome.printed.splitlines()[-1][:200]}" if outcome.printed else ""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        hint = " (most likely the system ran out of memory)" if name == "SIGKILL" else ""
        return Failure(kind="crash", reason=f"the worker was killed by {name}{hint}{last_words}")
    code = os.WEXITSTATUS(status)
    return Failure(kind="crash", reason=f"the worker ended without an answer (exit code {code}){last_words}")
