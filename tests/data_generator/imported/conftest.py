"""Run the readers of the user's files in a thread of this process, because starting a process takes 0.3 s.

Tests that request `own_process` start real processes, to check their confinement and that they end with their parent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import IO

import pytest

from data_generator.imported import import_worker
from data_generator.imported.import_process import Progress, answer


class _Here:
    """Replacement for the process started with this command."""

    def __init__(self, command: Sequence[str], request: IO[bytes], page: int, memory_bytes: int) -> None:
        reader, task, progress = import_module(command[-1]).READER, json.load(request), Progress(page)
        receiving, sending = os.pipe()
        self.stdout = os.fdopen(receiving, "rb", buffering=0)

        def answered() -> None:
            with suppress(BrokenPipeError), os.fdopen(sending, "wb") as out:
                answer(out, reader, task, progress, memory_bytes)

        self._thread = Thread(target=answered)
        self._thread.start()

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Close the pipe, so that the reader's next write fails."""
        self.stdout.close()
        self._thread.join()


@pytest.fixture
def own_process() -> None:
    """Run the readers in processes, as the product does."""


@pytest.fixture(autouse=True)
def _readers_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "own_process" in request.fixturenames:
        return
    real = import_worker._process

    def process(command: Sequence[str], request: IO[bytes], said: IO[bytes], page: int, memory_bytes: int) -> object:
        # A test may have replaced the module with code.
        if command[-2] != "-m":
            return real(command, request, said, page, memory_bytes)
        return _Here(command, request, page, memory_bytes)

    monkeypatch.setattr(import_worker, "_process", process)
