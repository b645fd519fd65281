"""Read deliberately broken files: flipped bytes, parts cut out, inserted or exchanged, and forged lengths.

`python -m libraries.f3.tests.mutations 10000 [WAY...]` tries 10,000 files with each way of decoding, or with the named
ways. It prints the outcomes and the time taken.
"""

from __future__ import annotations

import collections
import contextlib
import random
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from libraries import f3
from libraries.f3.decoders import module_cache
from libraries.f3.tests import originals
from libraries.f3.tests.tables import stored, varied

SECONDS = 2
NUMBERS = (0, 1, 2, 7, 64, 255, 256, 65_535, 65_536, 2**24, 2**31 - 1, 2**31, 2**32 - 1)


@dataclass(frozen=True)
class Way:
    """A way of decoding: a coding, run natively or as the Wasm code in the file."""

    coding: Any
    prefer: str = "native"


def wholes(coding: Any) -> list[bytes]:
    """Return files of all kinds. They are small, so that a changed byte is likely to matter."""
    table = varied(150)
    # Two columns whose shared dictionaries have a common part, and one separate part each.
    names = [f"{number}" for number in range(1100)]
    related = pa.table({"from": names, "to": [*names[50:], *(f"to {number}" for number in range(50))]})
    small = {"rows_per_unit": 40, "unit_bytes": 400, "coding": coding}
    parameters: list[dict[str, Any]] = [
        {},
        {"checksums": True, "row_group_rows": 70},
        {"codec": "zstd"},
        {"codec": "lz4", "dictionary": "local"},
        {"dictionary": "shared", "scope_rows": 80, "checksums": True},
    ]
    files = [stored(table, **small | each).getvalue() for each in parameters]
    return [*files, stored(related, dictionary="shared", rows_per_unit=400, coding=coding).getvalue()]


def mutated(whole: bytes, dice: random.Random) -> bytes:
    """Return the file with one or a few changes."""
    data = bytearray(whole)
    # Half of the changes are in the metadata, because these few bytes decide how the rest is read. Few changes are in
    # modules, which are large and slow to compile.
    zones = whole.find(b"F3ZM")
    metadata = 32 + struct.unpack_from("<I", whole, len(whole) - 32)[0] if zones < 0 else len(whole) - zones
    units_end = whole.index(b"\0asm")
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        if len(data) < 40:
            break
        last = len(data) - 8
        region = dice.randrange(8)
        lowest, highest = (last + 8 - metadata, last) if region < 4 else (0, units_end if region < 7 else last)
        place = dice.randrange(max(0, min(lowest, last - 1)), min(highest, last))
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
def in_time(seconds: float = SECONDS) -> Iterator[None]:
    """Raise TimeoutError after two seconds of processor time. Wall-clock time would fail on a busy machine."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(data: bytes, way: Way, verify: Any) -> str:
    """Read a whole file and return 'table' or 'F3Error'; raise anything else."""
    with in_time():
        try:
            file = originals.opened(data, verify=verify, coding=way.coding, prefer=way.prefer)
            table = file.read()
            file.read(rows=[file.num_rows - 1] if file.num_rows else None)
            for name in file.schema.names:
                file.read([name], where=pc.field(name).is_null())
            for batch in file.batches():
                batch.validate(full=True)
            file.describe()
        except f3.F3Error:
            return "F3Error"
        table.validate(full=True)
        return "table"


def run(count: int, seed: int, way: Way) -> collections.Counter[str]:
    """Return the outcomes of `count` changed files, which depend on the seed only."""
    dice = random.Random(seed)
    files = wholes(way.coding)
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(count):
        data = mutated(dice.choice(files), dice)
        verify = dice.choice(("units", "none"))
        try:
            outcomes[outcome(data, way, verify)] += 1
        except (Exception, TimeoutError) as error:
            raise AssertionError(f"file {number} of seed {seed}: {type(error).__name__}: {error}") from error
    return outcomes


def ways() -> dict[str, Way]:
    """Return the ways of decoding: the plain coding and, if F3's module is built, F3's coding, natively and as Wasm."""
    found = {"plain": Way(originals.Coding)}
    with contextlib.suppress(ImportError, f3.F3Error):
        from libraries.f3.encodings import unit_codec

        unit_codec.modules()
        found |= {prefer: Way(unit_codec, prefer) for prefer in ("native", "wasm")}
    return found


def main(count: int, wanted: list[str]) -> None:
    """Try `count` files in each way."""
    with tempfile.TemporaryDirectory() as folder:
        # Use a separate cache. Otherwise hundreds of broken modules would displace the modules of the user's files.
        module_cache.folder = lambda: Path(folder) / "modules"
        for name, way in ways().items():
            if name in (wanted or ways()):
                start = time.perf_counter()
                print(name, dict(run(count, 1, way)), f"in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
