"""What the runner and its workers tell each other: structs, sent as JSON, each with its kind.

A worker gets one task. It gives answers of the kind that the task asks for, and `Done` or `Failed` as the last one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from adapters.services import Served
from bench_runner.errors import Failure
from bench_runner.operations.targets import Target
from bench_runner.worker.fidelity import KindOutcome
from bench_runner.worker.settle import Control, Readiness, Rest


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="job"):
    """What every worker has to know: where it may write, and how many threads it may use."""

    scratch: Path
    """The worker's current folder, and its folder of temporary files."""
    confine: Path
    """It can write only below this folder."""
    printed: Path
    """Whatever its libraries print goes to this file."""
    threads: int | None = None
    """None leaves the number to each library. The launcher sets it."""
    starts_processes: bool = False
    """Whether what is done starts processes, which need shared memory for their locks."""


class MeasureTask(Task, tag="measure", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measure one operation of a chain."""

    operation: str
    variant: str
    target: Target
    dataset: Path
    dataset_name: str
    dataset_digest: str
    rows: int
    whole: bool
    """Whether `rows` are all rows of the data set."""
    location: Path
    """The place of the stored copy."""
    primer: Path
    """The place of the small copy that the operation is primed on."""
    last_reader: bool
    """Whether the stored copy is removed afterwards, and the result compared once more (rule 11)."""
    need_bytes: int
    """Memory that the sample is expected to use."""
    best_control: Control | None
    readiness: Readiness
    thorough: bool
    """Whether all garbage is collected before the clock, because a collection came inside it before."""
    cold: bool
    served: Served | None = None
    """Where services are asked for the stored copy."""
    fresh_services: bool = False
    """Whether services were started for this sample and have answered nothing yet."""


class ImportTask(Task, tag="import", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Load the libraries of a variant in an interpreter that has pandas and pyarrow already."""

    variant: str


class ProbeTask(Task, tag="probe_memory", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make one known allocation, to see what the memory probes say of it (rule 13)."""

    how: str
    """A key of bench_runner.worker.memory_probe.ALLOCATIONS."""
    size_bytes: int


class FidelityTask(Task, tag="fidelity", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Save and read every kind of column with a variant (rule 12)."""

    variant: str
    target: Target
    location: Path


AnyTask = MeasureTask | ImportTask | ProbeTask | FidelityTask


class Preload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="job", tag="preload"):
    """Asks a forkserver to load the libraries of these variants, with `strings` as pandas' dtype of text."""

    variants: tuple[str, ...]
    strings: str


class Preloaded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A forkserver's answer: the reason for each variant whose library could not be loaded."""

    failures: dict[str, str]


class Started(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A forkserver has made this worker."""

    process_id: int


class Ended(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A forkserver's worker has ended, with the status that wait(2) gives."""

    status: int


class Measured(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="answer", tag="measured"):
    """One operation was measured, and what it gave was verified."""

    started_ns: int
    private_before_bytes: int
    private_end_bytes: int
    resident_before_bytes: int
    rest: Rest
    collected: bool
    """Whether all garbage was collected inside the clock, unasked."""
    figures: dict[str, int]
    fidelity: str | None = None
    losses: list[str] = []
    saw_all: bool = False
    fallback: str = ""
    cached: bool = False
    held_bytes: int = 0
    """What closing the handle gave back."""
    held_before_bytes: int = 0
    """Answers of the calls before the clock, which are kept until they are verified."""
    device_bytes_of_all: int | None = None
    """Read from the device by all calls together; None where there is one."""
    tells_memory: bool = True
    """Whether its private memory can be compared with that of others."""
    codec: str | None = None
    encodings: list[str] = []


class Imported(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="answer", tag="import"):
    """What loading an engine's libraries cost."""

    import_ns: int
    import_rss_bytes: int


class Probed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="answer", tag="probe"):
    """What the memory probes of the worker said of a known allocation."""

    private_before_bytes: int
    private_end_bytes: int
    peak_rss_bytes: int


class FidelityFound(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer", tag="fidelity"):
    """What becomes of one kind of column."""

    verdict: KindOutcome


class Failed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer", tag="failed"):
    """The job ended with an error."""

    failure: Failure


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer", tag="done"):
    """The job has come to its end."""


Answer = Measured | Imported | Probed | FidelityFound | Failed | Done

_Message = TypeVar("_Message")


def encode(message: msgspec.Struct) -> bytes:
    """A message as one line of JSON, without its end."""
    return msgspec.json.encode(message, enc_hook=str)


def decode(line: bytes | bytearray, kind: type[_Message] | Any) -> _Message:
    """A message of this kind, or of one of these kinds. Raises msgspec.DecodeError or msgspec.ValidationError."""
    return cast(_Message, msgspec.json.decode(line, type=kind, dec_hook=lambda kind, value: kind(value)))
