"""Files that are broken on purpose: bytes flipped, parts cut out, put in or exchanged, lengths forged.

`python -m tests.formats.f3.mutations 10000` tries so many and says what came of them.
"""

from __future__ import annotations

import collections
import contextlib
import random
import signal
import struct
import sys
from collections.abc import Iterator
from typing import Any

from formats import f3
from tests.formats.f3 import originals
from tests.formats.f3.tables import stored, varied

SECONDS = 2
NUMBERS = (0, 1, 2, 7, 64, 255, 256, 65_535, 65_536, 2**24, 2**31 - 1, 2**31, 2**32 - 1)


def wholes(coding: Any) -> list[bytes]:
    """Files of all kinds, small, so that changes hit what matters."""
    table = varied(150)
    small = {"rows_per_unit": 40, "unit_bytes": 400, "coding": coding}
    parameters: list[dict[str, Any]] = [
        {},
        {"checksums": True, "row_group_rows": 70},
        {"codec": "zstd"},
        {"codec": "lz4", "dictionary": "local"},
        {"dictionary": "shared", "scope_rows": 80, "checksums": True},
    ]
    return [stored(table, **small | each).getvalue() for each in parameters]


def mutated(whole: bytes, dice: random.Random) -> bytes:
    """The file with one change, or a few."""
    data = bytearray(whole)
    # Metadata are few bytes with much to say: every second change is made in them.
    metadata = 32 + struct.unpack_from("<I", whole, len(whole) - 32)[0]
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        if len(data) < 40:
            break
        lowest = max(0, len(data) - metadata) if dice.random() < 0.5 else 0
        place = dice.randrange(lowest, len(data) - 8)
        kind = dice.randrange(7)
        if kind == 0:
            data[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[place] = dice.randrange(256)
        elif kind == 2:
            struct.pack_into("<I", data, place, dice.choice(NUMBERS))
        elif kind == 3:
            (old,) = struct.unpack_from("<I", data, place)
            struct.pack_into("<I", data, place, (old + dice.choice((-64, -4, -1, 1, 4, 64))) % 2**32)
        elif kind == 4:
            del data[place : place + dice.randrange(1, 64)]
        elif kind == 5:
            other = dice.randrange(len(data) - 8)
            data[place : place + 8] = data[other : other + 8]
        else:
            del data[place:]
            if dice.random() < 0.5:
                data += whole[-32:]
    return bytes(data)


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Raises TimeoutError after two seconds of the processor's time: a busy machine makes nothing a loop."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"not done after {SECONDS} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(data: bytes, coding: Any, verify: Any) -> str:
    """'table' or 'F3Error' for a file that all is read of; anything else is raised."""
    with in_time():
        try:
            file = originals.opened(data, verify=verify, coding=coding)
            table = file.read()
            file.read(rows=[file.num_rows - 1] if file.num_rows else None)
            for batch in file.batches():
                batch.validate(full=True)
            file.describe()
        except f3.F3Error:
            return "F3Error"
        table.validate(full=True)
        return "table"


def run(count: int, seed: int, coding: Any) -> collections.Counter[str]:
    """What came of so many changed files, the same ones for the same seed."""
    dice = random.Random(seed)
    files = wholes(coding)
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(count):
        data = mutated(dice.choice(files), dice)
        verify = dice.choice(("units", "none"))
        try:
            outcomes[outcome(data, coding, verify)] += 1
        except (Exception, TimeoutError) as error:
            raise AssertionError(f"file {number} of seed {seed}: {type(error).__name__}: {error}") from error
    return outcomes


def codings() -> dict[str, Any]:
    """The plain coding, and the real one where it can write."""
    found: dict[str, Any] = {"plain": originals.Coding}
    with contextlib.suppress(ImportError, f3.F3Error):
        from formats.f3 import coding

        coding.modules()
        found["real"] = coding
    return found


if __name__ == "__main__":
    for name, each in codings().items():
        print(name, dict(run(int(sys.argv[1]), 1, each)))
