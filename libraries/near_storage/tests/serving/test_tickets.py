"""A ticket is valid for what the catalog granted, for a minute, and for nothing else."""

import random

import pytest

from libraries.near_storage.errors import NearStorageError, RequestError, UnauthenticatedError
from libraries.near_storage.serving.protocol import REQUEST_BYTES, Piece, Position
from libraries.near_storage.serving.tickets import (
    Grant,
    Wish,
    issue,
    open_receipt,
    open_ticket,
    sign_receipt,
    with_wish,
)

SECRET = b"s" * 32
GRANT = Grant("v1", "t", 3, (Piece(0, "ab" * 32, (0, 5), (0, 1)),), 1_060.0)


def opened(ticket: bytes, now_s: float = 1_000.0, kinds: tuple[str, ...] = ("v1", "v2")) -> tuple[Grant, Wish]:
    return open_ticket(SECRET, ticket, now_s, kinds)


def test_what_was_granted_comes_out():
    assert opened(issue(SECRET, GRANT)) == (GRANT, Wish())


def test_a_client_may_want_less_and_change_its_mind():
    ticket = with_wish(issue(SECRET, GRANT), Wish(Position(0, 2, 10), (0,)))
    assert opened(ticket) == (GRANT, Wish(Position(0, 2, 10), (0,)))
    assert opened(with_wish(ticket, Wish())) == (GRANT, Wish())


@pytest.mark.parametrize(("now_s", "good"), [(1_000.0, True), (1_059.9, True), (1_060.0, False), (9_999.0, False)])
def test_a_ticket_expires(now_s, good):
    if good:
        opened(issue(SECRET, GRANT), now_s)
    else:
        with pytest.raises(UnauthenticatedError, match="expired"):
            opened(issue(SECRET, GRANT), now_s)


def test_a_ticket_is_of_one_kind():
    with pytest.raises(UnauthenticatedError, match="v1, not for put"):
        opened(issue(SECRET, GRANT), kinds=("put",))


def test_a_ticket_of_another_cluster():
    with pytest.raises(UnauthenticatedError, match="not signed"):
        opened(issue(b"t" * 32, GRANT))


@pytest.mark.parametrize("ticket", [b"", b"NST1", b"NST1" + bytes(36), b"x" * 500])
def test_what_is_no_ticket(ticket):
    with pytest.raises(UnauthenticatedError):
        opened(ticket)


def test_a_ticket_that_is_too_long():
    with pytest.raises(RequestError, match="at most"):
        opened(issue(SECRET, GRANT) + b" " * REQUEST_BYTES)
    pieces = tuple(Piece(number, "ab" * 32, tuple(range(0, 400))) for number in range(5_000))
    with pytest.raises(RequestError, match="fewer row groups"):
        issue(SECRET, Grant("v1", "t", 3, pieces, 0.0))


def test_every_changed_bit_of_the_signed_part_is_found():
    ticket = issue(SECRET, GRANT)
    for index in range(len(ticket)):
        for bit in range(8):
            changed = bytearray(ticket)
            changed[index] ^= 1 << bit
            with pytest.raises(UnauthenticatedError):
                opened(bytes(changed))


def test_mutated_tickets_end_in_a_grant_or_an_error():
    """Bytes changed, cut and added anywhere, seed 7: the wish after the signed part may change, the grant never."""
    rng = random.Random(7)
    ticket = with_wish(issue(SECRET, GRANT), Wish(Position(0, 2, 10)))
    for _ in range(3_000):
        changed = bytearray(ticket)
        for _ in range(rng.randrange(1, 4)):
            index = rng.randrange(len(changed))
            changed[index : index + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        try:
            grant, _ = opened(bytes(changed))
        except NearStorageError:
            continue
        assert grant == GRANT


def test_a_receipt_is_of_one_upload_and_one_node():
    receipt = sign_receipt(SECRET, "upload", "node", b"info")
    assert open_receipt(SECRET, receipt, 1_000) == ("upload", "node", b"info")
    for changed in (receipt[:-1], receipt[:40] + b"x" + receipt[41:], b"", bytes(36)):
        with pytest.raises(UnauthenticatedError):
            open_receipt(SECRET, changed, 1_000)
    with pytest.raises(RequestError, match="at most 10"):
        open_receipt(SECRET, receipt, 10)
