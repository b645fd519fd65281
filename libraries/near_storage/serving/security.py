"""Who may speak to a server, and over which wire: bearer tokens, TLS, the cluster's secret.

Tokens are random (`new_token`), so one SHA-256 of each is enough at rest. It knows no message and no disk layout; files
are read once, at start.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow.flight as flight

from libraries.near_storage.errors import RequestError, UnauthenticatedError
from libraries.near_storage.serving.tickets import SECRET_BYTES

Role = Literal["client", "cluster", "nobody"]
"""client: has a token of the catalog. cluster: a server of this cluster. nobody: may show a ticket, no more."""

TOKEN_CHARACTERS = 32
"""The least characters of a token: shorter ones could be guessed from their hash."""
BEARER = "bearer"


@dataclass(frozen=True)
class Tls:
    """Certificate chain and private key of a server, as PEM."""

    certificate: bytes
    key: bytes


def read_tls(certificate: Path, key: Path) -> Tls:
    """Both files of a server's TLS; RequestError if one cannot be read."""
    try:
        return Tls(certificate.read_bytes(), key.read_bytes())
    except OSError as error:
        raise RequestError(f"TLS: cannot read {error.filename} ({error.strerror})") from None


def new_token() -> str:
    """A token nobody can guess: 256 random bits."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """What a server keeps of a token: its SHA-256 in hexadecimal. RequestError if it is short enough to be guessed."""
    if len(token) < TOKEN_CHARACTERS:
        raise RequestError(
            f"token: {len(token)} characters, at least {TOKEN_CHARACTERS} are needed; "
            "make one with near_storage.new_token()"
        )
    return hashlib.sha256(token.encode()).hexdigest()


def new_secret() -> bytes:
    """A cluster's secret: 256 random bits, as hexadecimal text that can lie in a file."""
    return secrets.token_hex(SECRET_BYTES).encode()


def read_secret(file: Path) -> bytes:
    """The secret that all servers of a cluster share.

    RequestError if the file cannot be read, is shorter than 32 bytes, or may be read by other users of the machine.
    """
    try:
        mode = os.stat(file).st_mode
        secret = file.read_bytes().strip()
    except OSError as error:
        raise RequestError(f"secret: cannot read {file} ({error.strerror})") from None
    if mode & 0o077:
        raise RequestError(f"secret: {file} may be read by other users; run: chmod 600 {file}")
    if len(secret) < SECRET_BYTES:
        raise RequestError(
            f"secret: {file} holds {len(secret)} bytes, at least {SECRET_BYTES} are needed; copy the catalog's, or "
            "remove the catalog's own, which then makes another"
        )
    return secret


def check_secret(secret: bytes) -> None:
    """RequestError if the secret is short enough to be guessed."""
    if len(secret) < SECRET_BYTES:
        raise RequestError(f"secret: {len(secret)} bytes, at least {SECRET_BYTES} are needed")


def cluster_token(secret: bytes) -> str:
    """By what servers of one cluster know each other: derived from the secret, which itself never travels."""
    return hmac.new(secret, b"near storage: a server of this cluster", hashlib.sha256).hexdigest()


def check_address(host: str, tls: Tls | None) -> None:
    """RequestError if a server would speak in the clear to more than its own machine.

    Without TLS tokens and data can be read on the way, so that nothing but loopback is served.
    """
    if tls is None and not is_loopback(host):
        raise RequestError(
            f"{host}: without TLS nothing but this machine itself is served. "
            "Name a certificate and its key, or serve on 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether every address of the host is the machine itself."""
    host = host.strip("[]")
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        raise RequestError(f"{host}: no address is known for this host") from None
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def is_everywhere(host: str) -> bool:
    """Whether it means all addresses of a machine: one can listen there, and nobody can call it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


class Bearer(flight.ServerMiddleware):
    """What is known of the caller of one call."""

    def __init__(self, role: Role) -> None:
        self.role: Role = role


class BearerFactory(flight.ServerMiddlewareFactory):
    """Looks at the token of each call before anything else does.

    A token that is shown must be one of `roles` (its hash -> what it allows). A call without a token is let through as
    nobody, for the sake of tickets and of being asked whether one is alive; the server refuses it everything else.
    """

    def __init__(self, roles: Mapping[str, Role]) -> None:
        self._roles = dict(roles)

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, list[str]]) -> Bearer:
        """Called by Flight for each call, in the call's own thread."""
        if info.method == flight.FlightMethod.GET_SCHEMA:
            # pyarrow sends the traceback of whatever this method raises, typed errors included.
            raise flight.FlightServerError("GetSchema is not answered: GetFlightInfo tells the schema too")
        shown = [value for name, values in headers.items() if name.lower() == "authorization" for value in values]
        if not shown:
            return Bearer("nobody")
        role = self._role(shown[0]) if len(shown) == 1 else None
        if role is None:
            raise flight.FlightUnauthenticatedError("token: unknown; ask who runs the catalog for one")
        return Bearer(role)

    def _role(self, header: object) -> Role | None:
        kind, _, token = str(header).partition(" ")
        hashed = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
        found: Role | None = None
        for known, role in self._roles.items():
            # All are compared, each in constant time: how long it takes tells nothing.
            if hmac.compare_digest(known, hashed):
                found = role
        return found if kind.lower() == BEARER else None


def role_of(context: flight.ServerCallContext) -> Role:
    """The role of who calls."""
    bearer = context.get_middleware(BEARER)
    return bearer.role if isinstance(bearer, Bearer) else "nobody"


def require(context: flight.ServerCallContext, *roles: Role) -> None:
    """UnauthenticatedError unless the caller has one of the roles."""
    if role_of(context) not in roles:
        raise UnauthenticatedError(f"this needs the token of a {' or '.join(roles)}")
