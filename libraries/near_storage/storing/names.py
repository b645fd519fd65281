"""Check names from outside before they are used in a path or in the catalog."""

from __future__ import annotations

import re

from libraries.near_storage.errors import RequestError

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_URI = re.compile(r"grpc(\+tcp|\+tls)?://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253}):[0-9]{1,5}", re.ASCII)
"""Allowed addresses. Arrow refuses an invalid address only when a client calls this address. A bad address in the
catalog would therefore cause errors for all clients."""


def check_digest(digest: str) -> str:
    """Check a blake2b-256 digest of 64 lower-case hex digits. Raises `RequestError` for anything else."""
    return _checked(_DIGEST, digest, "digest of a partition", "64 digits from 0-9 and a-f")


def check_table(name: str) -> str:
    """Check a table's name. Allowed are 1 to 128 letters, digits, `_`, `-` and `.`, of which the first is not `-` or
    `.`. Raises `RequestError` for other names."""
    return _checked(
        _NAME, name, "name of a table", "1 to 128 letters, digits, '_', '-' and '.', not starting with '-' or '.'"
    )


def check_node(name: str) -> str:
    """Check a storage node's name by the rule for tables. Raises `RequestError` for invalid names."""
    return _checked(
        _NAME, name, "name of a node", "1 to 128 letters, digits, '_', '-' and '.', not starting with '-' or '.'"
    )


def check_folder(identity: str) -> str:
    """Check the identity of a storage node's folder by the rule for tables. Raises `RequestError` if it is invalid."""
    return _checked(
        _NAME,
        identity,
        "identity of a folder",
        "1 to 128 letters, digits, '_', '-' and '.', not starting with '-' or '.'",
    )


def check_uri(uri: str) -> str:
    """Check a server's Flight address. Raises `RequestError` if Flight does not support it."""
    return _checked(_URI, uri, "address of a server", "grpc://HOST:PORT or grpc+tls://HOST:PORT")


def _checked(pattern: re.Pattern[str], text: str, what: str, allowed: str) -> str:
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise RequestError(f"The {what} {repr(text)[:80]} is not allowed: it must be {allowed}.")
    return text
