"""Messages between the runner, services and the proxy. Each is a struct that is sent as a line of JSON."""

from __future__ import annotations

import msgspec


class Ready(msgspec.Struct, frozen=True):
    """The line that a service prints when it is ready. Services may add fields, which are ignored."""

    port: int
    """The port of 127.0.0.1 on which the service listens."""


class ProxyReady(msgspec.Struct, frozen=True):
    """The line that the proxy prints when it is ready."""

    ports: tuple[int, ...]
    """The ports on which the proxy listens, one for each service."""


class Destination(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line that the proxy reads: it forwards connections from its port at index `place` to `port`."""

    place: int
    port: int


def line_of(message: msgspec.Struct) -> bytes:
    """Return a message as one line of JSON, with the newline."""
    return msgspec.json.encode(message) + b"\n"
