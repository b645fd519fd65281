"""Calls to catalog and nodes, from clients and servers: persistent connections, tokens, time limits.

Raises errors of near storage.
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
"""Time limit of a call without a stream."""

_ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
"""Buffers of Flight's batches may start at any address, but computing on them requires alignment."""

ReplyT = TypeVar("ReplyT")


class Caller:
    """Connections to any number of servers, each kept until `close`. Thread-safe.

    `token` is sent with calls whose `options` include it. `tls_roots` are PEM certificates to trust instead of the
    system's certificates.
    """

    def __init__(self, token: str | None = None, tls_roots: bytes | None = None) -> None:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise UnauthenticatedError(
                "token: contains characters that are not printable ASCII; ask the operator of the catalog for a token"
            )
        self._token = token
        self._tls_roots = tls_roots
        self._clients: dict[str, flight.FlightClient] = {}
        self._lock = threading.Lock()
        self._closed = False

    def client(self, location: str) -> flight.FlightClient:
        """Return the connection to `grpc://host:port` or `grpc+tls://host:port`. The connection is established by the
        first call.

        Raises RequestError for any other address, and for an unencrypted address of another machine, because tokens and
        rows must not cross a network unencrypted.
        """
        with self._lock:
            if self._closed:
                raise RequestError("this client is closed; connect again")
            found = self._clients.get(location)
            if found is None:
                check_location(location)
                roots = {"tls_root_certs": self._tls_roots} if self._tls_roots is not None else {}
                try:
                    found = self._clients[location] = flight.FlightClient(location, **roots)
                except pa.ArrowException as error:
                    raise RequestError(f"{location}: Arrow does not accept this address ({str(error)[:200]})") from None
            return found

    def options(self, timeout_s: float = CALL_S, with_token: bool = True) -> flight.FlightCallOptions:
        """Return the options of one call: its time limit and the token."""
        headers = []
        if self._token is not None and with_token:
            headers = [(b"authorization", f"Bearer {self._token}".encode())]
        return flight.FlightCallOptions(timeout=timeout_s, headers=headers, read_options=_ALIGNED)

    def act(self, location: str, name: str, message: msgspec.Struct | bytes, timeout_s: float = CALL_S) -> bytes:
        """Run an action of the server at `location` and return its reply. Raises SilentError if no server answers
        there."""
        body = message if isinstance(message, bytes) else encode(message)
        client = self.client(location)
        try:
            (result,) = list(client.do_action(flight.Action(name, body), self.options(timeout_s)))
        except Exception as error:
            raise from_call(location, error) from None
        return bytes(result.body)

    def ask(
        self, location: str, name: str, message: msgspec.Struct | bytes, kind: type[ReplyT], timeout_s: float = CALL_S
    ) -> ReplyT:
        """Run an action of the server at `location`. Return its reply, decoded as a message of `kind`."""
        return decode(kind, self.act(location, name, message, timeout_s), RECEIPT_BYTES)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


def check_location(location: str) -> None:
    """Raise RequestError unless `location` is a valid server address that uses TLS or is on this machine."""
    check_uri(location)
    try:
        parts = urlsplit(location)
        known = parts.hostname and parts.port
    except ValueError:
        known = False
    if not known or parts.hostname is None:
        raise RequestError(f"{location!r}: no host, or no port from 1 to 65535; write grpc://HOST:PORT")
    if parts.scheme != "grpc+tls" and not is_loopback(parts.hostname):
        raise RequestError(f"{location}: without TLS only loopback addresses can be called; use grpc+tls://")
