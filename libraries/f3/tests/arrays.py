"""Arrays of every flat type, in the patterns that encodings exploit, and a bitwise comparison."""

import numpy as np
import pyarrow as pa

TYPES = [
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("us", "Europe/Berlin"), pa.duration("ms"), pa.month_day_nano_interval()),
    *(pa.decimal128(38, 2), pa.decimal256(76, 3)),
    *(pa.binary(), pa.large_binary(), pa.string(), pa.large_string()),
]
PATTERNS = ["constant", "runs", "narrow", "ascending", "noise", "few", "mostly", "outliers", "hundredths"]
_WORDS = ["", "a", "bb", "Straße", "日本語", "x" * 40, "the quick brown fox", "https://www.example.com/item/"]


def integers(pattern: str, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return signed 64-bit integers in a pattern."""
    match pattern:
        case "constant":
            return np.full(rows, -7)
        case "runs":
            return np.repeat(rng.integers(-(2**40), 2**40, rows // 20 + 1), 20)[:rows]
        case "narrow":
            return rng.integers(-20, 100, rows)
        case "ascending":
            return np.cumsum(rng.integers(0, 9, rows))
        case "few":
            return rng.choice(rng.integers(-(2**62), 2**62, 12), rows)
        case "mostly":
            return np.where(rng.random(rows) < 0.02, rng.integers(-(2**62), 2**62, rows), 5)
        case "outliers":
            return np.where(rng.random(rows) < 0.01, rng.integers(0, 2**62, rows), rng.integers(0, 30, rows))
    return rng.integers(-(2**63), 2**63 - 1, rows)


def fixed(arrow_type: pa.DataType, pattern: str, rows: int, rng: np.random.Generator) -> pa.Array:
    width = arrow_type.bit_width // 8
    if pa.types.is_floating(arrow_type) and pattern != "noise":
        numbers = np.round(rng.random(rows) * 1000, 2) if pattern == "hundredths" else integers(pattern, rows, rng) / 4
        with np.errstate(over="ignore"):
            return pa.array(numbers.astype(f"f{width}"))
    numbers = integers(pattern, rows, rng)
    if width <= 8:
        stored = numbers.astype(f"i{width}")
    elif pattern == "noise":
        stored = np.frombuffer(rng.bytes(rows * width), np.uint8)
    else:
        stored = np.concatenate([numbers[:, None]] + [(numbers >> 63)[:, None]] * (width // 8 - 1), axis=1)
    return pa.Array.from_buffers(arrow_type, rows, [None, pa.py_buffer(np.ascontiguousarray(stored))])


def texts(arrow_type: pa.DataType, pattern: str, rows: int, rng: np.random.Generator) -> pa.Array:
    numbers = integers(pattern, rows, rng)
    match pattern:
        case "constant":
            words = ["Straße"] * rows
        case "few" | "mostly" | "runs":
            words = [_WORDS[number % len(_WORDS)] for number in numbers]
        case "narrow":
            words = ["".join(letters) for letters in rng.choice(list("abcdefgh"), (rows, 9))]
        case _:
            words = [f"{_WORDS[number % len(_WORDS)]}{number}" for number in numbers]
    return pa.array(words, pa.string()).cast(arrow_type)


def made(arrow_type: pa.DataType, pattern: str, rows: int, rng: np.random.Generator, nulls: float = 0.0) -> pa.Array:
    """Return an array of a type in a pattern, with a share of nulls."""
    if pa.types.is_boolean(arrow_type):
        array = pa.array(integers(pattern, rows, rng) % 3 == 0)
    elif arrow_type in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        array = texts(arrow_type, pattern, rows, rng)
    else:
        array = fixed(arrow_type, pattern, rows, rng)
    if not nulls:
        return array
    validity = np.packbits(rng.random(rows) >= nulls, bitorder="little")
    return pa.Array.from_buffers(array.type, rows, [pa.py_buffer(validity), *array.buffers()[1:]])


def bits_of(array: pa.Array) -> list[bytes | bool | None]:
    """Return every value as its bytes, so that NaNs of different bits, and zeros of different sign, differ."""
    if pa.types.is_boolean(array.type):
        return array.to_pylist()
    if array.type in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        return array.cast(pa.large_binary()).to_pylist()
    width = array.type.bit_width // 8
    if len(array) == 0:
        return []
    data = np.frombuffer(array.buffers()[1], f"V{width}", len(array), array.offset * width)
    return [value.tobytes() if valid else None for value, valid in zip(data, array.is_valid().to_pylist(), strict=True)]


def same_bits(one: pa.Array, other: pa.Array) -> bool:
    """Return whether `bits_of` is the same for both arrays, without creating a Python object for each value."""
    if len(one) != len(other):
        return False
    if pa.types.is_boolean(one.type):
        return one.equals(other)
    if one.type in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        return one.cast(pa.large_binary()).equals(other.cast(pa.large_binary()))
    valid = one.is_valid()
    if not valid.equals(other.is_valid()):
        return False
    if not len(one):
        return True
    width = one.type.bit_width // 8
    stored = [np.frombuffer(each.buffers()[1], f"V{width}", len(one), each.offset * width) for each in (one, other)]
    kept = valid.to_numpy(zero_copy_only=False)
    return stored[0][kept].tobytes() == stored[1][kept].tobytes()


def assert_same(found: pa.Array, expected: pa.Array) -> None:
    assert found.type == expected.type
    assert found.null_count == expected.null_count
    if not same_bits(found, expected):
        assert bits_of(found) == bits_of(expected)
        raise AssertionError("the arrays differ in bits that are not part of their values")
