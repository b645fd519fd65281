"""Finding what a variant does to each kind of column: a small round trip for each, compared like every sample.

Nothing is timed here. An undeclared change is an error, and so is a declared one that does not occur, or exceeds its
bound.
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
    """The result for one kind of column. bench_runner.results.records.Fidelity documents the fields."""

    kind: str
    nulls: bool
    outcome: str
    how: str
    bound: str
    cause: str
    target_alone: str


@dataclass(frozen=True)
class Trip:
    """The result of one round trip of a table."""

    outcome: str
    how: str = ""
    losses: tuple[Loss, ...] = ()


def probe(
    adapter: TabularFormat, target: Target, folder: Path, kinds: Iterable[ColumnKind] = tuple(KINDS.values())
) -> Iterator[KindOutcome]:
    """Make a round trip of each kind, without and with nulls if it has both. Yield the results.

    Libraries must be loaded, and the target's strings applied. Writes only below `folder`, which may not exist yet.
    Raises OSError and MemoryError: a full disk is not a refusal.
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
    """Yield the results for a kind, from its trips without and with nulls."""
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
    """Return how the trip changed the data, the bound, and the cause. A fault that the adapter declares has a cause but
    no bound; an error without a cause is new, and fails the run."""
    if trip.outcome == ERROR and known_fault is not None:
        return f"{known_fault} ({trip.how})", "none", Cause.CALL.value
    bound = "; ".join(loss.bound for loss in trip.losses)
    return trip.how, bound, " and ".join(dict.fromkeys(loss.cause.value for loss in trip.losses))


def _with_missed_losses(
    kind: ColumnKind, adapter: TabularFormat, target: Target, trips: Mapping[bool, Trip]
) -> Mapping[bool, Trip]:
    """Return the trips. A loss that is declared for this kind, but seen on no trip, makes the first one an error."""
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
    """Return the result for a table that was read as `got`, a DataFrame or an Arrow table."""
    comparison = verify.compare(table, got, target, adapter.losses)
    if comparison.problems:
        return Trip(ERROR, "; ".join(comparison.problems))
    losses = tuple(loss for loss in adapter.losses if loss.what in comparison.losses)
    return Trip(LOSSY if losses else EXACT, "; ".join(comparison.losses), losses)


def _with_numpy(adapter: TabularFormat, target: Target, table: pa.Table, location: Path) -> str:
    """Return the result with numpy dtypes, as text, for a table that was refused for its Int64 or boolean columns."""
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
    """Return what the target loses of a kind's Arrow table without any format; '' for nothing."""
    if target.kind == "arrow":
        return ""
    table = KINDS[kind].table(nulls)
    try:
        back = pa.Table.from_pandas(targets.make(table, target), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        return f"its Python values do not determine the type: {_first_line(error)}"
    return "; ".join(verify.compare(table, back, _ARROW).problems)
