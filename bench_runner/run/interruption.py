"""Handle signals so that a run ends in an orderly way and keeps all samples."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(KeyboardInterrupt):
    """A signal asked the run to end."""


class StopRequest:
    """The signal that asked the run to end, if there was one."""

    def __init__(self) -> None:
        self.signal_name = ""

    def check(self) -> None:
        """Raise Stopped if a signal has arrived. This check is needed because Python drops an exception that a signal
        handler raises during a destructor or a callback."""
        if self.signal_name:
            raise Stopped(self.signal_name)


@contextmanager
def stopped_by_signals() -> Iterator[StopRequest]:
    """Raise Stopped on Ctrl-C, SIGTERM and a closed terminal."""
    request = StopRequest()

    def stop(number: int, frame: object) -> None:
        request.signal_name = signal.Signals(number).name
        request.check()

    # nohup makes a process ignore SIGHUP. Keep ignoring it.
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in asked if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
