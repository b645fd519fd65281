"""The example encodings, added as a user would add them, store the arrays that they support and no other arrays."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("wasmtime")

from libraries.f3.decoders import native
from libraries.f3.encodings import unit_codec
from libraries.f3.errors import F3Error
from libraries.f3.examples import linear, windows

pytestmark = pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")


@pytest.fixture(params=[linear, windows], ids=lambda example: example.NAME)
def example(request):
    request.param.add()
    yield request.param
    unit_codec.unregister(request.param.NAME)


def fitting(example) -> pa.Array:
    if example is linear:
        return pa.array(np.arange(65536) * -3 + 2**62)
    rng = np.random.default_rng(2)
    pieces = rng.integers(-(2**31), 2**31, (200, 128), np.int32)
    return pa.array(pieces[rng.integers(0, 200, 512)].ravel())


def test_what_fits_is_stored_small_and_comes_back_by_its_module(example):
    array = fitting(example)
    encoded = unit_codec.encode(array)
    assert encoded.module == example.NAME
    assert len(encoded.payload) < array.nbytes / 2
    decoder = unit_codec.Decoder(unit_codec.modules()[example.NAME])
    assert decoder.how == "wasm"
    assert decoder.decode(encoded.payload, array.type, len(array)).equals(array)
    assert len(unit_codec.modules()[example.NAME]) < 5000


def test_what_does_not_fit_is_stored_as_before(example):
    for array in (pa.array([1, 2, 4]), pa.array([1, None, 3]), pa.array(range(100), pa.int32()), pa.array(["a"])):
        assert unit_codec.encode(array).module == unit_codec.CORE


def test_a_forged_payload_is_refused_in_the_modules_words(example):
    decoder = unit_codec.Decoder(unit_codec.modules()[example.NAME])
    for forged in (b"", b"\xff" * 20, b"\xff" * 8 + bytes(20)):
        with pytest.raises(F3Error, match="says: "):
            decoder.decode(forged, fitting(example).type, 10)
