"""What a variant does to each kind of column: a small round trip for each, compared as every sample is.

Nothing is timed here. A change that nobody declared is an error, and so is a declared one that does not occur, or lies
outside its bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.losses import Cause, Loss
from bench_runner.errors import in_one_line
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from data_generator.generated.kinds import KINDS, ColumnKind

EXACT, LOSSY, REFUSED, ERROR = "exact", "lossy", "refused", "error"

_ARROW = Target(kind="arrow")


@dataclass(frozen=True)
class KindOutcome:
    """What becomes of one kind of column; bench_runner.results.records.Fidelity says what each field means."""

    kind: str
    nulls: bool
    outcome: str
    how: str
    bound: str
    cause: str
    target_alone: str


@dataclass(frozen=True)
class Trip:
    """What became of one table."""

    outcome: str
    how: str = ""
    losses: tuple[Loss, ...] = ()


def probe(
    adapter: TabularFormat, target: Target, folder: Path, kinds: Iterable[ColumnKind] = tuple(KINDS.values())
) -> Iterator[KindOutcome]:
    """Round trips of these kinds, each without and with nulls, as far as it has both; the libraries must be loaded, the
    strings applied.

    Writes only below `folder`, which may not exist yet. Raises OSError and MemoryError: a full disk is not a refusal.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        trips = {}
        for nulls in kind.nulls:
            location = folder / f"{kind.name}{'-nulls' if nulls else ''}{adapter.suffix}"
            trips[nulls] = _trip(adapter, target, kind.table(nulls), location)
        yield from verdicts(kind, adapter, target, trips)


def verdicts(
    kind: ColumnKind, adapter: TabularFormat, target: Target, trips: Mapping[bool, Trip]
) -> Iterator[KindOutcome]:
    """What became of a kind, by its trips without and with nulls."""
    for nulls, trip in _with_missed_losses(kind, adapter, target, trips).items():
        how, bound, cause = _described(trip, adapter.known_faults.get(kind.name))
        yield KindOutcome(
            kind=kind.name,
            nulls=nulls,
            outcome=trip.outcome,
            how=how,
            bound=bound,
            cause=cause,
            target_alone=target_alone(kind.name, nulls, target),
        )


def _described(trip: Trip, known_fault: str | None) -> tuple[str, str, str]:
    """How the trip changed the data, within which bound, and whose doing it is. A fault that the adapter knows has a
    cause but no bound; an error without a cause is news, and fails the run."""
    if trip.outcome == ERROR and known_fault is not None:
        return f"{known_fault} ({trip.how})", "none", Cause.CALL.value
    bound = "; ".join(loss.bound for loss in trip.losses)
    return trip.how, bound, " and ".join(dict.fromkeys(loss.cause.value for loss in trip.losses))


def _with_missed_losses(
    kind: ColumnKind, adapter: TabularFormat, target: Target, trips: Mapping[bool, Trip]
) -> Mapping[bool, Trip]:
    """The trips; a loss that is declared for this kind, and was seen on none, makes the first one an error."""
    seen = {loss.what for trip in trips.values() for loss in trip.losses}
    missed = [
        loss.what
        for loss in adapter.losses
        if kind.name in loss.kinds
        and loss.what not in seen
        and loss.holds_for(target.kind, target.strings, target.nulls)
    ]
    if missed and all(trip.outcome != ERROR for trip in trips.values()):
        return {**trips, kind.nulls[0]: Trip(ERROR, f"declared, but did not occur: {'; '.join(missed)}")}
    return trips


def _trip(adapter: TabularFormat, target: Target, table: pa.Table, location: Path) -> Trip:
    refusal = adapter.refusal(table.schema, table.num_rows)
    if refusal:
        return Trip(REFUSED, refusal)
    try:
        adapter.save(targets.to_native(targets.make(table, target), target, adapter.native), location)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        return Trip(REFUSED, f"save: {_first_line(error)}" + _with_numpy(adapter, target, table, location))
    try:
        got = targets.from_native(adapter.read(location), target, adapter.native_read)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        return Trip(REFUSED, f"read: {_first_line(error)}")
    return judged(adapter, target, table, got)


def judged(adapter: TabularFormat, target: Target, table: pa.Table, got: Any) -> Trip:
    """What became of a table that came back as `got`, a DataFrame or a table of Arrow."""
    comparison = verify.compare(table, got, target, adapter.losses)
    if comparison.problems:
        return Trip(ERROR, "; ".join(comparison.problems))
    losses = tuple(loss for loss in adapter.losses if loss.what in comparison.losses)
    return Trip(LOSSY if losses else EXACT, "; ".join(comparison.losses), losses)


def _with_numpy(adapter: TabularFormat, target: Target, table: pa.Table, location: Path) -> str:
    """What becomes of a table that was refused for its Int64 or boolean, when numpy holds it instead."""
    masked = targets.MASKED_DTYPES.keys() & {column.type for column in table.columns if column.null_count}
    if adapter.takes_masked or target.nulls == "numpy" or not masked:
        return ""
    trip = _trip(adapter, replace(target, nulls="numpy"), table, location.with_stem(f"{location.stem}-numpy"))
    return f" (with nulls=numpy: {trip.outcome})"


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {in_one_line(text.splitlines()[0]) if text else 'no message'}"[:200]


@cache
def target_alone(kind: str, nulls: bool, target: Target) -> str:
    """What the target loses of a kind's Arrow table without any format; empty when nothing is lost."""
    if target.kind == "arrow":
        return ""
    table = KINDS[kind].table(nulls)
    try:
        back = pa.Table.from_pandas(targets.make(table, target), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        return f"cannot be told from its Python values: {_first_line(error)}"
    return "; ".join(verify.compare(table, back, _ARROW).problems)
