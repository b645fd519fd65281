"""Messages between the client and the agent, which are the functions that dask calls on a host. Structs are sent as
bytes (`bench_runner.worker.messages`), so dask serialises only built-in types."""

from __future__ import annotations

from typing import Literal

import msgspec

from bench_runner.request import Request

State = Literal["running", "finished", "refused", "killed"]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All chains of one suite and data set. A group is never divided between hosts, because reports compare the group's
    chains with each other, and only figures from the same machine can be compared."""

    suite: str
    dataset: str


class HostFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The identity of a host, and the versions that must be equal on all hosts of a run."""

    identity: str
    """The host's name if the user set one for the worker, otherwise the boot id. Workers with the same identity run on
    the same host."""
    name: str
    cpu: str
    cores: int
    memory_bytes: int
    versions: dict[str, str]
    """Versions of Python and of all libraries, and the state of Format Bench's source code."""

    @property
    def kind(self) -> str:
        """The kind of host: processor, number of cores, and memory in whole gigabytes. Hosts of the same kind may
        replace each other."""
        return f"{self.cpu}, {self.cores} cores, {self.memory_bytes / 1e9:.0f} GB"


class HostTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a run that one host measures."""

    run_id: str
    suites: tuple[str, ...]
    request: Request
    groups: tuple[Group, ...]
    machine: str
    """The host's name in records."""
    command: tuple[str, ...]
    digests: dict[str, str]
    """Digest of each data set on the client. The data that the host generates must have the same digests."""
    seed: int
    rounds: int | None
    quick: bool
    budget_s: float | None
    timeout_s: float
    isolate: str
    fidelity: bool
    fresh: bool


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some lines of a file of the part. They are complete lines, and begin at the byte `start` of the file."""

    name: str
    start: int
    content: bytes


class Progress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host has measured since the client last asked."""

    pieces: tuple[Piece, ...]
    info: bytes
    """The present content of the part's run.json, empty if the file does not exist yet."""
    state: State
    """State of the part. 'refused': the part ended with an error message, and will measure nothing more. 'killed': the
    part's process was stopped or crashed, or the agent does not know the part, because the worker was restarted."""
    message: str
    """The last line that the part printed if its state is 'refused' or 'killed', otherwise empty."""
