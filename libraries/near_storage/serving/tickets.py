"""Tickets, which permit a caller to request certain data from a node for a short time.

A ticket is a JSON grant, signed by HMAC-SHA256 (RFC 2104) with the cluster's secret. Nodes need no list of users,
because the catalog authenticated the client before it issued the ticket, and a ticket expires soon. After the signed
part a client may append an unsigned position to resume at, which can only shorten the answer.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Literal

import msgspec

from libraries.near_storage.errors import RequestError, UnauthenticatedError
from libraries.near_storage.serving.protocol import (
    REQUEST_BYTES,
    Footers,
    Message,
    Piece,
    Position,
    Way,
    decode,
    encode,
)

LIFETIME_S = 60
"""Validity of a ticket. A running stream continues after this time; a stream that is resumed later needs a new
ticket."""
SECRET_BYTES = 32
"""Minimum bytes of a cluster's secret."""

_HEAD = struct.Struct("<4s32sI")
_MAGIC = b"NST1"
_EMPTY = msgspec.Raw(b"null")


class Grant(Message, frozen=True):
    """A permission to read pieces of one table version by one access path, or to upload one partition.

    For an upload, `upload` is the name of the upload, and `stored_bytes` is the size of the partition. The node accepts
    only a file of this size, with the digest in `pieces`.
    """

    kind: Way | Literal["put"]
    table: str
    version: int
    pieces: tuple[Piece, ...]
    expires_s: float
    query: msgspec.Raw = _EMPTY
    footers: Footers = "cached"
    filtered: bool = True
    upload: str = ""
    stored_bytes: int = 0


class Wish(Message, frozen=True):
    """The unsigned end of a ticket, written by the client. The stream resumes after the position `after`. `known` are
    the positions of the partitions whose footers the client already has, so that V2 need not send them."""

    after: Position | None = None
    known: tuple[int, ...] = ()


def _signature(secret: bytes, payload: bytes | memoryview) -> bytes:
    return hmac.digest(secret, payload, hashlib.sha256)


def issue(secret: bytes, grant: Grant) -> bytes:
    """Sign a grant as a ticket. Raises RequestError if the ticket is longer than nodes accept."""
    payload = encode(grant)
    if _HEAD.size + len(payload) > REQUEST_BYTES:
        raise RequestError(
            f"the ticket of this query has {len(payload)} bytes, at most {REQUEST_BYTES} are allowed: "
            "request one endpoint for each partition (`split`), or use a filter that leaves fewer row groups"
        )
    return _HEAD.pack(_MAGIC, _signature(secret, payload), len(payload)) + payload


def with_wish(ticket: bytes, wish: Wish) -> bytes:
    """Return the ticket with `wish` as its unsigned end. An earlier wish is replaced."""
    length = _HEAD.unpack_from(ticket)[2]
    return ticket[: _HEAD.size + length] + encode(wish)


def open_ticket(secret: bytes, ticket: bytes, now_s: float, kinds: tuple[str, ...]) -> tuple[Grant, Wish]:
    """Return the grant of a ticket, and the wish at its end.

    Raises UnauthenticatedError if the ticket was not signed by this cluster, has expired, or is not of one of `kinds`.
    Raises RequestError if the ticket is too long or its unsigned end is invalid. The signature is compared in constant
    time, before the grant is decoded.
    """
    if len(ticket) > REQUEST_BYTES:
        raise RequestError(f"ticket: has {len(ticket)} bytes, at most {REQUEST_BYTES} are allowed")
    forged = UnauthenticatedError("ticket: not signed by this cluster; ask the catalog for one")
    if len(ticket) < _HEAD.size:
        raise forged
    magic, signature, length = _HEAD.unpack_from(ticket)
    payload = memoryview(ticket)[_HEAD.size : _HEAD.size + length]
    signed = hmac.compare_digest(_signature(secret, payload), signature)
    if magic != _MAGIC or len(payload) != length or not signed:
        raise forged
    grant = decode(Grant, payload)
    if grant.expires_s <= now_s:
        raise UnauthenticatedError(
            f"ticket: expired {now_s - grant.expires_s:.0f} s ago; ask the catalog for a new one"
        )
    if grant.kind not in kinds:
        raise UnauthenticatedError(f"ticket: valid for {grant.kind}, not for {' or '.join(kinds)}")
    rest = memoryview(ticket)[_HEAD.size + length :]
    return grant, decode(Wish, rest) if rest else Wish()


def sign_receipt(secret: bytes, upload: str, node: str, info: bytes) -> bytes:
    """Sign a node's receipt for a partition that is durable on the node. The catalog accepts no other proof.

    The name of the upload is part of the signed data, so that a receipt is invalid for another upload.
    """
    head = encode(_ReceiptHead(upload, node))
    payload = struct.pack("<I", len(head)) + head + info
    return _signature(secret, payload) + payload


class _ReceiptHead(Message, frozen=True):
    upload: str
    node: str


def open_receipt(secret: bytes, receipt: bytes | memoryview, most_bytes: int) -> tuple[str, str, bytes]:
    """Return upload, node and encoded `PartitionInfo` of a receipt. Raises UnauthenticatedError if the signature is
    wrong, and RequestError if the receipt is longer than `most_bytes`."""
    if len(receipt) > most_bytes:
        raise RequestError(f"receipt: has {len(receipt)} bytes, at most {most_bytes} are allowed")
    payload = memoryview(receipt)[32:]
    if not hmac.compare_digest(_signature(secret, payload), bytes(receipt[:32])) or len(payload) < 4:
        raise UnauthenticatedError("receipt: not signed by a node of this cluster")
    (length,) = struct.unpack_from("<I", payload)
    head = decode(_ReceiptHead, payload[4 : 4 + length])
    return head.upload, head.node, bytes(payload[4 + length :])
