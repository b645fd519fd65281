"""For each kind of column a few values where pruning can go wrong, in Parquet's and Arrow's representation."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from libraries.near_storage.parquet.schema import Column, Logical, Order

NAN = math.nan


@dataclass(frozen=True)
class Universe:
    """A column, its Arrow type, its values ascending (without NaN), how to store one, and prefixes of some."""

    name: str
    column: Column
    type: pa.DataType
    values: tuple
    plain: Callable[[object], bytes]
    prefixes: tuple[str, ...] = ()

    @property
    def floating(self) -> bool:
        return pa.types.is_floating(self.type)


def column(physical: str, logical: Logical | None = None, length: int = 0, order: Order = "type") -> Column:
    return Column(("x",), physical, length, logical, order, 1, 0)


def little(size: int, signed: bool = True) -> Callable[[int], bytes]:
    return lambda value: int(value).to_bytes(size, "little", signed=signed)


def big(size: int, scale: int) -> Callable[[Decimal], bytes]:
    return lambda value: int(value.scaleb(scale)).to_bytes(size, "big", signed=True)


def packed(format_: str) -> Callable[[float], bytes]:
    return lambda value: struct.pack(format_, value)


def int96(nanoseconds: int) -> bytes:
    days, of_day = divmod(nanoseconds, 86_400_000_000_000)
    return struct.pack("<qi", of_day, days + 2_440_588)


def numbers(low: int, high: int) -> tuple[int, ...]:
    return tuple(sorted({low, low + 1, -1, 0, 1, 2, high - 1, high} - ({-1} if low == 0 else set())))


def decimals(*unscaled: int) -> tuple[Decimal, ...]:
    return tuple(Decimal(number).scaleb(-2) for number in unscaled)


INT8 = Logical("integer", bits=8)
UINT32, UINT64 = (Logical("integer", bits=bits, signed=False) for bits in (32, 64))
DECIMAL = Logical("decimal", precision=38, scale=2)
FLOATS = (-math.inf, -1.5, -0.0, 0.0, 2.0**-24, 1.5, math.inf, NAN)
TEXTS = ("", "\0", "F", "F\0", "Fa", "ab", "abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefgi", "ü", "￿")
BYTES = (*(text.encode() for text in TEXTS), b"\xff" * 8, b"\xff" * 9)
WIDE = (-(10**30), -(2**63) - 1, -(2**63), -(2**63) + 1, 0, 1, 2**63 - 2, 2**63 - 1, 2**63, 10**30)
SMALL = (-(2**31), -1, 0, 1, 2**31 - 1)
DAYS = (-719162, -1, 0, 1, 2932896)
TIMES = (0, 1, 999, 1000, 86_399_999)
MOMENTS = (-(2**63), -1, 0, 1, 10**18, 2**63 - 1)

UNIVERSES = [
    Universe("boolean", column("BOOLEAN"), pa.bool_(), (False, True), little(1)),
    Universe("int8", column("INT32", INT8), pa.int8(), numbers(-128, 127), little(4)),
    Universe("int32", column("INT32"), pa.int32(), numbers(-(2**31), 2**31 - 1), little(4)),
    Universe("int64", column("INT64"), pa.int64(), numbers(-(2**63), 2**63 - 1), little(8)),
    Universe("uint32", column("INT32", UINT32), pa.uint32(), numbers(0, 2**32 - 1), little(4, False)),
    Universe("uint64", column("INT64", UINT64), pa.uint64(), numbers(0, 2**64 - 1), little(8, False)),
    Universe("float16", column("FIXED_LEN_BYTE_ARRAY", Logical("float16"), 2), pa.float16(), FLOATS, packed("<e")),
    Universe("float32", column("FLOAT"), pa.float32(), FLOATS, packed("<f")),
    Universe("float64", column("DOUBLE"), pa.float64(), FLOATS, packed("<d")),
    Universe("float64 in total order", column("DOUBLE", order="ieee 754 total"), pa.float64(), FLOATS, packed("<d")),
    Universe(
        *("text", column("BYTE_ARRAY", Logical("string")), pa.string(), TEXTS, str.encode),
        ("", "F", "F\0", "abcdefgh", "abcdefghi", "\uffff", "ü", "z"),
    ),
    Universe("binary", column("BYTE_ARRAY"), pa.binary(), BYTES, bytes, ("", "F", "F\0", "abcdefgh", "ü")),
    Universe(
        "fixed 3",
        column("FIXED_LEN_BYTE_ARRAY", length=3),
        pa.binary(3),
        (b"\0\0\0", b"F\0\0", b"F\0a", b"\xff" * 3),
        bytes,
        ("F", "F\0"),
    ),
    Universe(
        *("fixed 9", column("FIXED_LEN_BYTE_ARRAY", length=9), pa.binary(9)),
        (bytes(9), b"abcdefgh\0", b"abcdefgha", b"abcdefgi\0", b"\xff" * 9),
        *(bytes, ("abcdefgh", "abcdefgha")),
    ),
    Universe(
        "decimal in int32",
        column("INT32", DECIMAL),
        pa.decimal32(9, 2),
        decimals(*SMALL[1:4], 10**9 - 1),
        lambda value: little(4)(value.scaleb(2)),
    ),
    Universe(
        "decimal in int64",
        column("INT64", DECIMAL),
        pa.decimal128(18, 2),
        decimals(*SMALL, 10**18 - 1),
        lambda value: little(8)(value.scaleb(2)),
    ),
    Universe(
        "decimal in 16 bytes",
        column("FIXED_LEN_BYTE_ARRAY", DECIMAL, 16),
        pa.decimal128(38, 2),
        decimals(*WIDE),
        big(16, 2),
    ),
    Universe("decimal in any bytes", column("BYTE_ARRAY", DECIMAL), pa.decimal128(38, 2), decimals(*WIDE), big(14, 2)),
    Universe("date", column("INT32", Logical("date")), pa.date32(), DAYS, little(4)),
    Universe("time", column("INT32", Logical("time", unit="ms")), pa.time32("ms"), TIMES, little(4)),
    Universe("time in ns", column("INT64", Logical("time", unit="ns")), pa.time64("ns"), TIMES, little(8)),
    Universe("timestamp", column("INT64", Logical("timestamp", unit="us")), pa.timestamp("us"), MOMENTS, little(8)),
    Universe(
        "timestamp in UTC",
        column("INT64", Logical("timestamp", unit="ns", utc=True)),
        pa.timestamp("ns", "UTC"),
        MOMENTS,
        little(8),
    ),
    Universe("duration", column("INT64"), pa.duration("us"), MOMENTS, little(8)),
    Universe("int96", column("INT96", order="int96 timestamp"), pa.timestamp("ns"), MOMENTS, int96),
]
