"""A module that states a known name and version is decoded natively, any other is run, and nothing else decides."""

import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraries import f3
from libraries.f3.decoders import native
from libraries.f3.encodings import unit_codec
from libraries.f3.encodings.versions import NATIVE, EncodingVersion, version_of
from libraries.f3.errors import F3Error
from libraries.f3.examples import linear

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")

_OWN = str(NATIVE).encode()


def _stating(text: bytes) -> bytes:
    """Return this package's module with another text of the same length in its section."""
    own = unit_codec.modules()[unit_codec.CORE]
    assert len(text) == len(_OWN)
    return own.replace(_OWN, text)


def _how(wasm: bytes) -> str:
    decoder = unit_codec.Decoder(wasm)
    payload = unit_codec.encode(pa.array([1, None, 3])).payload
    assert decoder.decode(payload, pa.int64(), 3).to_pylist() == [1, None, 3]
    return decoder.how


def test_the_module_the_library_and_this_package_have_one_version():
    own = unit_codec.modules()[unit_codec.CORE]
    assert version_of(own) == NATIVE
    assert own.count(_OWN) == 1
    assert divmod(native.library().f3_version(), 1 << 16) == (NATIVE.major, NATIVE.minor)


def test_another_build_of_the_same_version_is_decoded_natively():
    assert _how(unit_codec.modules()[unit_codec.CORE] + b"\x00\x05\x04note") == "native"
    assert _how(_stating(f"{NATIVE.name} {NATIVE.major}.{NATIVE.minor}.{NATIVE.patch + 1}".encode())) == "native"


@pytest.mark.parametrize(
    "text",
    [b"format-bench.corf 1.0.0", b"format-bench.core 2.0.0", b"format-bench.core 1.9.0", b"format-bench.core 1.0.x"],
)
def test_other_names_and_newer_versions_are_run(text):
    assert _how(_stating(text)) == "wasm"


@pytest.mark.parametrize(
    ("major", "minor", "decodes"),
    [(1, 0, True), (1, 1, True), (1, 2, True), (1, 3, False), (0, 1, False), (2, 0, False)],
)
def test_decoders_decode_earlier_minor_versions_of_their_major_version(major, minor, decodes):
    ours = EncodingVersion("a", 1, 2, 0)
    assert ours.decodes(EncodingVersion("a", major, minor, 7)) is decodes
    assert not ours.decodes(EncodingVersion("b", major, minor, 7))
    assert not ours.decodes(None)


def test_a_module_that_states_our_version_wrongly_is_run_when_asked_for():
    """The statement is believed, so native decoders meet payloads that are not theirs. They refuse them."""
    section = b"\x0bf3.encoding" + _OWN
    code = Path(linear.__file__).with_name("linear.wasm").read_bytes() + b"\0" + bytes([len(section)]) + section
    out = io.BytesIO()
    unit_codec.register("linear", linear.encode, code)
    try:
        table = pa.table({"a": range(7, 7 + 3 * 5000, 3)})
        f3.write(table, out)
    finally:
        unit_codec.unregister("linear")
    with f3.open(out) as file, pytest.raises(F3Error, match="EncUnit 0 of 1: the payload"):
        file.read()
    with f3.open(out, prefer="wasm") as file:
        assert file.read().equals(table)
        assert [(module.encoding, module.how) for module in file.modules] == [(str(NATIVE), "wasm")]


@given(st.binary(max_size=60))
def test_any_bytes_have_a_version_or_none(data):
    assert version_of(b"\0asm\1\0\0\0" + data) in (None, NATIVE) or b"f3.encoding" in data
    assert version_of(data) is None or b"f3.encoding" in data


def test_a_module_of_millions_of_sections_states_nothing():
    assert version_of(b"\0asm\1\0\0\0" + b"\0\0" * 5_000_000) is None


def test_sections_that_are_cut_short_or_too_long_state_nothing():
    own = unit_codec.modules()[unit_codec.CORE]
    assert version_of(own[: own.index(_OWN) + 5]) is None
    section = b"\x0bf3.encoding" + _OWN
    assert version_of(b"\0asm\1\0\0\0\0" + bytes([len(section)]) + section) == NATIVE
    assert version_of(b"\0asm\1\0\0\0\0\xff\xff\xff\xff\xff" + section) is None
    long = b"\x0bf3.encoding" + b"a" * 101
    assert version_of(b"\0asm\1\0\0\0\0" + bytes([len(long)]) + long) is None
