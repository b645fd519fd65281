"""What the client and the agent on a host exchange. Structs travel as bytes (`bench_runner.worker.messages`), so dask
serialises only built-in types."""

from __future__ import annotations

from typing import Literal

import msgspec

from bench_runner.request import Request

State = Literal["running", "finished", "refused", "killed"]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All chains of one suite and data set. Reports compare them with each other, and figures are only compared if they
    come from one machine, so a group is never divided between hosts."""

    suite: str
    dataset: str


class HostFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What identifies a host, and the versions that must be equal on all hosts of a run."""

    identity: str
    """The boot id, or the name that the worker gives its host. Workers with the same identity share a host."""
    name: str
    cpu: str
    cores: int
    memory_bytes: int
    versions: dict[str, str]
    """Versions of Python, of all libraries, and of Format Bench with its adapters' sources."""

    @property
    def kind(self) -> str:
        """Hosts of one kind may replace each other: equal processor, cores, and memory in whole gigabytes."""
        return f"{self.cpu}, {self.cores} cores, {self.memory_bytes / 1e9:.0f} GB"


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
    """Digest of each data set on the client. Data that a host makes must have the same digest."""
    seed: int
    rounds: int | None
    quick: bool
    budget_s: float | None
    timeout_s: float
    isolate: str
    fidelity: bool
    fresh: bool


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whole lines of a file of the host's part, from the byte `start` on."""

    name: str
    start: int
    content: bytes


class Progress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host has measured since the client last asked."""

    pieces: tuple[Piece, ...]
    info: bytes
    """run.json as it is now; empty before it exists."""
    state: State
    """'refused': the part ended with a message and measured nothing more. 'killed': its process ended in another way
    or was stopped, or the agent does not know the part because its worker was restarted."""
    message: str
    """The last line that the part printed, if it was refused or killed."""
