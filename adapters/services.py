"""Programs that serve a stored copy over TCP: what an adapter says of them, so that somebody else can start them.

An adapter describes; it starts nothing. Who starts them chooses addresses, may put something between, and ends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TOKEN = "FORMAT_BENCH_SERVICE_TOKEN"
"""The variable of the environment that holds the token which services ask for. Whoever starts them chooses it."""


@dataclass(frozen=True)
class Service:
    """One program, run by this Python: `python -P` with the words of `command`.

    In these '{advertised}' stands for the address, 'host:port', under which others are to reach it, empty where that is
    where it listens, and '{NAME}' for the address of a service that stands before it in the list. It listens on
    127.0.0.1, at a port of its own choice, and prints a line of JSON when it answers: {"port": 34567}. It ends when it
    gets SIGTERM.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Served:
    """Where a stored copy is served: the address of each service by its name, 'host:port', and the token."""

    addresses: Mapping[str, str]
    token: str
