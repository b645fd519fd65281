"""Find out how a variant changes each kind of column. A small table with a column of each kind is saved, read back and
compared.

Nothing is timed here. A change that the adapter does not declare is an error. If a declared change does not occur, or
exceeds its declared bound, this is an error too.
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
from bench_runner.worker.messages import ERROR, EXACT, LOSSY, REFUSED, KindOutcome
from data_generator.generated.kinds import KINDS, ColumnKind

_ARROW = Target(kind="arrow")


@dataclass(frozen=True)
class Trip:
    """The result of one round trip: saving a table and reading it back."""

    outcome: str
    how: str = ""
    losses: tuple[Loss, ...] = ()


def probe(
    adapter: TabularFormat, target: Target, folder: Path, kinds: Iterable[ColumnKind] = tuple(KINDS.values())
) -> Iterator[KindOutcome]:
    """Save and read back each kind of column, without nulls and with nulls, if the kind allows both. Yield the results.

    Before the call, libraries must be loaded and the target's text dtype must be set. Files are written only below
    `folder`, which need not exist. If the variant raises OSError or MemoryError, the error is raised here, too, because
    its cause may be a full disk, for example. If the variant raises another error, the result is a refusal of the data.
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
    """Yield the results for one kind of column. A key of `trips` is True if the column had nulls."""
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
    """Return how the round trip changed the data, the bound of the change, and its cause. For an error that the adapter
    declares as a known fault, the bound is 'none' and the cause is 'call'. For any other error both are '', and the run
    counts as failed."""
    if trip.outcome == ERROR and known_fault is not None:
        return f"{known_fault} ({trip.how})", "none", Cause.CALL.value
    bound = "; ".join(loss.bound for loss in trip.losses)
    return trip.how, bound, " and ".join(dict.fromkeys(loss.cause.value for loss in trip.losses))


def _with_missed_losses(
    kind: ColumnKind, adapter: TabularFormat, target: Target, trips: Mapping[bool, Trip]
) -> Mapping[bool, Trip]:
    """Return the round trips. If a loss is declared for this kind but occurred in no round trip, replace the first
    round trip by an error."""
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
        return Trip(REFUSED, f"save: {first_line(error)}" + _with_numpy(adapter, target, table, location))
    try:
        got = targets.from_native(adapter.read(location), target, adapter.native_read)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        return Trip(REFUSED, f"read: {first_line(error)}")
    return judged(adapter, target, table, got)


def judged(adapter: TabularFormat, target: Target, table: pa.Table, got: Any) -> Trip:
    """Return the result of a round trip that stored `table` and read `got`, a DataFrame or an Arrow table."""
    comparison = verify.compare(table, got, target, adapter.losses)
    if comparison.problems:
        return Trip(ERROR, "; ".join(comparison.problems))
    losses = tuple(loss for loss in adapter.losses if loss.what in comparison.losses)
    return Trip(LOSSY if losses else EXACT, "; ".join(comparison.losses), losses)


def _with_numpy(adapter: TabularFormat, target: Target, table: pa.Table, location: Path) -> str:
    """Do a second round trip with numpy dtypes if the table has Int64 or boolean columns that the variant does not
    accept. Return a text with the result, or '' if there is no second round trip."""
    masked = targets.MASKED_DTYPES.keys() & {column.type for column in table.columns if column.null_count}
    if adapter.takes_masked or target.nulls == "numpy" or not masked:
        return ""
    trip = _trip(adapter, replace(target, nulls="numpy"), table, location.with_stem(f"{location.stem}-numpy"))
    return f" (with nulls=numpy: {trip.outcome})"


def first_line(error: Exception) -> str:
    """Return the type of an error and the first line of its text, at most 200 characters."""
    text = str(error).strip()
    return f"{type(error).__name__}: {in_one_line(text.splitlines()[0]) if text else 'no message'}"[:200]


@cache
def target_alone(kind: str, nulls: bool, target: Target) -> str:
    """Return what changes when a table with a column of this kind is only converted to the target and back, without any
    format. Return '' if nothing changes."""
    if target.kind == "arrow":
        return ""
    table = KINDS[kind].table(nulls)
    try:
        back = pa.Table.from_pandas(targets.make(table, target), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        return f"its Python values do not determine the type: {first_line(error)}"
    return "; ".join(verify.compare(table, back, _ARROW).problems)
