"""Stand-in for torch's DataLoader: persistent spawned processes receive indices from the sampler. Batches come in its
order."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

_kept: Any = None


def _keep(dataset: Any, collate: Callable[[Any], Any]) -> None:
    global _kept
    _kept = (dataset, collate)


def _value(index: Any) -> Any:
    dataset, collate = _kept
    return collate(dataset[index])


class DataLoader:
    def __init__(
        self,
        dataset: Any,
        *,
        batch_size: None,
        sampler: Any,
        num_workers: int,
        collate_fn: Callable[[Any], Any],
        multiprocessing_context: str,
        persistent_workers: bool,
    ) -> None:
        assert batch_size is None
        assert persistent_workers
        self._sampler = sampler
        context = multiprocessing.get_context(multiprocessing_context)
        self._pool = context.Pool(num_workers, _keep, (dataset, collate_fn))

    def __iter__(self) -> Iterator[Any]:
        return self._pool.imap(_value, self._sampler)

    def __del__(self) -> None:
        self._pool.terminate()
