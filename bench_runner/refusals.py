"""Decide which errors of a save mean that a format cannot store the data. The result is then 'refused', not a failure.

A full disk, missing permissions and errors in the code of this project remain failures, whatever their type. Refusals
do not affect the exit code, so a defect must never count as a refusal.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from types import FrameType

from adapters.contract import Adapter
from adapters.errors import RefusedData
from bench_runner.errors import in_one_line

NOT_TAKEN = (NotImplementedError, TypeError)
"""Types of errors with which a library, or code of this project, reports that a kind of data is not supported."""
NOT_HELD = (ValueError, OverflowError)
"""Types of errors with which a library refuses some values. If code of this project raises such an error, the error is
a fault, not a refusal."""
REFUSING = (*NOT_TAKEN, *NOT_HELD)

_OURS = frozenset(
    ("adapters", "bench_runner", "data_generator", "document_stores", "formats", "image_storages", "libraries")
)
_OF_THE_SYSTEM = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOENT, errno.ENODEV, errno.ESTALE),
)
_SIGNS = re.compile(
    "|".join(
        [r"\berrno\b", r"\bos error \d", "StorageFull", *(re.escape(os.strerror(code)) for code in _OF_THE_SYSTEM)]
    ),
    re.IGNORECASE,
)
"""Matches messages of operating-system errors, which some libraries raise as a ValueError."""


def refusal(error: Exception, adapter: Adapter, who: str = "the call", next_step: str = "") -> RefusedData:
    """Return the refusal that replaces an error of a save, or of the conversion before the save.

    `error` was just caught, and its type is in REFUSING. `who` names what refuses the data, and `next_step` says what
    the user can do instead. If `error` is not a refusal but a fault, raises `error` itself.
    """
    if _is_of_the_system(error) or (not isinstance(error, NOT_TAKEN) and _is_raised_by_us(error, adapter)):
        raise error
    reason = f"{who} does not take this data ({type(error).__name__}: {in_one_line(error)})"
    return RefusedData(f"{reason}{next_step}")


def _is_of_the_system(error: BaseException) -> bool:
    """Return whether the error was caused by a disk, permissions or a lack of memory."""
    return _SIGNS.search(str(error)) is not None or any(
        isinstance(each, MemoryError) or (isinstance(each, OSError) and each.errno in _OF_THE_SYSTEM)
        for each in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__


def _is_raised_by_us(error: BaseException, adapter: Adapter) -> bool:
    """Return whether the Python code that raised the error belongs to this project or to the adapter, and not to a
    library. If an adapter calls a C library directly, the library's errors count as errors of the adapter. Such an
    adapter must raise RefusedData itself."""
    frame: FrameType | None = None
    traceback = error.__traceback__
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _OURS or module in {each.__module__ for each in type(adapter).__mro__}
