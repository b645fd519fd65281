"""Messages survive encoding and decoding, and everything else is refused."""

import random

import msgspec
import pytest

from libraries.near_storage.errors import NearStorageError, RequestError
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Query
from libraries.near_storage.serving import protocol
from libraries.near_storage.serving.protocol import (
    Ask,
    Note,
    Piece,
    Place,
    Share,
    Totals,
    decode,
    decode_note,
    encode,
    from_runs,
    to_runs,
)

ASK = Ask(msgspec.Raw(wire.encode_query(Query("t", ("a",)))), "v2", version=3, positions=(1, 2))


def test_messages_come_back():
    assert wire.decode_query(bytes(decode(Ask, encode(ASK)).query)) == Query("t", ("a",))
    share = Share(("n",), (Piece(1, "ab", (0, 3), ()),), (1, 2), ("cd",), (b"\x00\xff",))
    assert decode(Share, encode(share)) == share
    for note in (Note(1, 2, 3, 4, 2**64 - 1), Totals(1, 2, 3, True)):
        assert decode_note(encode(note)) == note


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"null", b"[]", b"{}", b'{"upload":1}', b"\xff", b'{"upload":"u","position":"x"}', b"[" * 5_000),
        b'{"upload":"u","position":1,"digest":"d","stored_bytes":1,"more":1}',
    ],
)
def test_anything_else_is_refused(data):
    with pytest.raises(RequestError, match="Place"):
        decode(Place, data)


def test_long_messages_are_refused_unread():
    with pytest.raises(RequestError, match="at most"):
        decode(Place, b" " * (protocol.REQUEST_BYTES + 1))


@pytest.mark.parametrize("data", [b"", b'["batch",1]', b'["x",1,2,3,4]', b'["totals",1,2,3,4]', b"\xff\xfe", b"7"])
def test_what_is_no_note(data):
    with pytest.raises(RequestError, match="note"):
        decode_note(data)


def test_runs():
    rng = random.Random(5)
    for _ in range(300):
        numbers = sorted(rng.sample(range(60), rng.randrange(60)))
        assert from_runs(to_runs(numbers)) == numbers
    assert to_runs(range(20_739)) == (0, 20_739)
    for runs in ((1,), (0, 2**40), (-1, 2), (3, -1)):
        with pytest.raises(RequestError, match="row groups"):
            from_runs(runs)


def test_mutated_requests_are_decoded_or_refused():
    rng = random.Random(11)
    message = encode(ASK)
    for _ in range(2_000):
        changed = bytearray(message)
        for _ in range(rng.randrange(1, 5)):
            index = rng.randrange(len(changed))
            changed[index : index + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        try:
            wire.decode_query(bytes(decode(Ask, bytes(changed)).query))
        except NearStorageError:
            continue
