"""The result files: `run.json` (what is needed to believe and repeat a run), `samples.jsonl` (one line for
each execution) and `fidelity.jsonl` (what each variant does to each kind of column).

Only raw integers are stored; medians, ratios and people's units are computed by readers. Shapes are pinned by
golden records in tests/bench_runner/golden/ and described in docs/results.md. This module must not know how
samples are measured, nor how they are shown.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from bench_runner.results.figures import FIGURES, Direction, Figure

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
    "Sample",
    "SampleWriter",
    "read_run",
    "write_run_info",
]

# 1: the first shape.
SCHEMA = 1


class RecordError(Exception):
    """A result folder that cannot be read: which file, which line, why, and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """What the sample was taken under. Samples with different conditions are never mixed in one figure.

    cache: warm | cold | cold (guest), which is cold on a virtual machine; threads: default | 1;
    target: pandas | arrow (what the user holds and wants back);
    track: plain | default | equal; strings: str | object (the pandas dtype of text); work_dir: the label of
    the working folder ('default', or the path as the user gave it).
    """

    cache: str = "warm"
    threads: str = "default"
    target: str = "pandas"
    track: str = "plain"
    strings: str = "str"
    work_dir: str = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why there are no figures.

    kind: refused (a stated limit: no failure of the run) | not installed (likewise) | mismatch | crash |
    timeout | memory | disk | cache (warm or cold could not be proven) | threads (more than one core under
    threads=1) | error | skipped (an earlier or later operation of its chain failed)
    """

    kind: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether the run counts it as failed (exit code 1)."""
        return self.kind not in ("refused", "not installed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One execution of one cell in one fresh process."""

    suite: str
    operation: str
    dataset: str
    dataset_digest: str
    rows: int
    variant: str
    """As honoured, not as asked: 'parquet[engine=pyarrow,codec=zstd,level=1]'."""
    library: str
    """'pyarrow 26.0.1'."""
    conditions: Conditions
    machine: str
    round: int
    """0 is the rehearsal on few rows; it is never counted."""
    position: int
    """Place in the order of execution, over the whole run."""
    figures: Mapping[str, int] = field(default_factory=dict)
    fidelity: str | None = None
    """'exact' or 'declared loss'."""
    losses: tuple[str, ...] = ()
    codec: str | None = None
    """Read back from the written file; None for a format without codecs, and for reads."""
    encodings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unsettled: bool = False
    """The control was still slow after three tries, or a warm read fetched from the device: kept, not counted."""
    failure: Failure | None = None
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        unknown = set(self.figures) - set(FIGURES)
        if unknown:
            names = ", ".join(sorted(unknown))
            raise ValueError(f"figures not in the register (bench_runner/results/figures.py): {names}")
        if self.failure is not None and self.figures:
            raise ValueError("a sample with a failure has no figures")

    @property
    def counted(self) -> bool:
        """Whether statistics may use it: a settled execution of a counted round, without a failure."""
        return self.round > 0 and self.failure is None and not self.unsettled

    @property
    def cell(self) -> Cell:
        """The identity that statistics group by."""
        return Cell(self.suite, self.operation, self.dataset, self.rows, self.variant, self.conditions, self.machine)


@dataclass(frozen=True, slots=True)
class Cell:
    """One operation on one data set with one variant under one set of conditions on one machine."""

    suite: str
    operation: str
    dataset: str
    rows: int
    variant: str
    conditions: Conditions
    machine: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Fidelity:
    """What a variant does to one kind of column, found by a round trip of a small table.

    outcome: exact | lossy | refused | error (a change without a bound: with a `cause` a fault that is known of the
    call, without one news, which fails the run: undeclared, or declared and missing)
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
    """format | call | target; empty when exact."""
    target_alone: str = ""
    """What the target loses without any format."""
    schema: int = SCHEMA


@dataclass(frozen=True)
class Run:
    """Everything that one command measured."""

    folder: Path
    info: Mapping[str, Any]
    samples: tuple[Sample, ...]
    fidelity: tuple[Fidelity, ...] = ()


def _to_line(record: Sample | Fidelity) -> str:
    """One JSON line; fields that have their default are left out."""
    shape = asdict(record)
    said = {item.name: item.default for item in fields(record) if item.name != "schema"}
    kept = {key: value for key, value in shape.items() if value not in ({}, said.get(key))}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n"


def _sample(shape: dict[str, Any]) -> Sample:
    shape["conditions"] = Conditions(**_checked(shape["conditions"], Conditions))
    if shape.get("failure") is not None:
        shape["failure"] = Failure(**_checked(shape["failure"], Failure))
    return Sample(**shape)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "int": (int,),
    "bool": (bool,),
    "tuple[str, ...]": (list,),
    "Mapping[str, int]": (dict,),
    "Conditions": (dict,),
    "Failure | None": (dict, type(None)),
}
"""What JSON makes of each annotation that the records use."""


def _checked(shape: object, record: type[Any]) -> dict[str, Any]:
    """`shape` as the fields of `record`. Raises ValueError saying which field is missing, unknown or of
    another type."""
    if not isinstance(shape, dict):
        raise ValueError(f"{record.__name__.lower()} is {type(shape).__name__}, not an object")
    known = {item.name: item for item in fields(record)}
    for name in shape:
        if name not in known:
            raise ValueError(f"unknown field {name!r}")
    for name, item in known.items():
        required = item.default is MISSING and item.default_factory is MISSING
        if name not in shape:
            if required:
                raise ValueError(f"field {name!r} is missing")
            continue
        value, allowed = shape[name], _TYPES[str(item.type)]
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise ValueError(f"field {name!r} is {value!r:.40}, not {item.type}")
        inner = value.values() if isinstance(value, dict) and "Mapping" in str(item.type) else ()
        if not all(type(number) is int for number in inner):
            raise ValueError(f"field {name!r} holds something that is not an integer")
        if isinstance(value, list):
            if not all(isinstance(text, str) for text in value):
                raise ValueError(f"field {name!r} holds something that is not text")
            shape[name] = tuple(value)
    return shape


class SampleWriter:
    """Appends records to a run's files, each line flushed to the system at once: a run that is stopped keeps
    all."""

    def __init__(self, folder: Path) -> None:
        """Continue the files of `folder`; a last line that a crash has cut short is removed, as readers drop
        it."""
        self._samples = folder / "samples.jsonl"
        self._fidelity = folder / "fidelity.jsonl"
        for path in (self._samples, self._fidelity):
            _drop_cut_line(path)

    def append(self, *records: Sample | Fidelity) -> None:
        """Append records of one kind, a line each, in one write: all of them or none. Raises OSError when the disk
        takes them no more."""
        if not records:
            return
        path = self._samples if isinstance(records[0], Sample) else self._fidelity
        lines = "".join(_to_line(record) for record in records).encode()
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            written = os.write(descriptor, lines)
            if written != len(lines):
                os.ftruncate(descriptor, before)
                raise OSError(errno.ENOSPC, "no space left for a whole line", str(path))
        finally:
            os.close(descriptor)


def _drop_cut_line(path: Path) -> None:
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def write_run_info(folder: Path, info: Mapping[str, Any]) -> None:
    """Write `run.json` whole or not at all."""
    path = folder / "run.json"
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(json.dumps({"schema": SCHEMA, **info}, indent=1, ensure_ascii=False) + "\n")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_run(folder: Path) -> Run:
    """Read a result folder. Raises RecordError naming file, line and reason; a last line cut short by a crash
    is dropped, because its sample was never finished."""
    info_path = folder / "run.json"
    try:
        info = json.loads(info_path.read_text())
    except FileNotFoundError:
        raise RecordError(
            f"{folder}: no run.json here; name a folder that a run has made, e.g. results/<time>-<machine>"
        ) from None
    except (OSError, ValueError) as error:
        raise RecordError(f"{info_path}: not readable as JSON ({error})") from None
    if not isinstance(info, dict) or info.get("schema") != SCHEMA:
        found = info.get("schema") if isinstance(info, dict) else type(info).__name__
        raise RecordError(f"{info_path}: schema is {found!r}, this version reads {SCHEMA}")
    samples = tuple(_records(folder / "samples.jsonl", Sample, _sample))
    fidelity = tuple(_records(folder / "fidelity.jsonl", Fidelity, lambda shape: Fidelity(**shape)))
    return Run(folder, info, samples, fidelity)


_Record = TypeVar("_Record", Sample, Fidelity)


def _records(path: Path, record: type[_Record], build: Callable[[dict[str, Any]], _Record]) -> Iterator[_Record]:
    if not path.exists():
        return
    seen: dict[object, int] = {}
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                shape = json.loads(line)
                found = shape.get("schema") if isinstance(shape, dict) else None
                if found != SCHEMA:
                    raise ValueError(f"schema is {found!r}, this version reads {SCHEMA}")
                built = build(_checked(shape, record))
            except ValueError as error:
                raise RecordError(f"{path}, line {number}: {error}; remove the line to read the rest") from None
            first = seen.setdefault(_identity(built), number)
            if first != number:
                raise RecordError(f"{path}, line {number}: repeats line {first}; remove one of the two")
            yield built


def _identity(record: Sample | Fidelity) -> object:
    """What no two lines of a file may share. A round that was measured again after a resume has another
    position."""
    if isinstance(record, Sample):
        return record.cell, record.round, record.position
    return record.variant, record.target, record.strings, record.kind, record.nulls
