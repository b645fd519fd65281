"""Describe programs that serve a stored copy over TCP, so that Format Bench can start them.

An adapter only describes its services. The package `bench_runner` starts and stops the services, gives their addresses
to the adapter, and may put a proxy between client and service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TOKEN = "FORMAT_BENCH_SERVICE_TOKEN"
"""Environment variable with the token that clients must send to services. Format Bench chooses the token."""


@dataclass(frozen=True)
class Service:
    """One service program, started with the current Python interpreter as `python -P` plus `command`.

    In `command`, '{advertised}' is replaced by the address 'host:port' under which clients reach the service, or by
    nothing if clients use the address on which the service listens. '{NAME}' is replaced by the address of the service
    called NAME, which must come earlier in the list of services. The service listens on 127.0.0.1 at a port of its
    choice, and prints a line of JSON such as {"port": 34567} when it is ready. The service exits on SIGTERM.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Served:
    """The running services of a stored copy.

    `addresses` has the address 'host:port' of each service by name. `token` is the token that clients must send."""

    addresses: Mapping[str, str]
    token: str
