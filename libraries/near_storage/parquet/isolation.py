"""Work on bytes that nobody vouches for, in a process of its own that may take so long and so much and no more.

The child is a fresh interpreter. It gets the open file as its standard input, and answers in a file that the parent
made for it; nothing is pickled, and a limit on the file's size holds whatever the child does. A child that raises,
dies, hangs or wants too much is a FooterError at the parent. It needs a system with `resource` (Linux, macOS).
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
"""Of address space, of which the interpreter takes some 40 MB."""
ANSWER_BYTES = 512 << 20

_ANSWERED, _REFUSED, _FAILED = 73, 74, 75
"""How the child ends. Not 0, with which it could end before it has answered."""
_START = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import child; child()"


def read_footer_apart(
    path: str | os.PathLike[str], timeout_s: float = TIMEOUT_S, memory_bytes: int = MEMORY_BYTES
) -> Footer:
    """The footer of a Parquet file, read in a child process. Raises FooterError, and OSError if it cannot be opened."""
    with open(path, "rb") as file:
        answer = apart(f"{__name__}:encoded_footer", file, timeout_s, memory_bytes)
    return msgspec.msgpack.decode(answer, type=Footer)


def encoded_footer(file: BinaryIO) -> bytes:
    """The footer of an open file as msgpack: what `read_footer_apart` has done in the child."""
    return msgspec.msgpack.encode(read_footer(file))


def apart(
    function: str,
    file: BinaryIO,
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int = MEMORY_BYTES,
    answer_bytes: int = ANSWER_BYTES,
) -> bytes:
    """What `function`, 'module:name' of ours, answers for the open file in a child process.

    The function takes the file (binary, seekable) and gives bytes. Raises FooterError where it does, with its message;
    where it raises anything else, its process dies or goes beyond a limit, or its answer has more bytes than allowed.
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
                f"Parquet file: reading its footer took more than {timeout_s:g} s; it is refused"
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
    """What `apart` starts: limits first, then the work. It prints the answer, or the reason why there is none."""
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
            answer, code = f"{len(answer)} bytes of answer, {answer_bytes} are allowed".encode(), _FAILED
    except FooterError as error:
        answer, code = str(error).encode(), _REFUSED
    except Exception as error:
        answer, code = type(error).__name__.encode(), _FAILED
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    # Nothing is left to be done, and taking down what hostile bytes have built could take long.
    os._exit(code)


def _limit(which: int, most: int) -> None:
    resource.setrlimit(which, (most, most))
