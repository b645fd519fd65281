"""A pool of worker processes of dask.distributed, each with one thread. The pool ends with the process that started it.

dask's scheduler is a thread of this process. The worker processes are forked before this process has any thread. They
have the libraries loaded from the start, so that no sample includes import time. The pool does not use dask's nanny,
because the nanny replaces a worker process that has ended. The sample would then continue with wrong results instead of
failing.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait as futures_done
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench_runner.clock import now_ns, pause
from bench_runner.operations.parallel.parts import Part
from bench_runner.thread_variables import ONE_THREAD

SETTINGS: Mapping[str, Any] = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
    # If a process ends, its sample fails at once.
    "distributed.scheduler.allowed-failures": 0,
    "dataframe.convert-string": False,
}
"""Settings of dask. With these settings dask does not pause processes or write data to disk to save memory."""
START_LIMIT_S = 60.0
"""Longest wait, in seconds, for the start of a pool's processes."""
START_LOOK_S = 0.005
"""Interval, in seconds, at which the scheduler is asked whether the processes have started."""
LOOK_S = 1.0
"""Interval in seconds between checks, while calls run, whether a process has ended."""


class PoolError(Exception):
    """Raised if a process of the pool has ended or did not start."""


@dataclass
class _Process:
    """A forked process, which waits until it receives the scheduler's address through a pipe."""

    pid: int
    address_pipe: int
    status: int | None = None

    def start(self, address: str) -> None:
        os.write(self.address_pipe, address.encode())
        os.close(self.address_pipe)

    def has_ended(self) -> bool:
        if self.status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if found else None
        return self.status is not None

    def end(self) -> None:
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            _, self.status = os.waitpid(self.pid, 0)


class Pool:
    """Worker processes. Process k keeps partition k of the table in memory."""

    def __init__(self, size: int, *, spare: bool = False) -> None:
        """Start `size` processes and wait until all of them are ready. With `spare`, fork twice as many processes, so
        that `restart` can be called once."""
        import dask.config
        import distributed

        self._distributed = distributed
        dask.config.set(SETTINGS)
        self._size = size
        self._spare = [_forked() for _ in range(size * 2 if spare else size)]
        self._processes: list[_Process] = []
        self._addresses: list[str] = []
        self.parts: Sequence[Part] = ()
        """The partitions, by number."""
        self.whole: Any = None
        """The whole table in this process, for an engine that sends the partitions to the worker processes itself."""
        self.asked: Any = None
        """The condition of a scan, or None for other operations."""
        self.has_worked = False
        """Whether the processes have done the operation on few rows."""
        silence_dask()
        self._cluster = distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0"
        )
        # Results come from the processes directly, not through the scheduler.
        self._client = distributed.Client(self._cluster, direct_to_workers=True)
        self._start()

    def _start(self) -> None:
        self._processes = [self._spare.pop(0) for _ in range(self._size)]
        for process in self._processes:
            process.start(self._cluster.scheduler_address)
        by_pid: dict[int, str] = {}
        began_ns = now_ns()
        # After a restart, the scheduler may still list processes that have ended, so wait for these by name.
        while not by_pid.keys() >= {process.pid for process in self._processes}:
            if now_ns() - began_ns > START_LIMIT_S * 1e9:
                raise PoolError(f"{self._size} processes did not start within {START_LIMIT_S:g} s")
            pause(START_LOOK_S)
            self._refuse_ended()
            known = self._client.scheduler_info(n_workers=-1)["workers"]
            by_pid = {about["name"]: address for address, about in known.items()}
        self._addresses = [by_pid[process.pid] for process in self._processes]

    def restart(self) -> None:
        """End all processes and start the spare processes, which have no data and have not called any library yet."""
        self.end_processes()
        self._start()

    def each(self, work: Callable[..., Any], *given: Any, shift: int = 0) -> list[Any]:
        """Call `work(part, *given)` for all partitions at the same time. Return a list of the results, in the order of
        the partitions.

        With `shift`, process k + shift works on partition k. Raises the error of a call, or PoolError.
        """
        return self._results([self._submitted(part.number + shift, work, part, *given) for part in self.parts])

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """Call `work(*given)` in every process. Return a list of the results, in the order of the processes."""
        return self._results([self._submitted(number, work, *given) for number in range(len(self._processes))])

    def _submitted(self, number: int, work: Callable[..., Any], *given: Any) -> Any:
        address = self._addresses[number % self._size]
        return self._client.submit(work, *given, workers=[address], pure=False, retries=0)

    def waited(self, pending: Any) -> Any:
        """Wait until dask has computed `pending`, for example a persisted DataFrame, and return it. Raises PoolError if
        a process ends."""
        while True:
            try:
                self._distributed.wait(pending, timeout=LOOK_S)
            except TimeoutError:
                self._refuse_ended()
            else:
                self._refuse_ended()
                return pending

    def _results(self, futures: Sequence[Any]) -> list[Any]:
        if not futures:
            return []
        # dask waits forever for a result that was lost because its process ended, so look for ended processes here.
        loop: Any = self._client.loop
        found = asyncio.run_coroutine_threadsafe(
            self._client.gather(list(futures), asynchronous=True), loop.asyncio_loop
        )
        with self.complete():
            while not found.done():
                futures_done([found], timeout=LOOK_S)
                self._refuse_ended()
            return list(found.result())

    @contextmanager
    def complete(self) -> Iterator[None]:
        """Raise PoolError if a process ends within the block. Use this context manager around work that dask
        distributes itself. If a process ends, dask would let the other processes do the work, without an error."""
        try:
            yield
        except self._distributed.KilledWorker:
            self._refuse_ended()
            raise
        self._refuse_ended()

    def _refuse_ended(self) -> None:
        for number, process in enumerate(self._processes, 1):
            if process.has_ended():
                code = os.waitstatus_to_exitcode(process.status or 0)
                raise PoolError(f"process {number} of {self._size} ended while it was needed (exit code {code})")

    def close(self) -> None:
        """End the processes and the scheduler."""
        self.end_processes()
        self._client.close()
        self._cluster.close()

    def end_processes(self) -> None:
        """End the processes that work now. If spare processes were forked in advance, `restart` can
        start them once."""
        for process in self._processes:
            process.end()
        self._processes = []


def _forked() -> _Process:
    """Fork a process that becomes a worker of dask when it receives the scheduler's address. Return its handle."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Lance and polars warn at each fork, because a fork does not copy their threads. They have no threads yet.
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        try:
            _become_worker(reader)
        finally:
            os._exit(1)
    os.close(reader)
    return _Process(pid, writer)


def _become_worker(address_pipe: int) -> None:
    # Close the pipes to the launcher and to other processes, which would otherwise stay open while this process lives.
    os.closerange(3, address_pipe)
    os.closerange(address_pipe + 1, 1 << 12)
    # prctl(2) with PR_SET_PDEATHSIG ends this process with its parent, even if the parent is killed.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL.value)
    address = os.read(address_pipe, 1 << 10).decode()
    os.close(address_pipe)
    if not address:
        os._exit(0)
    os.environ.update(ONE_THREAD)
    silence_dask()
    # The garbage collector would write to objects whose memory this process shares with its parent, and each write
    # would copy a page.
    gc.freeze()
    asyncio.run(_worked(address))
    os._exit(0)


async def _worked(address: str) -> None:
    import distributed
    import pyarrow as pa

    pa.set_cpu_count(1)
    folder = os.environ.get("TMPDIR")
    async with distributed.Worker(
        address, nthreads=1, name=os.getpid(), memory_limit=0, dashboard=False, local_directory=folder
    ) as worker:
        await worker.finished()


def silence_dask() -> None:
    """Stop dask from printing log messages. These messages only report at which address a process listens and that a
    process ends. Errors are raised to the caller."""
    for name in [name for name in logging.Logger.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
