"""Messages between the runner and its worker processes. A message is a struct that is sent as JSON, with a tag for its
kind.

A worker receives one task. The worker answers with messages that have its results, and finally with `Done` or `Failed`.
The kind of the results depends on the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from adapters.services import Served
from bench_runner.errors import Failure
from bench_runner.operations.targets import Target
from bench_runner.worker.settle import Control, Readiness, Rest


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="job"):
    """The fields that all tasks have, such as the folders to which the worker may write."""

    scratch: Path
    """The worker's current folder, which is also its folder for temporary files."""
    confine: Path
    """The only folder to which the worker may write."""
    printed: Path
    """The file that receives the output of libraries."""
    threads: int | None = None
    """Number of threads, or None for the default of each library. The launcher sets this field."""
    starts_processes: bool = False
    """Whether the operation starts processes, which need shared memory for their locks."""


class MeasureTask(Task, tag="measure", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measure one operation on a stored copy."""

    operation: str
    variant: str
    target: Target
    dataset: Path
    dataset_name: str
    dataset_digest: str
    rows: int
    whole: bool
    """Whether `rows` is the whole data set."""
    location: Path
    """Path of the stored copy."""
    primer: Path
    """Path of a small copy with a few rows, on which the operation is run once before timing."""
    last_reader: bool
    """Whether this is the last operation that reads the stored copy. The copy is then removed, and the result is
    verified a second time (rule 11)."""
    need_bytes: int
    """Expected memory use of the sample, including its page cache."""
    best_control: Control | None
    readiness: Readiness
    thorough: bool
    """Whether to collect all garbage before timing. This is needed if Python ran a full collection while an earlier
    sample was timed."""
    cold: bool
    served: Served | None = None
    """Addresses of the services that serve the stored copy."""
    fresh_services: bool = False
    """Whether services were started for this sample and have not answered any request yet."""
    block_ns: int | None = None
    """Longest duration in ns of a block (calls that are timed in one process) with more than three calls. None means
    the usual limit (rule 19)."""


class ImportTask(Task, tag="import", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Load the libraries of a variant in an interpreter that has already loaded pandas and pyarrow."""

    variant: str


class ProbeTask(Task, tag="probe_memory", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Allocate a known amount of memory, to test the measurement of memory (rule 13)."""

    how: str
    """A key of bench_runner.worker.memory_probe.ALLOCATIONS."""
    size_bytes: int


class FidelityTask(Task, tag="fidelity", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Save and read every kind of column with a variant, to find out what the variant changes (rule 12)."""

    variant: str
    target: Target
    location: Path


AnyTask = MeasureTask | ImportTask | ProbeTask | FidelityTask


class Preload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="job", tag="preload"):
    """Request to a forkserver to load the libraries of these variants. `strings` is the pandas dtype of text to set."""

    variants: tuple[str, ...]
    strings: str


class Preloaded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A forkserver's response to `Preload`: the variants whose libraries could not be loaded, with the reasons."""

    failures: dict[str, str]


class Started(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Message from a forkserver: it has started a worker with this process id."""

    process_id: int


class Ended(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Message from a forkserver: a worker has ended with this status, as returned by wait(2)."""

    status: int


class Measured(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="answer", tag="measured"):
    """The measurement of an operation whose result was verified."""

    started_ns: int
    private_before_bytes: int
    private_end_bytes: int
    resident_before_bytes: int
    rest: Rest
    collected: bool
    """Whether an automatic full garbage collection ran during timing."""
    figures: dict[str, int]
    fidelity: str | None = None
    losses: list[str] = []
    saw_all: bool = False
    fallback: str = ""
    cached: bool = False
    held_bytes: int = 0
    """Memory that was freed by closing the handle (the open stored copy)."""
    held_before_bytes: int = 0
    """Size of the results of the calls before timing. These results stay in memory until they are verified."""
    device_bytes_of_all: int | None = None
    """Bytes read from the device by all calls together, or None if there is a single call."""
    tells_memory: bool = True
    """Whether the measured private memory may be compared with the private memory of other variants."""
    codec: str | None = None
    encodings: list[str] = []


class Imported(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="answer", tag="import"):
    """The cost of loading an engine's libraries."""

    import_ns: int
    import_rss_bytes: int


class Probed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="answer", tag="probe"):
    """The measured memory of a known allocation."""

    private_before_bytes: int
    private_end_bytes: int
    peak_rss_bytes: int


EXACT, LOSSY, REFUSED, ERROR = "exact", "lossy", "refused", "error"
"""The values of KindOutcome.outcome."""


@dataclass(frozen=True)
class KindOutcome:
    """What a variant does to one kind of column. bench_runner.results.records.Fidelity documents the fields."""

    kind: str
    nulls: bool
    outcome: str
    how: str
    bound: str
    cause: str
    target_alone: str


class FidelityFound(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer", tag="fidelity"):
    """The result for one kind of column."""

    verdict: KindOutcome


class Failed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer", tag="failed"):
    """The job ended with an error."""

    failure: Failure


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer", tag="done"):
    """The job has ended."""


Answer = Measured | Imported | Probed | FidelityFound | Failed | Done

_Message = TypeVar("_Message")


def encode(message: msgspec.Struct) -> bytes:
    """Return a message as one line of JSON, without the newline."""
    return msgspec.json.encode(message, enc_hook=str)


def decode(line: bytes | bytearray, kind: type[_Message] | Any) -> _Message:
    """Return the message in a line of JSON. `kind` is its type, or a union of types. Raises msgspec.DecodeError or
    msgspec.ValidationError."""
    return cast(_Message, msgspec.json.decode(line, type=kind, dec_hook=lambda kind, value: kind(value)))
