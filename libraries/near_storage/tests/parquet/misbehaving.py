"""What a child process may do with a file instead of reading it.

Avoids slow imports, because each child repeats them.
"""

import os
import signal
import time
from typing import BinaryIO


def echoes(file: BinaryIO) -> bytes:
    return file.read(4) + bytes(1 << 20)


def raises(file: BinaryIO) -> bytes:
    raise ZeroDivisionError("secret")


def hangs(file: BinaryIO) -> bytes:
    time.sleep(1000)
    return b""


def spins(file: BinaryIO) -> bytes:
    while True:
        pass


def is_killed(file: BinaryIO) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def leaves(file: BinaryIO) -> bytes:
    os._exit(0)


def leaves_badly(file: BinaryIO) -> bytes:
    os._exit(7)


def wants_memory(file: BinaryIO) -> bytes:
    """Allocate more than is allowed here, but less than a machine may have."""
    return bytes(2 << 30)


def floods(file: BinaryIO) -> bytes:
    """Write directly into the file that the parent made, past the check of the answer's length."""
    while True:
        os.write(1, bytes(1 << 20))


def answers_too_much(file: BinaryIO) -> bytes:
    return bytes(2 << 20)


def recurses(file: BinaryIO) -> bytes:
    return recurses(file)
