"""Run work on untrusted bytes in a separate process with limits of time and memory.

The child is a fresh interpreter. It gets the open file as standard input, and writes its answer to a file that the
parent created. Nothing is pickled, and the child cannot exceed the limit on the file's size. If the child raises, dies,
hangs or exceeds a limit, the parent raises FooterError. Needs a system with `resource` (Linux, macOS).
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from typing import BinaryIO

import msgspec

from libraries.near_storage.errors import FooterError
from libraries.near_storage.parquet.footer import Footer, read_footer

TIMEOUT_S = 60.0
MEMORY_BYTES = 1 << 30
"""Limit of the child's address space. The interpreter takes about 40 MB of it."""
ANSWER_BYTES = 512 << 20

_ANSWERED, _REFUSED, _FAILED = 73, 74, 75
"""Exit codes of the child. 0 is not used, because a child that ends before it has answered could exit with 0."""
_START = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import child; child()"


def read_footer_apart(
    path: str | os.PathLike[str], timeout_s: float = TIMEOUT_S, memory_bytes: int = MEMORY_BYTES
) -> Footer:
    """Read the footer of a Parquet file in a child process. Raises OSError if the file cannot be opened, else
    FooterError."""
    with open(path, "rb") as file:
        answer = apart(f"{__name__}:encoded_footer", file, timeout_s, memory_bytes)
    return msgspec.msgpack.decode(answer, type=Footer)


def encoded_footer(file: BinaryIO) -> bytes:
    """Return the footer of an open file as msgpack; runs in the child of `read_footer_apart`."""
    return msgspec.msgpack.encode(read_footer(file))


def apart(
    function: str,
    file: BinaryIO,
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int = MEMORY_BYTES,
    answer_bytes: int = ANSWER_BYTES,
) -> bytes:
    """Run a function of this project, given as 'module:name', on the open file in a child process. Return its answer.

    The function takes the file (binary, seekable) and returns bytes. Raises FooterError with the function's message if
    the function raises FooterError. Also raises FooterError if the function raises another exception, if the child
    process dies or exceeds a limit, or if the answer is too long.
    """
    limits = [math.ceil(timeout_s), memory_bytes, answer_bytes]
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, json.dumps(sys.path), function, json.dumps(limits)],
            stdin=file,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise FooterError(
                f"Parquet file: reading the footer took more than {timeout_s:g} s; the file is refused"
            ) from None
        finally:
            process.kill()
            process.wait()
        answer.seek(0)
        if code == _ANSWERED:
            return answer.read()
        reason = answer.read(1000).decode(errors="replace") if code in (_REFUSED, _FAILED) else _died(code)
    if code == _REFUSED:
        raise FooterError(reason)
    raise FooterError(f"Parquet file: its footer could not be read with {memory_bytes} bytes of memory: {reason}")


def _died(code: int) -> str:
    return f"the process ended by signal {-code}" if code < 0 else f"the process ended with {code}"


def child() -> None:
    """Run in the process that `apart` starts: set limits, call the function, and write its answer or the error."""
    module, _, name = sys.argv[2].partition(":")
    processor_s, memory_bytes, answer_bytes = json.loads(sys.argv[3])
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, answer_bytes)
    _limit(resource.RLIMIT_CPU, processor_s)
    _limit(resource.RLIMIT_AS, memory_bytes)
    try:
        answer = getattr(importlib.import_module(module), name)(sys.stdin.buffer)
        code = _ANSWERED
        if len(answer) > answer_bytes:
            answer, code = f"the answer has {len(answer)} bytes, at most {answer_bytes} are allowed".encode(), _FAILED
    except FooterError as error:
        answer, code = str(error).encode(), _REFUSED
    except Exception as error:
        answer, code = type(error).__name__.encode(), _FAILED
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    # Exit without cleanup: freeing what hostile bytes have built could take long.
    os._exit(code)


def _limit(which: int, most: int) -> None:
    resource.setrlimit(which, (most, most))
