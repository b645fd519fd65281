"""Values of every type and pattern are restored bit by bit, by both decoders, whichever encoder wrote them."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from libraries.f3.decoders import native
from libraries.f3.encodings import arithmetic, encoders, unit_codec
from libraries.f3.encodings.nodes import HEADER_BYTES, Tag
from libraries.f3.errors import F3Error
from libraries.f3.tests.arrays import PATTERNS, TYPES, assert_same, made

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")

ROWS = 2500
"""Two complete blocks of bit packing and part of a third."""


@pytest.fixture(scope="module")
def decoder():
    return unit_codec.Decoder(unit_codec.modules()[unit_codec.CORE])


@pytest.fixture(scope="module")
def sandbox():
    return unit_codec.Decoder(unit_codec.modules()[unit_codec.CORE], prefer="wasm")


@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_every_pattern_comes_back_with_and_without_nulls_and_sliced(arrow_type, decoder, sandbox):
    rng = np.random.default_rng(11)
    for pattern in PATTERNS:
        for nulls in (0.0, 0.3):
            array = made(arrow_type, pattern, ROWS, rng, nulls)
            for part in (array, array.slice(3, 1201), array.slice(8, 1)):
                payload = unit_codec.encode(part).payload
                assert_same(decoder.decode(payload, arrow_type, len(part)), part)
                assert_same(sandbox.decode(payload, arrow_type, len(part)), part)


@pytest.fixture(scope="module")
def elsewhere():
    """Return this package's module called as other readers of F3 call it: through F3's common interface only."""
    return unit_codec.Decoder(unit_codec.modules()[unit_codec.CORE].replace(b"f3_room", b"f3_none"), prefer="wasm")


@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_our_module_has_the_interface_of_f3_too(arrow_type, elsewhere):
    assert elsewhere.how == "wasm"
    rng = np.random.default_rng(12)
    for nulls in (0.0, 0.3):
        array = pa.concat_arrays([made(arrow_type, pattern, 150, rng, nulls) for pattern in PATTERNS])
        assert_same(elsewhere.decode(unit_codec.encode(array).payload, arrow_type, len(array)), array)


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_our_module_gives_views_of_texts_of_all_lengths(arrow_type, elsewhere):
    """A string view stores texts of up to twelve bytes itself."""
    array = pa.array([chr(97 + length) * length for length in range(26)] * 3).cast(arrow_type)
    assert_same(elsewhere.decode(unit_codec.encode(array).payload, arrow_type, len(array)), array)


@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_no_rows_and_nothing_but_nulls_come_back(arrow_type, decoder, sandbox):
    for array in (pa.array([], arrow_type), pa.nulls(1, arrow_type), pa.nulls(1030, arrow_type)):
        payload = unit_codec.encode(array).payload
        assert len(payload) < 120
        assert_same(decoder.decode(payload, arrow_type, len(array)), array)
        assert_same(sandbox.decode(payload, arrow_type, len(array)), array)


@pytest.mark.parametrize("bits", [64, 127, 128, 191, 192, 250])
def test_decimals_that_only_some_of_their_words_tell_apart_come_back(bits, decoder):
    """The values differ only in some of their words. Their lowest words alone look like small numbers."""
    wide = pa.decimal256(76, 0)
    array = pa.array([Decimal(sign * (1 << bits) + number) for number in range(40) for sign in (0, 1, -1)], wide)
    assert_same(decoder.decode(unit_codec.encode(array).payload, wide, len(array)), array)


@pytest.mark.parametrize("longest", [1, 7, 31, 32, 33, 63, 64, 65, 300])
@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_binary()], ids=str)
def test_repeated_strings_of_all_lengths_come_back_whatever_lies_behind_them(arrow_type, longest, decoder, sandbox):
    rng = np.random.default_rng(longest)
    entries = [chr(97 + number % 26) * length for number, length in enumerate(range(longest + 1))]
    for rows in (1, 7, 8, 9, 700, 3001):
        # The values are sorted, so that some units end with long strings, some with short strings and some without
        # strings.
        for picked in (rng.integers(0, longest + 1, rows), np.sort(rng.integers(0, longest + 1, rows))):
            for order in (picked, picked[::-1], np.concatenate((picked, np.zeros(rows, np.int64)))):
                array = pa.array([entries[place] for place in order], pa.string()).cast(arrow_type)
                units = [unit_codec.encode(array).payload] * 2
                for each in (decoder, sandbox):
                    found = each.decode_into(units, arrow_type, [len(array)] * 2)
                    assert_same(found, pa.concat_arrays([array, array]))


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_runs_of_all_lengths_come_back_whatever_lies_behind_them(width, decoder, sandbox):
    rng = np.random.default_rng(width)
    for most in (2, 8, 9, 16, 17, 40, 700):
        lengths = rng.integers(1, most + 1, 90)
        for order in (lengths, np.sort(lengths), np.sort(lengths)[::-1]):
            values = np.repeat(rng.integers(-100, 100, 90), order).astype(f"i{width}")
            array = pa.array(values)
            units = [unit_codec.encode(array).payload] * 2
            for each in (decoder, sandbox):
                assert_same(each.decode_into(units, array.type, [len(array)] * 2), pa.concat_arrays([array, array]))


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("sign", ["int", "uint"])
def test_extremes_come_back(width, sign, decoder):
    limits = np.iinfo(f"{sign}{8 * width}")
    array = pa.array(np.array([limits.min, limits.max, 0, limits.max, limits.min] * 300, limits.dtype))
    assert_same(decoder.decode(unit_codec.encode(array).payload, array.type, len(array)), array)


@pytest.mark.parametrize("width", [4, 8])
def test_nans_with_their_payloads_and_zeros_below_zero_come_back(width, decoder):
    bits = {4: [0x7FC00001, 0xFFC12345, 0x80000000, 0x7F800000, 1], 8: [0x7FF8000000000001, 1 << 63, 0xFFF0 << 48, 1]}
    odd = np.array(bits[width], f"u{width}").view(f"f{width}")
    ordinary = np.round(np.arange(2000) / 100, 2).astype(odd.dtype)
    array = pa.array(np.concatenate([ordinary, odd, ordinary]))
    assert_same(decoder.decode(unit_codec.encode(array).payload, array.type, len(array)), array)


def test_encunits_of_odd_sizes_become_one_array(decoder, sandbox):
    rng = np.random.default_rng(3)
    for arrow_type in (pa.bool_(), pa.int64(), pa.string(), pa.large_binary()):
        array = made(arrow_type, "few", 4000, rng, 0.2)
        cuts = [0, 1, 9, 1000, 1001, 3333, 4000]
        # The first EncUnits have no nulls, so the first bitmap begins in the middle of the column.
        parts = [array.slice(start, end - start) for start, end in pairwise(cuts)]
        parts[0] = made(arrow_type, "few", 1, rng)
        payloads, rows = [unit_codec.encode(part).payload for part in parts], [len(part) for part in parts]
        expected = pa.concat_arrays(parts)
        assert_same(decoder.decode_into(payloads, arrow_type, rows), expected)
        assert_same(sandbox.decode_into(payloads, arrow_type, rows), expected)


def first_tag(payload: bytes) -> Tag:
    return Tag(payload[HEADER_BYTES])


@pytest.mark.parametrize(
    ("allowed", "arrow_type", "pattern", "tag"),
    [
        ({"constant"}, pa.int32(), "constant", Tag.CONSTANT),
        ({"packed"}, pa.int64(), "narrow", Tag.PACKED),
        ({"runs", "packed"}, pa.int64(), "runs", Tag.RUNS),
        ({"delta", "packed"}, pa.timestamp("us"), "ascending", Tag.DELTA),
        ({"dictionary", "packed"}, pa.int64(), "few", Tag.DICTIONARY),
        ({"patched", "packed", "constant"}, pa.int64(), "mostly", Tag.PATCHED),
        ({"patched", "packed"}, pa.int64(), "outliers", Tag.PATCHED),
        ({"decimal", "packed"}, pa.float64(), "hundredths", Tag.DECIMAL),
        ({"decimal", "packed"}, pa.float32(), "hundredths", Tag.DECIMAL),
        ({"widened", "packed"}, pa.decimal128(38, 2), "narrow", Tag.WIDENED),
        ({"dictionary", "packed"}, pa.decimal256(76, 2), "few", Tag.DICTIONARY),
        ({"dictionary", "packed"}, pa.string(), "few", Tag.DICTIONARY),
        ({"constant", "dictionary"}, pa.string(), "constant", Tag.CONSTANT),
        ({"runs"}, pa.bool_(), "runs", Tag.RUNS),
        ({"patched"}, pa.bool_(), "mostly", Tag.PATCHED),
        ({"plain"}, pa.string(), "few", Tag.PLAIN),
    ],
)
def test_each_encoding_is_chosen_where_it_fits_and_comes_back(allowed, arrow_type, pattern, tag, decoder, sandbox):
    array = made(arrow_type, pattern, 5000, np.random.default_rng(5))
    payload = unit_codec.encode(array, allow=frozenset(allowed)).payload
    assert first_tag(payload) is tag
    assert_same(decoder.decode(payload, arrow_type, len(array)), array)
    assert_same(sandbox.decode(payload, arrow_type, len(array)), array)


@pytest.mark.parametrize("width", [4, 8])
def test_floats_without_a_pattern_are_split_into_few_exponents_and_the_rest(width, decoder, sandbox):
    array = pa.array((np.random.default_rng(5).random(9000) * 100).astype(f"f{width}"))
    payload = unit_codec.encode(array).payload
    assert first_tag(payload) is Tag.SPLIT
    assert len(payload) < 0.92 * array.nbytes
    assert_same(decoder.decode(payload, array.type, len(array)), array)
    assert_same(sandbox.decode(payload, array.type, len(array)), array)


def test_what_is_allowed_names_encodings_that_there_are():
    assert {tag.name.lower() for tag in Tag} == encoders.NAMES - {"packed bytes"}


def test_symbols_make_addresses_small(decoder, sandbox):
    array = pa.array(
        [f"https://www.example.com/item/{number * 7919 % 100003}?q={number % 17}" for number in range(9000)]
    )
    payload = unit_codec.encode(array).payload
    assert len(payload) < 0.35 * array.nbytes
    assert len(unit_codec.encode(array, allow=frozenset({"packed"})).payload) > 2 * len(payload)
    assert_same(decoder.decode(payload, array.type, len(array)), array)
    assert_same(sandbox.decode(payload, array.type, len(array)), array)


def test_random_arrays_come_back(decoder):
    rng = np.random.default_rng(20261121)
    for _ in range(300):
        arrow_type = TYPES[rng.integers(len(TYPES))]
        pattern = PATTERNS[rng.integers(len(PATTERNS))]
        rows = int(rng.choice([1, 2, 7, 8, 9, 63, 1023, 1024, 1025, int(rng.integers(1, 4000))]))
        array = made(arrow_type, pattern, rows, rng, float(rng.choice([0, 0.01, 0.5, 0.99])))
        start = int(rng.integers(0, rows))
        part = array.slice(start, int(rng.integers(0, rows - start + 1)))
        allow = None if rng.random() < 0.5 else frozenset(name for name in encoders.NAMES if rng.random() < 0.6)
        payload = unit_codec.encode(part, allow=allow).payload
        assert_same(decoder.decode(payload, arrow_type, len(part)), part)


def test_encoders_in_numpy_write_what_the_kernels_decode(decoder, monkeypatch):
    rng = np.random.default_rng(8)
    arrays = [
        made(arrow_type, pattern, ROWS, rng, nulls)
        for arrow_type in TYPES
        for pattern in PATTERNS
        for nulls in (0, 0.1)
    ]
    fast = [unit_codec.encode(array, allow=encoders.NAMES - {"symbols"}).payload for array in arrays]
    monkeypatch.setattr(native, "library", lambda: None)
    slow = [unit_codec.encode(array, allow=encoders.NAMES - {"symbols"}).payload for array in arrays]
    for array, one, other in zip(arrays, fast, slow, strict=True):
        assert_same(decoder.decode(other, array.type, len(array)), array)
        assert len(one) == len(other)


def test_without_the_library_the_wasm_module_decodes(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: None)
    decoder = unit_codec.Decoder(unit_codec.modules()[unit_codec.CORE])
    assert decoder.how == "wasm"
    array = pa.array(["a", None, "Straße", "x" * 20])
    assert_same(decoder.decode(unit_codec.encode(array).payload, array.type, 4), array)


def test_a_missing_library_is_reported_once(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "KERNELS", tmp_path)
    native.library.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="native library is not built") as told:
            found = [native.library(), native.library()]
        assert found == [None, None]
        assert len(told) == 1
    finally:
        native.library.cache_clear()


def test_without_the_module_writing_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "KERNELS", tmp_path)
    unit_codec._core.cache_clear()
    try:
        with pytest.raises(F3Error, match=r"core\.wasm, which is not built: 'pip install ziglang'"):
            unit_codec.modules()
    finally:
        unit_codec._core.cache_clear()


@pytest.mark.parametrize(
    "array", [pa.nulls(3), pa.array([[1]]), pa.array(["a"]).dictionary_encode(), pa.array(["a"], pa.string_view())]
)
def test_a_type_that_cannot_be_stored_is_refused(array):
    with pytest.raises(F3Error, match="cannot be stored as one EncUnit"):
        unit_codec.encode(array)


def test_other_rows_or_another_type_than_written_are_refused(decoder, sandbox):
    payload = unit_codec.encode(pa.array([1, 2, 3])).payload
    for one in (decoder, sandbox):
        for arrow_type, rows in ((pa.int64(), 4), (pa.int32(), 3), (pa.string(), 3), (pa.bool_(), 3)):
            with pytest.raises(F3Error, match="another number of rows or another type"):
                one.decode(payload, arrow_type, rows)


def test_strings_that_are_not_utf8_are_refused_where_the_type_says_they_are(decoder, sandbox):
    for broken in ([b"ok", b"\xff\xfe"], ["日本".encode()[:4], "日本".encode()[4:]], [b"\xed\xa0\x80"] * 3):
        array = pa.array(broken, pa.binary())
        payload = unit_codec.encode(array).payload
        for one in (decoder, sandbox):
            assert one.decode(payload, pa.binary(), len(broken)).equals(array)
            with pytest.raises(F3Error, match="UTF-8"):
                one.decode(payload, pa.string(), len(broken))


def test_an_encoder_that_returns_no_bytes_is_told_by_name():
    unit_codec.register("texts", lambda array: "7", unit_codec.modules()[unit_codec.CORE])
    try:
        with pytest.raises(F3Error, match="encoding 'texts': its encoder returned str, not bytes or None"):
            unit_codec.encode(pa.array([7]))
    finally:
        unit_codec.unregister("texts")


def test_codes_of_a_dictionary_are_not_searched_for_repetitions(monkeypatch, decoder):
    """A dictionary of the codes would have as many codes, so looking for one is a waste of time."""
    searched = []
    count = arithmetic.repetitions
    monkeypatch.setattr(
        arithmetic, "repetitions", lambda values, *rest: searched.append(values) or count(values, *rest)
    )
    rng = np.random.default_rng(1)
    array = pa.array(rng.choice(rng.random(9000), 65_536))
    payload = unit_codec.encode(array).payload
    assert [each.itemsize for each in searched if len(each) == 65_536] == [8]
    assert unit_codec.encoding_of("core", memoryview(payload)) == "dictionary"
    assert decoder.decode(payload, array.type, len(array)).equals(array)


@pytest.mark.parametrize("numbers", [[7], [65_535, 0, 65_535], list(range(65_536)) * 2])
def test_distinct_numbers_of_two_bytes_are_found(numbers):
    values = np.array(numbers, np.uint16)
    entries, codes = encoders._distinct(values)
    assert entries.tolist() == sorted(set(numbers))
    assert entries[codes].tolist() == numbers


def test_an_added_encoding_is_asked_first_and_can_be_taken_out():
    wasm = unit_codec.modules()[unit_codec.CORE]
    unit_codec.register("sevens", lambda array: b"7" if array.to_pylist() == [7] else None, wasm)
    try:
        assert unit_codec.encode(pa.array([7])) == unit_codec.Encoded(b"7", "sevens")
        assert unit_codec.encode(pa.array([8])).module == unit_codec.CORE
        assert unit_codec.modules()["sevens"] == wasm
        with pytest.raises(F3Error, match="an encoding named 'sevens' exists"):
            unit_codec.register("sevens", lambda array: None, wasm)
    finally:
        unit_codec.unregister("sevens")
    assert "sevens" not in unit_codec.modules()
    with pytest.raises(F3Error, match="must be a Wasm module"):
        unit_codec.register("text", lambda array: None, b"text")
    # The module would be stored in files that could then not be read.
    with pytest.raises(F3Error, match=r"^encoding 'text': the decoder in the file exports no FFFUDE_VERSION_1_0"):
        unit_codec.register("text", lambda array: None, b"\0asm\1\0\0\0")
