"""Decode thousands of damaged payloads: `python -m libraries.f3.tests.mutate native 10000 [seed]`.

This runs as a separate process, because a read out of bounds ends the process. It prints how many payloads were
rejected and how many were decoded.
"""

import sys
import zlib

import numpy as np
import pyarrow as pa

from libraries.f3.decoders.native import PICKED
from libraries.f3.encodings import encoders, unit_codec
from libraries.f3.errors import F3Error
from libraries.f3.tests.arrays import PATTERNS, TYPES, assert_same, made


def payloads(rng: np.random.Generator) -> list[tuple[pa.DataType, int, bytes]]:
    """Return payloads of every type and pattern, with different encodings."""
    found = []
    for arrow_type in TYPES:
        for pattern in PATTERNS:
            rows = int(rng.integers(1, 2200))
            array = made(arrow_type, pattern, rows, rng, float(rng.choice([0, 0.2])))
            allow = None if rng.random() < 0.6 else frozenset(name for name in encoders.NAMES if rng.random() < 0.6)
            found.append((arrow_type, rows, unit_codec.encode(array, allow=allow).payload))
    return found


def damaged(payload: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes, forge a number, cut the payload or move a part of it. Most changed bytes are near the front, where
    the nodes are."""
    changed = bytearray(payload)
    size = len(changed)

    def position(length: int) -> int:
        return int(rng.integers(0, max(1, min(size - length + 1, 64 if rng.random() < 0.6 else size))))

    for _ in range(int(rng.integers(1, 4))):
        match int(rng.integers(0, 5)):
            case 0:
                changed[position(1)] = int(rng.integers(0, 256))
            case 1:
                changed[position(1)] ^= 1 << int(rng.integers(0, 8))
            case 2 if len(changed) > 4:
                forged = int(
                    rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, size, size + 1, int(rng.integers(0, 5000))])
                )
                place = min(position(4), len(changed) - 4)
                changed[place : place + 4] = forged.to_bytes(4, "little")
            case 3:
                del changed[int(rng.integers(0, len(changed) + 1)) :]
            case _:
                start = position(8)
                changed[start:start] = changed[position(8) :][:8]
        if not changed:
            break
        size = len(changed)
    return bytes(changed)


def _picked(
    decoder: unit_codec.Decoder, payload: bytes, arrow_type: pa.DataType, rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, pa.Array] | None:
    """Return numbers of some rows and their values, or None if picking them is refused."""
    wanted = rng.integers(0, rows, 4 if rows else 0).astype(np.uint32)
    units = np.zeros(1, PICKED)
    units["memory"], units["size_bytes"] = pa.py_buffer(payload).address, len(payload)
    units["rows"], units["count"] = rows, len(wanted)
    try:
        return wanted, decoder.pick(units, -1, wanted, arrow_type)
    except F3Error:
        return None


def main(prefer: str, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    honest = payloads(rng)
    decoder = unit_codec.Decoder(unit_codec.modules()[unit_codec.CORE], prefer=prefer)
    assert decoder.how == prefer
    refused = 0
    for _ in range(count):
        arrow_type, rows, payload = honest[int(rng.integers(len(honest)))]
        changed = damaged(payload, rng)
        few = _picked(decoder, changed, arrow_type, rows, rng) if decoder.picks_rows else None
        try:
            array = decoder.decode(changed, arrow_type, rows)
        except F3Error:
            refused += 1
            continue
        assert len(array) == rows
        if few is not None:
            assert_same(few[1], array.take(pa.array(few[0])))
        if not (pa.types.is_decimal(arrow_type) or pa.types.is_temporal(arrow_type)):
            array.validate(full=True)
        # Read every byte of the result. If one is outside the allocated memory, the process ends here.
        for buffer in array.buffers():
            if buffer is not None:
                zlib.crc32(buffer)
    print(f"{refused} refused, {count - refused} decoded")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
