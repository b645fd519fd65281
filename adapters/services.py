"""Describe programs that serve a stored copy over TCP, so that the harness can start them.

An adapter only describes them. The harness starts and ends them, chooses addresses, and may put a proxy in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TOKEN = "FORMAT_BENCH_SERVICE_TOKEN"
"""Environment variable with the token that services require. The harness chooses the token."""


@dataclass(frozen=True)
class Service:
    """One program, run by this Python as `python -P` with the words of `command`.

    In these, '{advertised}' is the address 'host:port' under which others reach the service; it is empty if that is
    where it listens. '{NAME}' is the address of a service that comes before it in the list. It listens on 127.0.0.1 at
    a port of its choice, and prints a line of JSON when it is ready: {"port": 34567}. It ends on SIGTERM.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Served:
    """Where a stored copy is served: the address 'host:port' of each service by name, and the token."""

    addresses: Mapping[str, str]
    token: str
