"""If a library cannot store the data, its error is a refusal. Errors of a broken disk or of our code are faults."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from typing import Any

import pytest

from adapters.errors import RefusedData
from bench_runner.refusals import REFUSING, refusal
from formats.csv import CsvPandas


def _raised(call: Callable[[], object]) -> Exception:
    """Return the exception to which a save converts an error of `call`."""
    try:
        call()
    except REFUSING as error:
        try:
            return refusal(error, CsvPandas())
        except Exception as fault:
            return fault
    raise AssertionError("nothing was raised")


def _library_raises() -> None:
    json.loads("nothing")


def _from(error: BaseException) -> Callable[[], None]:
    """Return a library's ValueError caused by `error`."""

    def call() -> None:
        try:
            _library_raises()
        except ValueError as found:
            found.__cause__ = error
            raise

    return call


def _saying(text: str) -> Callable[[], None]:
    """Return a library's ValueError with this message."""

    def call() -> None:
        try:
            _library_raises()
        except ValueError as found:
            found.args = (text,)
            raise

    return call


def _not_taken() -> None:
    raise TypeError("no objects")


@pytest.mark.parametrize("call", [_library_raises, _not_taken, _from(FileExistsError(errno.EEXIST, "is there"))])
def test_a_library_that_cannot_hold_the_data_refuses_it(call: Callable[[], None]) -> None:
    refused = _raised(call)
    assert isinstance(refused, RefusedData)
    assert str(refused).startswith("the call does not take this data (")


@pytest.mark.parametrize(
    "call",
    [
        _from(OSError(errno.EIO, "Input/output error")),
        _from(OSError(errno.ENOSPC, "no room")),
        _from(MemoryError()),
        _saying("IOError: [Errno 28] No space left on device"),
        _saying("Generic LocalFileSystem error: Permission denied (os error 13)"),
        _saying("file write failed: errno = 5"),
    ],
)
def test_what_the_system_refuses_is_a_fault(call: Callable[[], None]) -> None:
    assert not isinstance(_raised(call), RefusedData)


@pytest.mark.parametrize("module", ["formats.shared.rows", "bench_runner.operations.targets", CsvPandas.__module__])
def test_an_error_of_our_own_code_is_a_fault(module: str) -> None:
    space: dict[str, Any] = {"__name__": module}
    exec("def ours():\n    raise ValueError('a fault')", space)
    assert not isinstance(_raised(space["ours"]), RefusedData)


def test_a_failed_disk_is_no_kind_of_error_that_may_be_a_refusal() -> None:
    assert not any(issubclass(OSError, kind) or issubclass(MemoryError, kind) for kind in REFUSING)
