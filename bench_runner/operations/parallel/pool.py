"""A pool of processes of dask.distributed, each with one thread, that ends with the process that started it.

The scheduler is a thread of this process. The processes are forked before this process has any thread, so that they
have the libraries loaded, and import time counts nowhere. They have no nanny, which would start another process in
place of one that has ended, so that its sample would be wrong instead of failed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait as futures_done
from dataclasses import dataclass
from typing import Any

from adapters.predicate import Predicate
from bench_runner.operations.parallel.parts import Part

SETTINGS: Mapping[str, Any] = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
    # A process that ends fails its sample at once.
    "distributed.scheduler.allowed-failures": 0,
    "dataframe.convert-string": False,
}
"""dask's settings. Nothing is written to disk or paused to save memory."""
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "POLARS_MAX_THREADS",
        "RAYON_NUM_THREADS",
        "TOKIO_WORKER_THREADS",
        "LANCE_CPU_THREADS",
        "LANCE_IO_THREADS",
    ),
    "1",
)
"""Variables of libraries that start their threads at the first call."""
START_LIMIT_S = 60.0
"""Longest wait for the processes of a pool."""
LOOK_S = 1.0
"""Interval at which the pool is searched for ended processes while calls run."""


class PoolError(Exception):
    """A process of the pool ended, or did not start."""


@dataclass
class _Process:
    """A forked process, which waits for the address of the scheduler."""

    pid: int
    told: int
    status: int | None = None

    def start(self, address: str) -> None:
        os.write(self.told, address.encode())
        os.close(self.told)

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
    """Processes that each hold one partition. Partition k belongs to process k."""

    def __init__(self, size: int, *, spare: bool = False) -> None:
        """Start the processes and wait until all are ready. With `spare`, `restart` can be called once."""
        import dask.config
        import distributed

        self._distributed = distributed
        dask.config.set(SETTINGS)
        self._size = size
        self._spare = [_forked(number) for number in range(size * 2 if spare else size)]
        self._processes: list[_Process] = []
        self._addresses: list[str] = []
        self.parts: Sequence[Part] = ()
        """The partitions, by number."""
        self.whole: Any = None
        """The whole table in this process, for an engine that sends the partitions itself."""
        self.asked: Predicate | None = None
        """The condition of a scan."""
        _silence()
        self._cluster = distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=None
        )
        # Results come from the processes directly, not through the scheduler.
        self._client = distributed.Client(self._cluster, direct_to_workers=True)
        self._start()

    def _start(self) -> None:
        self._processes = [self._spare.pop(0) for _ in range(self._size)]
        for process in self._processes:
            process.start(self._cluster.scheduler_address)
        try:
            self._client.wait_for_workers(self._size, timeout=START_LIMIT_S)
        except TimeoutError:
            self._refuse_ended()
            raise PoolError(f"{self._size} processes did not start within {START_LIMIT_S:g} s") from None
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        by_pid = {about["name"]: address for address, about in known.items()}
        self._addresses = [by_pid[process.pid] for process in self._processes]

    def restart(self) -> None:
        """Replace all processes by new ones, which hold nothing and have called no library."""
        self._end_processes()
        self._start()

    def each(self, work: Callable[..., Any], *given: Any, shift: int = 0) -> list[Any]:
        """Call `work(part, *given)` for all partitions at once. Return the results by partition.

        With `shift`, each process works on the partition of a neighbour. Raises the error of a call, or PoolError.
        """
        return self._results([self._submitted(part.number + shift, work, part, *given) for part in self.parts])

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """Call `work(*given)` in every process. Return the results by process."""
        return self._results([self._submitted(number, work, *given) for number in range(len(self._processes))])

    def _submitted(self, number: int, work: Callable[..., Any], *given: Any) -> Any:
        address = self._addresses[number % self._size]
        return self._client.submit(work, *given, workers=[address], pure=False, retries=0)

    def waited(self, pending: Any) -> Any:
        """Wait until dask has computed what is pending, and return it. Raises PoolError."""
        while True:
            try:
                self._distributed.wait(pending, timeout=LOOK_S)
                return pending
            except TimeoutError:
                self._refuse_ended()

    def _results(self, futures: Sequence[Any]) -> list[Any]:
        if not futures:
            return []
        # dask waits forever for a result that was lost with its process.
        found = asyncio.run_coroutine_threadsafe(
            self._client.gather(list(futures), asynchronous=True), self._client.loop.asyncio_loop
        )
        try:
            while not found.done():
                futures_done([found], timeout=LOOK_S)
                self._refuse_ended()
            return list(found.result())
        except self._distributed.KilledWorker:
            self._refuse_ended()
            raise

    def _refuse_ended(self) -> None:
        for number, process in enumerate(self._processes, 1):
            if process.has_ended():
                code = os.waitstatus_to_exitcode(process.status or 0)
                raise PoolError(f"process {number} of {self._size} ended while it was needed (exit code {code})")

    def close(self) -> None:
        """End the processes and the scheduler."""
        self._end_processes()
        self._client.close()
        self._cluster.close()

    def _end_processes(self) -> None:
        for process in self._processes:
            process.end()
        self._processes = []


def _forked(number: int) -> _Process:
    """Fork a process that becomes a worker of dask when it gets an address."""
    told, tell = os.pipe()
    with warnings.catch_warnings():
        # Lance and polars warn at each fork, because their threads would not survive. They have none yet.
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        try:
            _become_worker(told)
        finally:
            os._exit(1)
    os.close(told)
    return _Process(pid, tell)


def _become_worker(told: int) -> None:
    # The launcher's pipe, and those of other processes, would stay open as long as this process lives.
    os.closerange(3, told)
    os.closerange(told + 1, 1 << 12)
    address = os.read(told, 1 << 10).decode()
    os.close(told)
    if not address:
        os._exit(0)
    os.environ.update(ONE_THREAD)
    _silence()
    # A collection of all garbage would write to objects that this process shares with the one that forked it, and so
    # copy their memory.
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


def _silence() -> None:
    """Let dask print nothing. Errors reach the caller; the rest is where each process listens, and how it ends."""
    for name in [name for name in logging.Logger.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
