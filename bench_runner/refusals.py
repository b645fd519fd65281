"""Which errors of a save say that the data cannot be held, so that the outcome is 'refused' and not a failure.

A full disk, a permission and an error of our own code stay failures, whatever their type: a refusal costs no exit code,
so nothing that is broken may pass for one.
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
"""By these a call refuses a kind of data, whoever raises them."""
NOT_HELD = (ValueError, OverflowError)
"""By these a library refuses values. In our own code they are faults."""
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
"""Words of the system's errors, which some libraries pass on as a ValueError."""


def refusal(error: Exception, adapter: Adapter, who: str = "the call", next_step: str = "") -> RefusedData:
    """Return what to raise in place of an error of a save, or of the conversion before it.

    `error` is one of REFUSING, just caught; `who` does not take the data, and `next_step` says what else to do.
    Raises `error` itself where it is a fault.
    """
    if _is_of_the_system(error) or (not isinstance(error, NOT_TAKEN) and _is_raised_by_us(error, adapter)):
        raise error
    reason = f"{who} does not take this data ({type(error).__name__}: {in_one_line(error)})"
    return RefusedData(f"{reason}{next_step}")


def _is_of_the_system(error: BaseException) -> bool:
    """Whether a disk, a permission or a lack of memory is behind it."""
    return _SIGNS.search(str(error)) is not None or any(
        isinstance(each, MemoryError) or (isinstance(each, OSError) and each.errno in _OF_THE_SYSTEM)
        for each in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what it was raised from."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__


def _is_raised_by_us(error: BaseException, adapter: Adapter) -> bool:
    """Whether the innermost Python code is ours or the adapter's, and not a library's.

    A library in C that an adapter calls without Python code between them counts as the adapter: it has to name the
    library's refusals by RefusedData.
    """
    frame: FrameType | None = None
    traceback = error.__traceback__
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _OURS or module in {each.__module__ for each in type(adapter).__mro__}
