"""Calls to catalog and nodes, by clients and by servers of one another: connections that are kept, tokens, time limits.

Errors come out as ours.
"""

from __future__ import annotations

import threading
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.errors import RequestError, UnauthenticatedError
from libraries.near_storage.serving.guard import from_call
from libraries.near_storage.serving.protocol import RECEIPT_BYTES, decode, encode
from libraries.near_storage.serving.security import is_loopback
from libraries.near_storage.storing.names import check_uri

CALL_S = 30.0
"""How long a call without a stream may take."""

_ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
"""Flight's batches lie anywhere in memory; what computes on them wants numbers at their own boundaries."""

ReplyT = TypeVar("ReplyT")


class Caller:
    """Connections to any number of servers, each kept until `close`. Safe for threads.

    `token` is shown to each server that is called with it; `tls_roots` are PEM certificates to trust in place of the
    system's.
    """

    def __init__(self, token: str | None = None, tls_roots: bytes | None = None) -> None:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise UnauthenticatedError("token: it has characters that no token has; ask who runs the catalog for one")
        self._token = token
        self._tls_roots = tls_roots
        self._clients: dict[str, flight.FlightClient] = {}
        self._lock = threading.Lock()
        self._closed = False

    def client(self, location: str) -> flight.FlightClient:
        """The connection to `grpc://host:port` or `grpc+tls://host:port`; it is made by its first call.

        RequestError for any other address, and for one in the clear that is not this machine: neither tokens nor rows
        go over a network unencrypted.
        """
        with self._lock:
            if self._closed:
                raise RequestError("this client was closed; connect again")
            found = self._clients.get(location)
            if found is None:
                check_location(location)
                roots = {"tls_root_certs": self._tls_roots} if self._tls_roots is not None else {}
                try:
                    found = self._clients[location] = flight.FlightClient(location, **roots)
                except pa.ArrowException as error:
                    raise RequestError(f"{location}: Arrow takes it for no address ({str(error)[:200]})") from None
            return found

    def options(self, timeout_s: float = CALL_S, with_token: bool = True) -> flight.FlightCallOptions:
        """Options of one call: its time limit, and the token."""
        headers = []
        if self._token is not None and with_token:
            headers = [(b"authorization", f"Bearer {self._token}".encode())]
        return flight.FlightCallOptions(timeout=timeout_s, headers=headers, read_options=_ALIGNED)

    def act(self, location: str, name: str, message: msgspec.Struct | bytes, timeout_s: float = CALL_S) -> bytes:
        """The answer to an action. SilentError if nobody answers there."""
        body = message if isinstance(message, bytes) else encode(message)
        client = self.client(location)
        try:
            (result,) = list(client.do_action(flight.Action(name, body), self.options(timeout_s)))
        except Exception as error:
            raise from_call(location, error) from None
        return bytes(result.body)

    def ask(
        self,
        location: str,
        name: str,
        message: msgspec.Struct | bytes,
        kind: type[ReplyT],
        timeout_s: float = CALL_S,
    ) -> ReplyT:
        """The answer to an action, as a message of `kind`."""
        return decode(kind, self.act(location, name, message, timeout_s), RECEIPT_BYTES)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


def check_location(location: str) -> None:
    """RequestError unless the address is one of a server, with TLS or on this machine."""
    check_uri(location)
    try:
        parts = urlsplit(location)
        known = parts.hostname and parts.port
    except ValueError:
        known = False
    if not known or parts.hostname is None:
        raise RequestError(f"{location!r}: no host, or no port from 1 to 65535; write grpc://HOST:PORT")
    if parts.scheme != "grpc+tls" and not is_loopback(parts.hostname):
        raise RequestError(f"{location}: without TLS only this machine itself is called; write grpc+tls://")
