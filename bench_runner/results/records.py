"""Read and write the result files. `run.json` has the information that is needed to judge and repeat a run.
`samples.jsonl` has one line for each execution of an operation. `fidelity.jsonl` has one line for each variant and kind
of column, with the changes that the variant makes to the values.

Measured values are stored as integers. Readers of the files compute medians, ratios and other units. docs/results.md
describes the format of the files. Tests compare the format with stored examples in tests/bench_runner/results/golden/.
"""

from __future__ import annotations

import errno
import json
import lzma
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace as changed

from adapters.errors import UserError
from bench_runner.conditions import Conditions
from bench_runner.errors import Failure
from bench_runner.results.figures import FIGURES, Direction, Figure
from bench_runner.results.information import RunInfo, information
from bench_runner.variants import OperationName, Variant, operation_name_of, variant_of

__all__ = [
    "FIGURES",
    "SCHEMA",
    "Conditions",
    "Direction",
    "Failure",
    "Fidelity",
    "Figure",
    "RecordError",
    "Run",
    "RunInfo",
    "Sample",
    "SampleWriter",
    "changed",
    "pack_run",
    "read_run",
    "write_run_info",
]

# Version 2 adds `saw_all` and `fallback` to version 1, and renames the variant floor to raw-io.
SCHEMA = 2
"""Version of the format of the result files."""
OLDER = (1,)
"""Older versions of the format that can be read."""
PACKED = ".xz"
"""Suffix of compressed JSON Lines files."""
MOST_UNPACKED_BYTES = 2**30
"""Largest allowed size of a decompressed file. A small malicious file must not fill the memory of the program that
reads it."""


class RecordError(UserError):
    """A result folder cannot be read. The message names the file, the line and the reason, and says what to do."""


def _schema() -> int:
    # A factory makes msgspec write the version in every line.
    return SCHEMA


_OUTSIDE_CLOCKS = ("prepare_ns", "settle_ns", "verify_ns", "harness_ns")


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The measurement of one execution of a cell (`Cell`: an operation on a data set with a variant) in a fresh
    process."""

    suite: str
    operation: str
    """The name of the operation with its parameters, such as 'read' or 'project[columns=10]'."""
    dataset: str
    dataset_digest: str
    rows: int
    variant: str
    """The variant with the settings that were in effect, such as 'parquet[engine=pyarrow,codec=zstd,level=1]'. These
    can differ from the requested settings."""
    library: str
    """The library with its version, such as 'pyarrow 26.0.1'."""
    conditions: Conditions
    machine: str
    round: int
    """Number of the round. Round 0 is the pilot round on few rows. Statistics never use the figures of round 0."""
    position: int
    """Position in the order in which the run executed all samples."""
    figures: dict[str, int] = {}
    fidelity: str | None = None
    """'exact' or 'declared loss'; None if the sample was not verified."""
    saw_all: bool = False
    """Whether the operation read all of the data and the result was verified. This also verifies the save of the same
    stored copy."""
    fallback: str = ""
    """Name of the replacement for a call that the library lacks, or ''. 'read-all', for example, reads everything and
    then selects rows or columns."""
    cached: bool = False
    """Whether repeated calls were served with data that earlier calls had left in the library's own memory."""
    in_service: bool = False
    """Whether the user did not request this operation. It was executed because another operation needs a stored copy,
    or because the save has to be verified."""
    losses: tuple[str, ...] = ()
    codec: str | None = None
    """The codec as read back from the written file. None for reads, and for formats without codecs."""
    encodings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unsettled: bool = False
    """Whether the machine was not at rest: the control measurement was still slow after three tries, or a warm read
    fetched data from the device. Unsettled samples are stored, but statistics ignore them."""
    failure: Failure | None = None
    schema: int = msgspec.field(default_factory=_schema)

    def __post_init__(self) -> None:
        unknown = set(self.figures) - set(FIGURES)
        if unknown:
            names = ", ".join(sorted(unknown))
            raise ValueError(f"these figures are not registered in bench_runner/results/figures.py: {names}")
        if self.failure is not None and self.figures:
            raise ValueError("a sample with a failure must not have figures")

    @property
    def counted(self) -> bool:
        """Whether statistics may use the sample: an execution after the pilot round, on a machine at rest, without a
        failure."""
        return self.round > 0 and self.failure is None and not self.unsettled

    @property
    def clocked_ns(self) -> int:
        """Total measured time in ns. If a call was repeated, this is the time of all calls. The time of a save includes
        the sync."""
        of_calls = self.figures.get("first_ns", 0) + self.figures.get("calls_ns", 0)
        return (of_calls or self.figures.get("wall_ns", 0)) + self.figures.get("sync_ns", 0)

    @property
    def taken_ns(self) -> int:
        """Time in ns from the start to the end of the worker process, including the parts that are not measured."""
        return self.clocked_ns + sum(self.figures.get(part, 0) for part in _OUTSIDE_CLOCKS)

    @property
    def cell(self) -> Cell:
        """The cell of the sample. Statistics group samples by cell."""
        return cell_of(self.suite, self.operation, self.dataset, self.rows, self.variant, self.conditions, self.machine)


def cell_of(
    suite: str, operation: str, dataset: str, rows: int, variant: str, conditions: Conditions, machine: str
) -> Cell:
    """Return the Cell of an operation, a data set and a variant, each given by its full name."""
    names = operation_name_of(operation), operation_name_of(dataset)
    return Cell(suite, *names, rows, variant_of(variant), conditions, machine)


@dataclass(frozen=True, slots=True)
class Cell:
    """One operation on one data set with one variant, under one set of conditions, on one machine."""

    suite: str
    operation: OperationName
    dataset: OperationName
    rows: int
    variant: Variant
    conditions: Conditions
    machine: str


class Fidelity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The changes that a variant makes to one kind of column, found by a round trip of a small table.

    `outcome` is 'exact', 'lossy', 'refused' or 'error'. With 'lossy', the adapter declares every change, and no change
    exceeds its declared bound. With 'error', this is not so. An error with a `cause` is a known fault of the library
    call. An error without a `cause` is a new fault and fails the run: the adapter did not declare the change, or a
    declared change did not occur.
    """

    variant: str
    target: str
    strings: str
    kind: str
    nulls: bool
    outcome: str
    how: str = ""
    bound: str = ""
    cause: str = ""
    """'format', 'call' or 'target'; '' if the outcome is exact."""
    target_alone: str = ""
    """The change that the target (the type of the table in memory) makes by itself, without any format involved."""
    schema: int = msgspec.field(default_factory=_schema)


@dataclass(frozen=True)
class Run:
    """Everything that one command measured."""

    folder: Path
    info: RunInfo
    samples: tuple[Sample, ...]
    fidelity: tuple[Fidelity, ...] = ()


class SampleWriter:
    """Append records to the files of a run. Each record is passed to the operating system at once, so that no record is
    lost if the run is stopped."""

    def __init__(self, folder: Path) -> None:
        """Append to the files in `folder`. If a crash cut the last line of a file short, remove that line."""
        self._samples = folder / "samples.jsonl"
        self._fidelity = folder / "fidelity.jsonl"
        for path in (self._samples, self._fidelity):
            _drop_cut_line(path)

    def append(self, *records: Sample | Fidelity) -> None:
        """Append records of one type, one line each. Write all of the records or none. Raises OSError if the disk is
        full."""
        if not records:
            return
        path = self._samples if isinstance(records[0], Sample) else self._fidelity
        lines = b"".join(msgspec.json.encode(record, enc_hook=str) + b"\n" for record in records)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            written = os.write(descriptor, lines)
            if written != len(lines):
                os.ftruncate(descriptor, before)
                raise OSError(errno.ENOSPC, "no space left to write the record", str(path))
        finally:
            os.close(descriptor)


def _drop_cut_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def write_run_info(folder: Path, info: RunInfo | Mapping[str, Any]) -> None:
    """Write `run.json` completely or not at all. `info` is a RunInfo, or the dict that `RunInfo.shape` returns."""
    path = folder / "run.json"
    partial = path.with_suffix(".partial")
    try:
        shape = info.shape() if isinstance(info, RunInfo) else info
        partial.write_text(json.dumps({"schema": SCHEMA, **shape}, indent=1, ensure_ascii=False) + "\n")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_run(folder: Path) -> Run:
    """Read a result folder and return the Run. The JSON Lines files may be compressed (see `pack_run`). If a crash cut
    the last line of a file short, ignore that line. Raises RecordError if the folder cannot be read."""
    info_path = folder / "run.json"
    try:
        shape = json.loads(info_path.read_text())
    except FileNotFoundError:
        raise RecordError(
            f"{folder} holds no run.json.", "Name a result folder, e.g. results/<time>-<machine>."
        ) from None
    except (OSError, ValueError) as error:
        raise RecordError(f"{info_path} is not readable as JSON ({error}).") from None
    try:
        _check_schema(shape)
        info = information(_renamed(shape) if shape["schema"] == 1 else shape)
    except ValueError as error:
        raise RecordError(f"{info_path}: {_said(error)}.", "Correct the field, or measure again.") from None
    samples = tuple(_records(_place_of(folder / "samples.jsonl"), Sample))
    fidelity = tuple(_records(_place_of(folder / "fidelity.jsonl"), Fidelity))
    return Run(folder, info, samples, fidelity)


def packed_files(folder: Path) -> list[Path]:
    """Return the paths of the compressed JSON Lines files in a result folder."""
    return sorted(folder.glob(f"*.jsonl{PACKED}"))


def _place_of(path: Path) -> Path:
    """Return `path`, or the path of the compressed file if only the compressed file exists. Raises RecordError if both
    the plain and the compressed file exist."""
    packed = path.with_name(path.name + PACKED)
    if path.exists() and packed.exists():
        raise RecordError(f"{path.parent} holds both {path.name} and {packed.name}.", "Remove one of them.")
    return packed if packed.exists() else path


def pack_run(run: Run, folder: Path) -> None:
    """Write a run into an empty folder, as `run.json` and compressed JSON Lines files. The reference runs in the
    package have this form."""
    write_run_info(folder, run.info)
    for name, records in (("samples", run.samples), ("fidelity", run.fidelity)):
        lines = b"".join(msgspec.json.encode(record, enc_hook=str) + b"\n" for record in records)
        (folder / f"{name}.jsonl{PACKED}").write_bytes(lzma.compress(lines, preset=9))


def _said(error: ValueError) -> str:
    """Return the message of msgspec's error with quotes instead of backticks. In the messages of this project,
    backticks mark parameters."""
    return str(error).replace("`", "'")


def _check_schema(shape: object) -> None:
    found = shape.get("schema") if isinstance(shape, dict) else type(shape).__name__
    if found not in (SCHEMA, *OLDER) or isinstance(found, bool):
        raise ValueError(
            f"its schema is {found!r}, but this version of Format Bench reads only "
            f"{', '.join(map(str, (*OLDER, SCHEMA)))}"
        )


_Record = TypeVar("_Record", Sample, Fidelity)


def _records(path: Path, record: type[_Record]) -> Iterator[_Record]:
    if not path.exists():
        return
    seen: dict[object, int] = {}
    for number, line in enumerate(_lines(path), start=1):
        if not line.endswith(b"\n"):
            return
        try:
            built = _record(line, record)
        except ValueError as error:
            raise RecordError(f"{path}, line {number}: {_said(error)}.", "Remove the line to read the rest.") from None
        first = seen.setdefault(_identity(built), number)
        if first != number:
            raise RecordError(f"{path}, line {number}: repeats line {first}.", "Remove one of the two lines.")
        yield built


def _lines(path: Path) -> Iterator[bytes]:
    if path.suffix != PACKED:
        with path.open("rb") as stream:
            yield from stream
        return
    left = MOST_UNPACKED_BYTES
    try:
        with lzma.open(path) as packed:
            while line := packed.readline(left):
                left -= len(line)
                if left <= 0:
                    raise RecordError(
                        f"{path} unpacks to more than {MOST_UNPACKED_BYTES:,} bytes.",
                        "If you trust the file, unpack it by unxz: unpacked files have no limit.",
                    )
                yield line
    except (lzma.LZMAError, EOFError) as error:
        raise RecordError(f"{path} cannot be unpacked ({error}).", "Copy it again from its source.") from None


def _record(line: bytes, record: type[_Record]) -> _Record:
    """Decode a line and return the record. Raises ValueError, whose message names a field that is missing, unknown or
    of a wrong type."""
    shape = msgspec.json.decode(line)
    _check_schema(shape)
    if shape["schema"] == 1:
        shape = _of_schema_1(shape)
    return msgspec.convert(shape, record, strict=True)


# --- older versions ----------------------------------------------------------------------------------------------

_OLD_VARIANTS = {"floor": "raw-io", "image-floor": "image-raw-io"}


def _of_schema_1(shape: dict[str, Any]) -> dict[str, Any]:
    """Convert a record of schema version 1 to the current version and return it. Version 1 has no `saw_all`. Its only
    reading operation, 'read', always read all data."""
    kept = {**_renamed(shape), "schema": SCHEMA}
    if shape.get("operation") == "read" and shape.get("fidelity") is not None:
        kept["saw_all"] = True
    return kept


def _renamed(shape: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a record in which raw I/O has its current name, wherever the record names a variant."""
    kept = dict(shape)
    if isinstance(variant := kept.get("variant"), str):
        kept["variant"] = _variant_of_today(variant)
    if isinstance(variants := kept.get("variants"), dict):
        kept["variants"] = {_variant_of_today(name): about for name, about in variants.items()}
    return kept


def _variant_of_today(variant: str) -> str:
    name, bracket, settings = variant.partition("[")
    return _OLD_VARIANTS.get(name, name) + bracket + settings


def _identity(record: Sample | Fidelity) -> object:
    """Return a key that identifies a record. Two lines of a file must not have the same key. If a resumed run repeats a
    round, the repeated samples have other positions and so other keys."""
    if isinstance(record, Sample):
        return record.cell, record.round, record.position
    return record.variant, record.target, record.strings, record.kind, record.nulls
