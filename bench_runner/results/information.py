"""`run.json` as types: what is needed to believe and to repeat a run.

Every field may be missing, because runs are written as they go, by several versions and on many machines; one that is
there has its type. Nothing here knows how these facts are found, nor how they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bench_runner.request import Request
from bench_runner.variants import operation_name_of

SAVE, READ = operation_name_of("save"), operation_name_of("read")
RANDOM, SEQUENTIAL, CACHED, CACHED_SEQUENTIAL = "random", "sequential", "cached", "cached sequential"
"""Kinds of lines of a roofline: the first two from the device, the others from the page cache."""


class StoredInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the parts have in common: a field that has its default is not written, and one that this version does not
    know is passed over."""


class RunWarning(StoredInfo):
    """Something that the reader of a run must know, and what to do about it."""

    text: str = ""
    remedy: str = ""


class MachineInfo(StoredInfo):
    """What was measured on. Sizes in bytes, times in ns; what could not be found out is None."""

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
        """Whether it is a guest on somebody's machine."""
        return self.virtualisation not in (None, "none")


class FolderInfo(StoredInfo):
    """What lies under a working folder. Sizes in bytes."""

    path: str = ""
    free_bytes: int | None = None
    total_bytes: int | None = None
    block_bytes: int | None = None
    filesystem: str | None = None
    mount_point: str | None = None
    mount_options: str | None = None
    device: str | None = None
    read_ahead_kb: int | None = None
    """What the kernel reads along when a file is read in order or through a mapping, in KiB."""
    rotational: bool | None = None
    nvme: bool | None = None
    device_model: str | None = None
    journal: bool | None = None


class DataSetInfo(StoredInfo):
    """One data set. `input_rows` is how many rows the whole has of which it is a sample."""

    digest: str = ""
    rows: int = 0
    size_bytes: int = 0
    title: str = ""
    parameters: dict[str, str] = {}
    """Each parameter with its value, spelled in the name or not; empty in runs of versions that did not tell."""
    input_rows: int | None = None
    sampled_rows: int | None = None
    blocks: int | None = None
    columns: dict[str, str] = {}
    """Name and type of each column of the user's own table."""
    understood: dict[str, str] = {}
    """How the user's own file was read, by subject, such as delimiter and encoding."""

    @property
    def whole_rows(self) -> int | None:
        """How many rows the table has of which this is a sample; None where it is all of it."""
        return self.input_rows if self.input_rows is not None and self.input_rows > self.rows > 0 else None


class MaturityInfo(StoredInfo):
    """How far a variant can be relied on beyond what is measured, as its adapter says: the words are those of
    adapters.contract."""

    stage: str = ""
    reason: str = ""
    ours: bool = False
    """Whether the code that saves and reads is this project's own."""


class VariantInfo(StoredInfo):
    """One variant: what its adapter says of itself, and what loading its libraries cost."""

    title: str = ""
    format: str = ""
    library: str = ""
    syncs_on_save: bool = False
    capabilities: tuple[str, ...] | None = None
    maturity: MaturityInfo | None = None
    """None in runs of versions that did not tell."""
    partial_reads: tuple[str, ...] | None = None
    """Operations for which it reads no more of a table than they ask for: 'take' if it finds rows by their numbers,
    'scan' if it tests conditions itself. None in runs of versions that did not record it."""
    mapped: bool = False
    reads_unseen: bool = False
    """Whether the counters of read calls do not see what it reads: mappings, io_uring."""
    import_ns: int | None = None
    import_rss_bytes: int | None = None


class OperationInfo(StoredInfo):
    """One operation, as reports need to know it."""

    title: str = ""
    """For people: 'save', 'project 10 columns'."""
    writes: bool = False
    """Whether it makes a stored copy; else it reads one."""
    meaning: str = ""


class KnownAnswer(StoredInfo):
    """One known allocation, and what the two probes said of it, in bytes."""

    how: str = ""
    size_bytes: int = 0
    peak_private_bytes: int = 0
    peak_rss_bytes: int = 0


class ProbeInfo(StoredInfo):
    """How wrong the memory probe was on this machine."""

    error_bytes: int | None = None
    known_answers: tuple[KnownAnswer, ...] = ()


class SettlingInfo(StoredInfo):
    """How the machine was brought to rest."""

    touches: bool = True
    """Whether memory was touched and given back before every sample, or only where a control was slow."""
    why: str = ""
    ready_bytes: int = 0
    """Of memory at most that was made ready before a sample; 0 in runs of before this was kept."""


class FactInfo(StoredInfo):
    """Since when something is known that does not change from one run to the next on the same machine."""

    measured: str = ""
    """When: the day, of several the earliest."""
    key: str = ""
    """Of the machine, the versions and the sources for which it holds."""
    kept: int = 0
    """How much of it came from earlier runs."""
    new: int = 0
    """How much of it this run has measured."""


class CalibrationInfo(StoredInfo):
    """What a network that holds back has let through of so many bits a second, before the first round."""

    network: str = ""
    asked_bits_per_s: int = 0
    found_bits_per_s: int = 0


class RooflineLine(StoredInfo):
    """So many reads of one size, `depth` of them under way at once, and what they took."""

    kind: str = ""
    size_bytes: int = 0
    depth: int = 1
    reads: int = 0
    wall_ns: int = 0
    at_least: bool = False
    """Whether the probe could not have asked for more: the device may give more."""

    @property
    def per_second(self) -> float:
        """Reads a second."""
        return self.reads / self.wall_ns * 1e9 if self.wall_ns else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes a second."""
        return self.per_second * self.size_bytes


class RooflineInfo(StoredInfo):
    """What the device under a working folder gives of raw I/O's copy of a data set."""

    dataset: str = ""
    work_dir: str = ""
    when: str = ""
    """'before' the first counted round, or 'after' the last one."""
    measured: str = ""
    copy_bytes: int = 0
    guest: bool = False
    """Whether a host's caches and limits lie below: then it is what the guest is given."""
    compiled: bool = False
    """Whether the compiled loop asked, and not Python."""
    why_none: str = ""
    """Why there are no lines."""
    lines: tuple[RooflineLine, ...] = ()


def _unfinished() -> bool:
    # A factory, so that it is always written: whoever looks at the file sees it.
    return False


class RunInfo(StoredInfo):
    """Everything that one command said of itself."""

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
        """Keep a warning with its remedy; the same one only once."""
        warning = RunWarning(text=text, remedy=remedy)
        if warning not in self.warnings:
            self.warnings.append(warning)

    def operation(self, spelled: str) -> OperationInfo:
        """What is known of an operation; of runs that do not tell, by its name."""
        told = self.operations.get(spelled)
        return told or OperationInfo(title=spelled, writes=spelled == SAVE)

    def shape(self) -> dict[str, Any]:
        """As plain dicts, lists, texts and numbers, ready for JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self, enc_hook=str)
        # What holds nothing is not worth a line.
        return {name: value for name, value in found.items() if value not in ({}, [])}


def information(shape: Mapping[str, Any]) -> RunInfo:
    """The information that a JSON object holds. Raises msgspec.ValidationError naming the place of what is wrong."""
    asked = shape.get("request")
    if isinstance(asked, dict):
        # Before targets were left to the suites, pandas was not written.
        shape = {**shape, "request": {"target": "pandas", **asked}}
    return msgspec.convert(shape, RunInfo, strict=True, dec_hook=lambda kind, value: kind(value))
