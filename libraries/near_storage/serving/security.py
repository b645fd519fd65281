"""Access to a server: bearer tokens, TLS, the cluster's secret.

Tokens are random (`new_token`), so an unsalted SHA-256 hash is safe to store. Files are read once, at start.
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
"""client: a caller with a client token. cluster: a server of this cluster. nobody: a caller that may only use
tickets."""

TOKEN_CHARACTERS = 32
"""Minimum characters of a token. Shorter tokens could be guessed from their hash."""
BEARER = "bearer"


@dataclass(frozen=True)
class Tls:
    """Certificate chain and private key of a server, as PEM."""

    certificate: bytes
    key: bytes


def read_tls(certificate: Path, key: Path) -> Tls:
    """Read both TLS files of a server. Raises RequestError if a file cannot be read."""
    try:
        return Tls(certificate.read_bytes(), key.read_bytes())
    except OSError as error:
        raise RequestError(f"TLS: cannot read {error.filename} ({error.strerror})") from None


def new_token() -> str:
    """Return an unguessable token of 256 random bits."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token in hex, which a server stores. Raises RequestError if the token is too short."""
    if len(token) < TOKEN_CHARACTERS:
        raise RequestError(
            f"token: has {len(token)} characters, at least {TOKEN_CHARACTERS} are required; "
            "make one with near_storage.new_token()"
        )
    return hashlib.sha256(token.encode()).hexdigest()


def new_secret() -> bytes:
    """Return a new cluster secret: 256 random bits in hex, suitable for a file."""
    return secrets.token_hex(SECRET_BYTES).encode()


def read_secret(file: Path) -> bytes:
    """Read the secret that all servers of a cluster share.

    Raises RequestError if the file cannot be read, is shorter than 32 bytes, or is readable by other users.
    """
    try:
        mode = os.stat(file).st_mode
        secret = file.read_bytes().strip()
    except OSError as error:
        raise RequestError(f"secret: cannot read {file} ({error.strerror})") from None
    if mode & 0o077:
        raise RequestError(f"secret: {file} is readable by other users; run 'chmod 600 {file}'")
    if len(secret) < SECRET_BYTES:
        raise RequestError(
            f"secret: {file} has {len(secret)} bytes, at least {SECRET_BYTES} are required; on a node, "
            "copy the catalog's file; on the catalog, delete the file, and the catalog creates a new one"
        )
    return secret


def check_secret(secret: bytes) -> None:
    """Raise RequestError if the secret is too short."""
    if len(secret) < SECRET_BYTES:
        raise RequestError(f"secret: has {len(secret)} bytes, at least {SECRET_BYTES} are required")


def cluster_token(secret: bytes) -> str:
    """Return the token that servers of a cluster send each other. The token is derived from the secret, which is never
    sent."""
    return hmac.new(secret, b"near storage: a server of this cluster", hashlib.sha256).hexdigest()


def check_address(host: str, tls: Tls | None) -> None:
    """Raise RequestError if a server would be reachable from other machines without encryption.

    Without TLS, tokens and data can be read in transit, so only loopback is allowed.
    """
    if tls is None and not is_loopback(host):
        raise RequestError(
            f"{host}: without TLS a server may listen only on a loopback address. "
            "Give a certificate and its key, or serve on 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Return whether every address of the host is on this machine. Raises RequestError for an unknown host."""
    host = host.strip("[]")
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        raise RequestError(f"{host}: unknown host") from None
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def is_everywhere(host: str) -> bool:
    """Return whether the host stands for all addresses of a machine, e.g. 0.0.0.0. A server can listen at such a host,
    but clients cannot call it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


class Bearer(flight.ServerMiddleware):
    """The role of the caller of one call."""

    def __init__(self, role: Role) -> None:
        self.role: Role = role


class BearerFactory(flight.ServerMiddlewareFactory):
    """Checks the token of each call before anything else.

    The hash of a token must be a key of `roles`, which maps hashes to roles. A call without a token gets the role
    nobody, which is sufficient only for tickets and health checks.
    """

    def __init__(self, roles: Mapping[str, Role]) -> None:
        self._roles = dict(roles)

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, list[str]]) -> Bearer:
        """Return the role of the caller, or refuse the call. Flight calls this method for each call, in the thread of
        the call."""
        if info.method == flight.FlightMethod.GET_SCHEMA:
            # Refuse the call here. pyarrow sends the traceback of any exception from its GetSchema method, even of
            # typed errors.
            raise flight.FlightServerError("GetSchema is not supported: GetFlightInfo returns the schema too")
        shown = [value for name, values in headers.items() if name.lower() == "authorization" for value in values]
        if not shown:
            return Bearer("nobody")
        role = self._role(shown[0]) if len(shown) == 1 else None
        if role is None:
            raise flight.FlightUnauthenticatedError("token: unknown; ask the operator of the catalog for a valid token")
        return Bearer(role)

    def _role(self, header: object) -> Role | None:
        kind, _, token = str(header).partition(" ")
        hashed = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
        found: Role | None = None
        for known, role in self._roles.items():
            # Compare with all hashes, each in constant time, so that the duration reveals nothing.
            if hmac.compare_digest(known, hashed):
                found = role
        return found if kind.lower() == BEARER else None


def role_of(context: flight.ServerCallContext) -> Role:
    """Return the role of the caller."""
    bearer = context.get_middleware(BEARER)
    return bearer.role if isinstance(bearer, Bearer) else "nobody"


def require(context: flight.ServerCallContext, *roles: Role) -> None:
    """Raise UnauthenticatedError unless the caller has one of the roles."""
    if role_of(context) not in roles:
        raise UnauthenticatedError(f"this call requires the token of a {' or '.join(roles)}")
