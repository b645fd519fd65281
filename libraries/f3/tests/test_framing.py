"""Several payloads in one EncUnit: frames of this package, and blobs of the original."""

import contextlib

import pytest

from libraries.f3.container import framing
from libraries.f3.errors import F3Error
from libraries.f3.tests.originals import blob


def parts(unit, count):
    return [bytes(part) for part in framing.split(memoryview(unit), count)]


@pytest.mark.parametrize("payloads", [[b"", b""], [b"abc", b""], [b"", b"F3P"], [b"a", b"bc", b"def"]])
def test_framed_payloads_come_back(payloads):
    assert parts(framing.join(payloads), len(payloads)) == payloads


@pytest.mark.parametrize("count", [2, 3])
def test_blobs_are_told_by_their_own_lengths(count):
    blobs = [blob(bytes(range(size))) for size in (0, 1, 200)][:count]
    assert parts(b"".join(blobs), count) == blobs


def test_a_blob_does_not_look_like_a_frame():
    assert blob(b"abc")[0] % 64 == 0
    assert framing.join([b""])[0] % 64 != 0


BROKEN = [b"F3P\2" + bytes(7), b"F3P\3" + bytes(12), framing.join([b"a", b"b"]) + b"c", b"F3P", b""]


@pytest.mark.parametrize("unit", BROKEN)
def test_broken_frames_are_refused(unit):
    with pytest.raises(F3Error):
        framing.split(memoryview(unit), 2)


def test_every_cut_of_blobs_ends_in_an_error_or_in_payloads():
    whole = blob(b"abc") + blob(b"defg")
    for length in range(len(whole)):
        with contextlib.suppress(F3Error):
            framing.split(memoryview(whole[:length]), 2)
    with pytest.raises(F3Error, match=r"are left|has only"):
        framing.split(memoryview(whole[: len(blob(b"abc")) - 1]), 2)
