"""Readers of the user's files in a thread of this process, because starting a process takes 0.3 s."""

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


def read_here(patch: pytest.MonkeyPatch) -> None:
    """Run readers in this process, except for code by which a test has replaced a reader."""
    real = import_worker._process

    def process(command: Sequence[str], request: IO[bytes], said: IO[bytes], page: int, memory_bytes: int) -> object:
        if command[-2] != "-m":
            return real(command, request, said, page, memory_bytes)
        return _Here(command, request, page, memory_bytes)

    patch.setattr(import_worker, "_process", process)
