"""Batches loaded by two processes through torch's DataLoader, the usual way to use more than one core.

The processes are spawned, because a forked process may hang if a library such as Lance has started threads. Each
process opens the stored copy itself and sends its results through a pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench_runner import registries
from bench_runner.operations import targets
from bench_runner.operations.operation import OperationContext

WORKERS = 2
"""Number of loading processes if the parameter `workers` is not 0."""


def load() -> None:
    """Import torch and the modules that its loader needs, before timing starts."""
    import torch.utils.data  # noqa: F401


@dataclass
class Requests:
    """A map-style torch data set. An index of this data set is an array of row numbers. The item at an index is a table
    or list of images with these rows. Each loading process calls `open_source` once and keeps the opened stored
    copy."""

    open_source: Callable[[OperationContext, Path], Any]
    variant: str
    threads: int | None
    target: targets.Target
    dataset: Path
    digest: str
    rows: int
    location: Path

    def __getitem__(self, numbers: np.ndarray) -> Any:
        opened = self.__dict__.get("opened")
        if opened is None:
            adapter: Any = registries.build(self.variant, threads=self.threads)
            adapter.load_library()
            stage = OperationContext(adapter, self.target, self.dataset, self.digest, self.rows)
            opened = self.__dict__["opened"] = (stage, self.open_source(stage, self.location))
        stage, source = opened
        (piece,) = source.pieces(numbers)
        return piece if source.is_target else targets.from_native(piece, self.target, stage.adapter.native_read)


class _Order:
    """The sampler that gives the loader its indices in each epoch."""

    requests: tuple[np.ndarray, ...] = ()

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.requests)

    def __len__(self) -> int:
        return len(self.requests)


class Loader:
    """torch's DataLoader over the requests, with processes that persist between epochs."""

    def __init__(self, requests: Requests) -> None:
        from torch.utils.data import DataLoader

        self._order = _Order()
        self._loader: Any = DataLoader(
            requests,
            batch_size=None,
            sampler=self._order,
            num_workers=WORKERS,
            collate_fn=as_it_is,
            multiprocessing_context="spawn",
            persistent_workers=True,
        )

    def pieces(self, requests: tuple[np.ndarray, ...]) -> Iterator[Any]:
        """Yield the results of the processes, in the order of the requests."""
        self._order.requests = requests
        return iter(self._loader)

    def close(self) -> None:
        """End the processes by dropping the last reference to the loader."""
        self._loader = None


def as_it_is(piece: Any) -> Any:
    """Return the piece unchanged. Replaces torch's collating, which would convert arrays to tensors."""
    return piece
