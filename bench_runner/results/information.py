"""`run.json` as types: the information that is needed to judge and repeat a run.

Every field may be missing, because runs are written in steps, by several versions and on many machines. Fields that
exist have the declared type. Nothing here depends on how these facts are found or shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bench_runner.request import Request
from bench_runner.variants import operation_name_of

SAVE, READ = operation_name_of("save"), operation_name_of("read")
RANDOM, SEQUENTIAL, CACHED, CACHED_SEQUENTIAL = "random", "sequential", "cached", "cached sequential"
"""Kinds of reads in a roofline, the highest read rates that a storage device delivers. RANDOM and SEQUENTIAL read from
the device. CACHED and CACHED_SEQUENTIAL read from the page cache."""


class StoredInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base class of the types of `run.json`. A field that has its default value is not written. Unknown fields are
    ignored when a file is read."""


class RunWarning(StoredInfo):
    """A warning for readers of a run. `remedy` says what to do about the warning."""

    text: str = ""
    remedy: str = ""


class MachineInfo(StoredInfo):
    """The machine. Sizes are in bytes, times in ns, and unknown facts are None."""

    name: str = ""
    cpu: str | None = None
    cores: int | None = None
    physical_cores: int | None = None
    affinity: str | None = None
    cpu_limit_cores: float | None = None
    governor: str | None = None
    turbo: bool | None = None
    numa_nodes: int | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    swap_bytes: int | None = None
    kernel: str | None = None
    operating_system: str | None = None
    virtualisation: str | None = None
    container: str | None = None
    python: str | None = None
    timer_resolution_ns: int | None = None
    clock_source: str | None = None
    aslr: str | None = None
    transparent_huge_pages: str | None = None
    clock_time: str | None = None
    time_zone: str | None = None

    @property
    def is_virtual(self) -> bool:
        """Whether the machine is a guest on another machine."""
        return self.virtualisation not in (None, "none")


class FolderInfo(StoredInfo):
    """The file system of a working folder. Sizes are in bytes."""

    path: str = ""
    free_bytes: int | None = None
    total_bytes: int | None = None
    block_bytes: int | None = None
    filesystem: str | None = None
    mount_point: str | None = None
    mount_options: str | None = None
    device: str | None = None
    read_ahead_kb: int | None = None
    """The kernel's read-ahead for sequential reads and mappings, in KiB."""
    rotational: bool | None = None
    nvme: bool | None = None
    device_model: str | None = None
    journal: bool | None = None


class DataSetInfo(StoredInfo):
    """One data set. If the data set is a sample of a larger table, `input_rows` is the number of rows of that table."""

    digest: str = ""
    rows: int = 0
    size_bytes: int = 0
    title: str = ""
    parameters: dict[str, str] = {}
    """All parameters with their values, including parameters that the name of the data set omits. Empty in runs of
    older versions, which did not store parameters."""
    input_rows: int | None = None
    sampled_rows: int | None = None
    blocks: int | None = None
    columns: dict[str, str] = {}
    """Name and type of each column of the user's own table."""
    understood: dict[str, str] = {}
    """How the user's own file was read. The keys are subjects such as delimiter and encoding."""
    questions: tuple[str, ...] = ()
    """The measured questions that were derived from the documents, in words."""

    @property
    def whole_rows(self) -> int | None:
        """Number of rows of the whole table if this is a sample; None if this is the whole table."""
        return self.input_rows if self.input_rows is not None and self.input_rows > self.rows > 0 else None


class MaturityInfo(StoredInfo):
    """How likely it is that other programs can read the stored data later, as the variant's adapter declares it
    (Maturity in adapters.contract)."""

    stage: str = ""
    reason: str = ""
    ours: bool = False
    """Whether the code that saves and reads is part of this project."""


class VariantInfo(StoredInfo):
    """One variant: the declarations of its adapter, and the cost of loading its libraries."""

    title: str = ""
    format: str = ""
    library: str = ""
    syncs_on_save: bool = False
    capabilities: tuple[str, ...] | None = None
    maturity: MaturityInfo | None = None
    """None in runs of older versions, which did not store the maturity."""
    partial_reads: tuple[str, ...] | None = None
    """Operations for which the variant reads only the needed part of a table. 'take' is listed if the variant finds
    rows by their numbers. 'scan' is listed if the variant itself evaluates conditions on rows. None in runs of older
    versions, which did not store this field."""
    mapped: bool = False
    reads_unseen: bool = False
    """Whether the kernel's counters of read calls miss the variant's reads. This happens with file mappings and
    io_uring."""
    import_ns: int | None = None
    import_rss_bytes: int | None = None


class OperationInfo(StoredInfo):
    """One operation, with the facts that reports need."""

    title: str = ""
    """The name shown to people, such as 'save' or 'project 10 columns'."""
    writes: bool = False
    """Whether the operation makes a stored copy. Otherwise it reads a stored copy."""
    meaning: str = ""


class KnownAnswer(StoredInfo):
    """A test of the memory probe, which measures the peak memory of a worker: one allocation of known size, and the two
    peaks that the probe reported for this allocation, in bytes."""

    how: str = ""
    size_bytes: int = 0
    peak_private_bytes: int = 0
    peak_rss_bytes: int = 0


class ProbeInfo(StoredInfo):
    """The error of the memory probe, which measures the peak memory of a worker, on this machine."""

    error_bytes: int | None = None
    known_answers: tuple[KnownAnswer, ...] = ()


class SettlingInfo(StoredInfo):
    """How the machine was brought to rest before each sample."""

    touches: bool = True
    """Whether memory was touched and freed before every sample. If False, memory was touched only after a slow control
    measurement."""
    why: str = ""
    ready_bytes: int = 0
    """Largest amount of memory that was touched before a sample, in bytes. 0 in runs of older versions, which did not
    store this field."""


class FactInfo(StoredInfo):
    """When a group of facts was measured. Facts are properties that do not change between runs on the same machine."""

    measured: str = ""
    """The day of the measurement. If the facts were measured on several days, the earliest day."""
    key: str = ""
    """Digest of the machine, the library versions and the source code for which the fact is valid."""
    kept: int = 0
    """Number of facts that were reused from earlier runs."""
    new: int = 0
    """Number of facts that this run measured."""


class CalibrationInfo(StoredInfo):
    """The nominal rate of a limited network, and the rate measured before the first round."""

    network: str = ""
    asked_bits_per_s: int = 0
    found_bits_per_s: int = 0


class RooflineLine(StoredInfo):
    """The speed of reads of one size, with `depth` reads in flight at the same time."""

    kind: str = ""
    size_bytes: int = 0
    depth: int = 1
    reads: int = 0
    wall_ns: int = 0
    at_least: bool = False
    """Whether the reading program was the bottleneck. The device may then be faster than these figures."""

    @property
    def per_second(self) -> float:
        """Reads per second."""
        return self.reads / self.wall_ns * 1e9 if self.wall_ns else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second."""
        return self.per_second * self.size_bytes


class RooflineInfo(StoredInfo):
    """The roofline of a working folder's device: the highest rates of reading a data set that raw I/O stored, i.e. a
    plain file without a format."""

    dataset: str = ""
    work_dir: str = ""
    when: str = ""
    """'before' the first counted round, or 'after' the last one."""
    measured: str = ""
    copy_bytes: int = 0
    guest: bool = False
    """Whether the machine is a virtual machine, so that the figures include the caches and limits of the host
    machine."""
    compiled: bool = False
    """Whether the reads were issued by a compiled loop instead of a Python loop."""
    why_none: str = ""
    """The reason why `lines` is empty, or ''."""
    lines: tuple[RooflineLine, ...] = ()


def _unfinished() -> bool:
    # A factory makes msgspec always write the field, for readers of the file.
    return False


class RunInfo(StoredInfo):
    """Everything that is stored about one command."""

    id: str = ""
    command: tuple[str, ...] = ()
    started: str | None = None
    finished: str | None = None
    partial: bool = msgspec.field(default_factory=_unfinished)
    resumed: tuple[str, ...] = ()
    seed: int | None = None
    quick: bool = False
    rounds_asked: int | None = None
    budget_s: float | None = None
    timeout_s: float | None = None
    isolate: str | None = None
    request: Request = msgspec.field(default_factory=Request)
    machine: MachineInfo = msgspec.field(default_factory=MachineInfo)
    libraries: dict[str, str] = {}
    commit: str | None = None
    dirty: bool = False
    changes: str | None = None
    load_before: dict[str, float] = {}
    load_after: dict[str, float] = {}
    warnings: list[RunWarning] = []
    suites: dict[str, str] = {}
    operations: dict[str, OperationInfo] = {}
    variants: dict[str, VariantInfo] = {}
    datasets: dict[str, DataSetInfo] = {}
    work_dirs: dict[str, FolderInfo] = {}
    rooflines: list[RooflineInfo] = []
    calibrations: list[CalibrationInfo] = []
    probe: ProbeInfo | None = None
    facts: dict[str, FactInfo] = {}
    settling: SettlingInfo | None = None
    stages_ns: dict[str, int] = {}

    def warn(self, text: str, remedy: str) -> None:
        """Add a warning with its remedy to `warnings`, unless the same warning is in the list already."""
        warning = RunWarning(text=text, remedy=remedy)
        if warning not in self.warnings:
            self.warnings.append(warning)

    def operation(self, spelled: str) -> OperationInfo:
        """Return the stored information about an operation, given its full name. If the run stored none, return an
        OperationInfo with the name as title."""
        known = self.operations.get(spelled)
        return known or OperationInfo(title=spelled, writes=spelled == SAVE)

    def shape(self) -> dict[str, Any]:
        """Return the information as a dict of plain dicts, lists, strings and numbers, ready for JSON. Omit empty
        collections."""
        found: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str)
        return {name: value for name, value in found.items() if value not in ({}, [])}


def information(shape: Mapping[str, Any]) -> RunInfo:
    """Convert the dict that `run.json` contains into a RunInfo. Raises msgspec.ValidationError, whose message names the
    field with a wrong value."""
    asked = shape.get("request")
    if isinstance(asked, dict):
        # Older versions omitted the target if it was pandas. Today a missing target means the default target of the
        # suite.
        shape = {**shape, "request": {"target": "pandas", **asked}}
    return msgspec.convert(shape, RunInfo, strict=True, dec_hook=lambda kind, value: kind(value))
