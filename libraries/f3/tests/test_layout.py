"""The postscript: the last 32 bytes of a file, through which all other sections are found."""

import pytest
import xxhash

from libraries.f3.container.layout import Postscript, read_postscript
from libraries.f3.errors import F3Error

# The original's own test vector (specification 1.1).
VECTOR = bytes.fromhex("2A000000 17000000 00 00 1100000000000000 1300000000000000 0000 0100 4633")


def test_the_original_s_test_vector_is_written_and_read():
    postscript = Postscript(metadata_bytes=42, footer_bytes=23, data_checksum=17, schema_checksum=19)
    assert postscript.packed() == VECTOR
    assert read_postscript(VECTOR, 1000) == postscript


def test_the_checksum_is_the_original_s():
    assert xxhash.xxh64_intdigest(b"") == 0xEF46DB3751D8E999


@pytest.mark.parametrize(
    ("place", "byte", "told"),
    [
        (31, b"4", "ends with b'F4'"),
        (26, b"\1", r"version 1\.1; .* 0\.1 is"),
        (28, b"\2", r"version 0\.2; .* 0\.1 is"),
        (9, b"\1", "checksums of type 1"),
        (8, b"\1", "a compressed footer"),
        (4, b"\0", "of 0 bytes in 42"),
        (4, b"\x30", "of 48 bytes in 42"),
        (3, b"\x10", "metadata <= 968"),
    ],
)
def test_what_cannot_be_is_refused(place, byte, told):
    with pytest.raises(F3Error, match=told):
        read_postscript(VECTOR[:place] + byte + VECTOR[place + 1 :], 1000)


@pytest.mark.parametrize("length", [0, 2, 31])
def test_a_file_shorter_than_a_postscript_is_none(length):
    with pytest.raises(F3Error, match="too few for an F3 file"):
        read_postscript(VECTOR[:length], length)
