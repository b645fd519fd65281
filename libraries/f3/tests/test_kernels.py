"""Payloads that no encoder writes, damaged at random or forged by hand, do no harm to the kernels."""

import _ctypes
import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from libraries import build
from libraries.f3.columns.memory_layout import BITS, FIXED, TEXT
from libraries.f3.decoders import native
from libraries.f3.encodings import arithmetic, unit_codec
from libraries.f3.encodings.nodes import Tag, header, node, u32, u64
from libraries.f3.errors import F3Error

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")

ROOT = Path(__file__).parents[3]


def fuzz(prefer: str, count: int, seed: int) -> tuple[int, int]:
    """Return the numbers of rejected and of decoded payloads."""
    command = [sys.executable, "-m", "libraries.f3.tests.mutate", prefer, str(count), str(seed)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert ended.returncode == 0, ended.stderr[-2000:]
    refused, decoded = (int(word) for word in ended.stdout.split() if word.isdecimal())
    return refused, decoded


@pytest.mark.slow
@pytest.mark.parametrize(("prefer", "seed"), [("native", 2), ("wasm", 4)])
def test_damaged_payloads_are_refused_or_decode_to_valid_arrays_and_end_no_process(prefer, seed):
    """`make fuzz-f3` damages 20,000 payloads for each decoder."""
    refused, decoded = fuzz(prefer, 2_000, seed)
    assert refused > 400
    assert decoded > 130
    assert refused + decoded == 2_000


@pytest.fixture(scope="module", params=["native", "wasm"])
def decoder(request):
    return unit_codec.Decoder(unit_codec.modules()[unit_codec.CORE], prefer=request.param)


ROWS = 100
PLAIN = node(Tag.PLAIN, bytes(8 * ROWS))
SMALL = node(Tag.PLAIN, bytes(4 * ROWS))


def constant(width: int, number: int) -> bytes:
    return node(Tag.CONSTANT, number.to_bytes(width, "little"))


def nested(depth: int) -> bytes:
    """Return nested deltas."""
    inner = constant(8, 1)
    for _ in range(depth):
        inner = node(Tag.DELTA, u64(0) + inner)
    return inner


def bushy(depth: int, rows: int) -> bytes:
    """Return nested dictionaries whose codes and entries are dictionaries again. Each level doubles the work."""
    if depth == 0:
        return constant(4, 0)
    return node(Tag.DICTIONARY, u32(rows) + 2 * bushy(depth - 1, rows), 4)


FORGED = {
    "no node": (b"", "cut short"),
    "a node past the payload": (PLAIN[:-1], "cut short"),
    "an unknown tag": (node(Tag.PLAIN, PLAIN)[:0] + b"\x0b" + PLAIN[1:], "invalid node"),
    "plain values cut": (node(Tag.PLAIN, bytes(8 * ROWS - 1)), "cut short"),
    "a constant cut": (node(Tag.CONSTANT, bytes(7)), "cut short"),
    "more bits than the width": (node(Tag.PACKED, u64(0) + bytes(9000), 65), "invalid node"),
    "packed values cut": (node(Tag.PACKED, u64(0) + bytes(ROWS - 1), 8), "cut short"),
    "more runs than rows": (node(Tag.RUNS, u32(ROWS + 1) + SMALL + PLAIN), "invalid node"),
    "runs longer than the rows": (node(Tag.RUNS, u32(2) + constant(4, ROWS) + constant(8, 1)), "out of range"),
    "runs whose sum wraps around": (node(Tag.RUNS, u32(2) + constant(4, 1 << 31) + constant(8, 1)), "out of range"),
    "runs shorter than the rows": (node(Tag.RUNS, u32(1) + constant(4, 5) + constant(8, 1)), "invalid node"),
    "a code outside": (node(Tag.DICTIONARY, u32(1) + constant(4, 1) + constant(8, 1), 4), "out of range"),
    "an empty dictionary": (node(Tag.DICTIONARY, u32(0) + constant(4, 0) + constant(8, 1), 4), "invalid node"),
    "codes of three bytes": (node(Tag.DICTIONARY, u32(1) + constant(4, 0) + constant(8, 1), 3), "invalid node"),
    "a dictionary of more than the rows": (
        node(Tag.DICTIONARY, u32(1 << 31) + constant(4, 0) + constant(8, 1), 4), "invalid node"
    ),
    "a patch outside": (node(Tag.PATCHED, u32(1) + PLAIN + constant(4, ROWS) + constant(8, 1)), "out of range"),
    "more patches than rows": (node(Tag.PATCHED, u32(ROWS + 1) + PLAIN + SMALL + PLAIN), "invalid node"),
    "a power of ten too far": (node(Tag.DECIMAL, PLAIN, 23), "invalid node"),
    "a split without low bits": (node(Tag.SPLIT, PLAIN + constant(2, 0), 0), "invalid node"),
    "a split without high bits": (node(Tag.SPLIT, PLAIN + constant(2, 0), 64), "invalid node"),
    "widened from as wide": (node(Tag.WIDENED, PLAIN, 8), "invalid node"),
    "symbols for numbers": (node(Tag.SYMBOLS, b"\x01" + u64(1) + bytes(ROWS), 1), "invalid node"),
    "too deep": (nested(9), "nests nodes too deeply"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_payload_is_refused(name, decoder):
    nodes, words = FORGED[name]
    with pytest.raises(F3Error, match=words):
        decoder.decode(header(FIXED, 8, ROWS, nullable=False) + nodes, pa.int64(), ROWS)


def test_more_work_than_any_encoder_asks_for_is_refused(decoder):
    payload = header(FIXED, 4, 20_000, nullable=False) + bushy(7, 20_000)
    with pytest.raises(F3Error, match="more decoding work than its number of rows allows"):
        decoder.decode(payload, pa.int32(), 20_000)


def test_nodes_as_deep_as_allowed_are_decoded(decoder):
    payload = header(FIXED, 8, ROWS, nullable=False) + nested(7)
    assert decoder.decode(payload, pa.int64(), ROWS)[:3].to_pylist() == [0, 1, 8]


def strings(body: bytes, data_bytes: int) -> bytes:
    return header(TEXT, 0, ROWS, nullable=False, data_bytes=data_bytes) + body


SYMBOLS = b"\x02\x01" + b"ab" + bytes(6) + b"c" + bytes(7)
FORGED_STRINGS = {
    "lengths beyond the bytes": (node(Tag.PLAIN, constant(4, 2) + node(Tag.PLAIN, bytes(ROWS))), ROWS, "invalid node"),
    "lengths that wrap around": (node(Tag.PLAIN, constant(4, 2**32 - 1) + node(Tag.PLAIN, b"")), 0, "invalid node"),
    "a code outside": (
        node(Tag.DICTIONARY, u32(1) + u32(1) + constant(4, 7) + node(Tag.CONSTANT, b"a"), 4), ROWS, "out of range"
    ),
    "a dictionary larger than the strings": (
        node(Tag.DICTIONARY, u32(1) + u32(2**31) + constant(4, 0) + node(Tag.CONSTANT, b"a"), 4), ROWS, "invalid node"
    ),
    "strings of a dictionary beyond the bytes": (
        node(Tag.DICTIONARY, u32(1) + u32(2) + constant(4, 0) + node(Tag.CONSTANT, b"ab"), 4), ROWS, "out of range"
    ),
    "a constant beyond the bytes": (node(Tag.CONSTANT, b"ab"), ROWS, "invalid node"),
    "symbols beyond the bytes": (
        node(Tag.PLAIN, constant(4, 1) + node(Tag.SYMBOLS, SYMBOLS + bytes(ROWS), 2)), ROWS, "invalid node"
    ),
    "symbols short of the bytes": (
        node(Tag.PLAIN, constant(4, 1) + node(Tag.SYMBOLS, SYMBOLS + bytes(ROWS // 4), 2)), ROWS, "invalid node"
    ),
    "an unknown symbol": (
        node(Tag.PLAIN, constant(4, 1) + node(Tag.SYMBOLS, SYMBOLS + b"\x02" * ROWS, 2)), ROWS, "invalid node"
    ),
    "an escape at the end": (
        node(Tag.PLAIN, constant(4, 1) + node(Tag.SYMBOLS, SYMBOLS + b"\x01" * (ROWS - 1) + b"\xff", 2)), ROWS, "cut"
    ),
    "symbols of no bytes": (
        node(Tag.PLAIN, constant(4, 1) + node(Tag.SYMBOLS, b"\x00" + u64(0) + bytes(ROWS), 1)), ROWS, "invalid node"
    ),
    "symbols of nine bytes": (
        node(Tag.PLAIN, constant(4, 1) + node(Tag.SYMBOLS, b"\x09" + u64(0) + bytes(ROWS), 1)), ROWS, "invalid node"
    ),
    "more than an array holds": (node(Tag.CONSTANT, b""), 2**31, "invalid node|another number of rows"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED_STRINGS)
def test_forged_strings_are_refused(name, decoder):
    body, data_bytes, words = FORGED_STRINGS[name]
    with pytest.raises(F3Error, match=words):
        decoder.decode(strings(body, data_bytes), pa.large_binary(), ROWS)


def test_forged_bitmaps_are_refused(decoder):
    for nodes, words in (
        (node(Tag.PLAIN, bytes(12)), "cut short"),
        (node(Tag.RUNS, u32(1) + constant(4, ROWS + 1)), "out of range"),
        (node(Tag.RUNS, u32(1) + constant(4, ROWS - 1)), "invalid node"),
        (node(Tag.PATCHED, u32(1) + constant(4, ROWS)), "out of range"),
        (node(Tag.DELTA, bytes(100)), "invalid node"),
    ):
        with pytest.raises(F3Error, match=words):
            decoder.decode(header(BITS, 0, ROWS, nullable=False) + nodes, pa.bool_(), ROWS)
        with pytest.raises(F3Error, match=words):
            decoder.decode(header(FIXED, 8, ROWS, nullable=True) + nodes + PLAIN, pa.int64(), ROWS)


def test_the_library_and_numpy_pack_alike(monkeypatch):
    rng = np.random.default_rng(6)
    made = []
    for width in (1, 2, 4, 8):
        for bits in range(8 * width + 1):
            count = int(rng.integers(1, 3000))
            most = (1 << bits) - 1
            values = rng.integers(0, most, count, np.uint64, endpoint=True).astype(f"u{width}") + np.array(
                [3], f"u{width}"
            )
            made.append((values, bits, arithmetic.packed(values, 3, bits), arithmetic.statistics(values)))
    monkeypatch.setattr(native, "library", lambda: None)
    for values, bits, packed, statistics in made:
        assert arithmetic.packed(values, 3, bits) == packed
        assert arithmetic.statistics(values) == statistics


def test_the_library_and_numpy_find_the_same_decimals(monkeypatch):
    rng = np.random.default_rng(7)
    for dtype in (np.float32, np.float64):
        values = np.round(rng.random(3000) * 100, 2).astype(dtype)
        values[::7] = rng.random(429).astype(dtype)
        values[5:9] = [np.nan, np.inf, -np.inf, -0.0]
        integers, misses = arithmetic.decimals(values, 2)
        with monkeypatch.context() as without:
            without.setattr(native, "library", lambda: None)
            slow_integers, slow_misses = arithmetic.decimals(values, 2)
        assert misses.tolist() == slow_misses.tolist()
        for most_missed in (0, 429, 433, 2999, 3000):
            found = arithmetic.decimal_exponent(values, 9, most_missed)
            with monkeypatch.context() as without:
                without.setattr(native, "library", lambda: None)
                assert arithmetic.decimal_exponent(values, 9, most_missed) == found
            missed = [len(arithmetic.decimals(values, exponent)[1]) <= most_missed for exponent in range(9)]
            assert found == (missed.index(True) if True in missed else None)
        exact = np.setdiff1d(np.arange(3000), misses)
        assert integers[exact].tolist() == slow_integers[exact].tolist()


def test_every_fault_of_the_kernels_has_a_message():
    text = (native.KERNELS / "kernels.h").read_text()
    faults = text.partition("enum fault {")[2].partition("}")[0]
    assert faults.count(" = ") - 1 == len(native.FAULTS)
    tags = text.partition("enum tag {")[2].partition("}")[0]
    assert {f"TAG_{tag.name} = {tag.value}" for tag in Tag} == {
        line.strip(" ,") for line in tags.splitlines() if line.strip()
    }


def test_the_target_is_laid_out_as_the_library_has_it():
    assert ctypes.sizeof(native.DecodeTarget) == 72


@pytest.mark.slow
def test_a_build_elsewhere_gives_the_same_module(tmp_path, monkeypatch):
    pytest.importorskip("ziglang")
    module = [product for product in build.PRODUCTS["f3"] if product.name == native.MODULE_NAME]
    monkeypatch.setitem(build.PRODUCTS, "f3", module)
    build.build(tmp_path, "f3")
    assert (tmp_path / "f3/kernels" / native.MODULE_NAME).read_bytes() == unit_codec.modules()[unit_codec.CORE]
    assert len(unit_codec.modules()[unit_codec.CORE]) < 100_000


def test_a_library_of_another_version_is_as_good_as_none(monkeypatch):
    other = Path(_ctypes.__file__)
    monkeypatch.setattr(native, "KERNELS", other.parent)
    monkeypatch.setattr(native, "LIBRARY_NAME", other.name)
    with pytest.warns(RuntimeWarning, match="native library is not built"):
        assert native.library.__wrapped__() is None


def test_memory_that_few_files_ask_for_is_given_back(monkeypatch):
    monkeypatch.setattr(native, "_KEPT_SCRATCH_BYTES", 1 << 20)
    kept = native._scratch_of(1 << 20)
    assert len(native._scratch_of(1 << 21)) == 1 << 21
    assert native._scratch_of(1 << 10) is kept or len(kept) > 1 << 20
