"""What the client and a host's agent exchange: structs as bytes, so that dask carries no object of ours."""

from __future__ import annotations

import msgspec

from bench_runner.conditions import Conditions
from bench_runner.request import Request


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Chains that are compared with each other: those of one suite, data set and set of conditions. A group is never
    divided between hosts, because ranks come from the samples of one machine."""

    suite: str
    dataset: str
    conditions: Conditions


class HostFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What identifies a host, and what must be equal on all hosts of a run."""

    boot_id: str
    """Identifies the running system. Two workers with the same boot id share a machine."""
    name: str
    cpu: str
    cores: int
    memory_bytes: int
    versions: dict[str, str]
    """Versions of Python, of all libraries, and of Format Bench with its adapters' sources."""

    @property
    def kind(self) -> tuple[str, int, int]:
        """Hosts of one kind may replace each other: equal processor, cores, and memory in whole gigabytes."""
        return self.cpu, self.cores, round(self.memory_bytes / 1e9)


class HostTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a run for one host."""

    run_id: str
    suites: tuple[str, ...]
    request: Request
    groups: tuple[Group, ...]
    machine: str
    """The host's name in records."""
    command: tuple[str, ...]
    digests: dict[str, str]
    """Digest of each data set on the client. Data that a host makes must have the same."""
    seed: int
    rounds: int | None
    quick: bool
    budget_s: float | None
    timeout_s: float
    isolate: str
    fidelity: bool
    fresh: bool


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a file of the host's run, from the byte `start` on."""

    name: str
    start: int
    content: bytes


class Progress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host has measured since the client last asked."""

    pieces: tuple[Piece, ...]
    info: bytes
    """run.json as it is now; empty before it exists."""
    ended: int | None
    """Exit code of the host's run; None while it runs."""
    last_words: str
    """What the run printed last, if it failed."""
