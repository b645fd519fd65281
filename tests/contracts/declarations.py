"""Suggest declarations for a format that changes values: the ready-made losses and relations that describe the changes.

When the contract fails, its message shows lines to paste into the format's module. They are found by trying all
ready-made declarations on the columns that came back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.losses import Loss
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.results.records import Fidelity
from bench_runner.worker import fidelity, verify
from bench_runner.worker.messages import KindOutcome
from data_generator.generated.kinds import KINDS, ROWS, ColumnKind
from tests.contracts.candidates import Candidate, Trip, candidates, imports, merged

Trips = dict[str, dict[bool, fidelity.Trip]]
"""Name of a kind -> whether the column has nulls -> outcome of the round trip."""

_MISSED = "declared, but did not occur"
"""Start of the message for a stale declaration. For such a message there is no line to add."""


@dataclass
class _Returned:
    """The result of one round trip. It is compared with the column that losses predict."""

    table: pa.Table
    got: Any
    target: Target
    declared: tuple[Loss, ...]
    """The losses that the format already declares."""
    known: dict[tuple[Loss, ...], bool] = field(default_factory=dict)
    """Losses that change the column -> whether they explain the result."""

    def touching(self, losses: Sequence[Loss]) -> tuple[Loss, ...]:
        """Return the losses that change the column, in the order of their application. Declared losses come first."""
        column, touching = self.table["value"], ()
        for loss in (*self.declared, *losses):
            if not loss.holds_for(self.target.kind, self.target.strings, self.target.nulls):
                continue
            try:
                changed = loss.relation.expect(column)
            except Exception:
                # A relation must not fail, so count the loss as touching the column: it cannot be compared either
                return *touching, loss
            if changed is not None:
                column = changed
                touching = (*touching, loss)
            if changed is not None and loss.relation.parse is not None:
                break
        return touching

    def fits(self, losses: Sequence[Loss]) -> bool:
        """Return whether the losses explain the result."""
        touching = self.touching(losses)
        if touching not in self.known:
            try:
                self.known[touching] = not verify.compare(self.table, self.got, self.target, touching).problems
            except Exception:
                self.known[touching] = False  # a relation that fails on this result does not explain it
        return self.known[touching]


def records(
    variant: str, adapter: TabularFormat, target: Target, folder: Path, alone: Iterable[str] = ()
) -> list[Fidelity]:
    """Return what the variant does to each kind of column, in the form that a run stores.

    All kinds are saved in one table, except the kinds in `alone` and those that the adapter refuses. Columns that come
    back with undeclared changes are tried again one by one. If the table is refused, it is halved repeatedly, until the
    kinds that cause the refusal are tried alone.
    """
    alone = {*adapter.known_faults, *alone}
    together = [kind for kind in KINDS.values() if kind.name not in alone and not _refused(adapter, kind)]
    trips = _trips(adapter, target, folder / "wide", together)
    found: list[KindOutcome] = []
    for kind in KINDS.values():
        if kind.name in trips:
            found += fidelity.verdicts(kind, adapter, target, trips[kind.name])
        else:
            found += fidelity.probe(adapter, target, folder, [kind])
    return [
        Fidelity(variant=variant, target=target.kind, strings=target.strings, **asdict(verdict)) for verdict in found
    ]


def _refused(adapter: TabularFormat, kind: ColumnKind) -> bool:
    return any(adapter.refusal(kind.table(nulls).schema, ROWS) for nulls in kind.nulls)


def _trips(adapter: TabularFormat, target: Target, folder: Path, kinds: Sequence[ColumnKind]) -> Trips:
    """Return the outcomes of the kinds that came back from one common table, or from a part of this table."""
    if len(kinds) < 2:
        return {}
    found = _together(adapter, target, folder, kinds)
    if found is not None:
        return found
    half = len(kinds) // 2
    parts = (_trips(adapter, target, folder / "0", kinds[:half]), _trips(adapter, target, folder / "1", kinds[half:]))
    return parts[0] | parts[1]


def _together(adapter: TabularFormat, target: Target, folder: Path, kinds: Sequence[ColumnKind]) -> Trips | None:
    """Return the outcomes of the kinds without errors, or None if the table of all kinds is refused."""
    columns = {f"{kind.name}-{nulls}": kind.table(nulls)["value"] for kind in kinds for nulls in kind.nulls}
    table = pa.table({"key": pa.array(range(ROWS), pa.int64()), **columns})
    if adapter.refusal(table.schema, table.num_rows):
        return None
    folder.mkdir(parents=True)
    location = folder / f"t{adapter.suffix}"
    try:
        adapter.save(targets.to_native(targets.make(table, target), target, adapter.native), location)
        got = targets.from_native(adapter.read(location), target, adapter.native_read)
    except Exception:
        return None  # the kind that causes the error reports it when it is tried alone
    if list(got.columns if isinstance(got, pd.DataFrame) else got.column_names) != table.column_names:
        return None
    found: Trips = {}
    for kind in kinds:
        trips = {}
        for nulls in kind.nulls:
            names = ["key", f"{kind.name}-{nulls}"]
            part = got[names] if isinstance(got, pd.DataFrame) else got.select(names)
            trips[nulls] = fidelity.judged(adapter, target, table.select(names), part)
        if all(trip.outcome != fidelity.ERROR for trip in trips.values()):
            found[kind.name] = trips
    return found


def report(adapter: TabularFormat, undeclared: Sequence[Fidelity], folder: Path) -> str:
    """Return a message with one line for each kind that changed, followed by the declarations to add."""
    changes = {record.kind: f"{record.kind} (target {record.target}): {record.how}" for record in reversed(undeclared)}
    changed = [record for record in undeclared if not record.how.startswith(_MISSED)]
    lines = ["changes that are not declared, and declared ones that did not occur:", *reversed(changes.values())]
    return "\n".join([*lines, "", _advice(adapter, changed, folder)] if changed else lines)


def _advice(adapter: TabularFormat, undeclared: Iterable[Fidelity], folder: Path) -> str:
    """Return the lines to paste into the module, and the kinds for which no ready-made declaration fits."""
    trips = sorted({Trip(record.kind, record.target, record.nulls) for record in undeclared})
    returned = {trip: _returned(adapter, trip, folder) for trip in trips}
    chosen = _chosen(list(candidates(trips)), returned)
    said = []
    if chosen:
        tried = {trip.target for trip in trips}
        lines = "\n".join(["losses = (", *(candidate.line(tried) for candidate in chosen), ")"])
        said += ["These ready-made losses explain the results. Paste those that are true, in this order:", ""]
        said += [*imports(lines), "", lines]
    if unexplained := {trip.kind: None for trip in trips if not returned[trip].fits(_losses(chosen))}:
        names = ", ".join(unexplained)
        said += ["", f"No ready-made declaration fits {names}. Correct the call, refuse the type in `refusal`, write a"]
        said += ["relation (adapters/relations/ has examples), or add the kind to `known_faults`."]
    return "\n".join([*said, "See 'Losses' in docs/adding.md."])


def _returned(adapter: TabularFormat, trip: Trip, folder: Path) -> _Returned:
    """Repeat the round trip."""
    table, target = KINDS[trip.kind].table(trip.nulls), Target(trip.target)
    targets.apply_strings(target)
    location = folder / f"{trip.kind}-{trip.target}-{trip.nulls}{adapter.suffix}"
    adapter.save(targets.to_native(targets.make(table, target), target, adapter.native), location)
    got = targets.from_native(adapter.read(location), target, adapter.native_read)
    return _Returned(table, got, target, adapter.losses)


def _chosen(pool: list[Candidate], returned: Mapping[Trip, _Returned]) -> list[Candidate]:
    """Return candidates that together explain as many round trips as possible, in the order in which to declare them.

    Candidates that explain a kind both with and without nulls are tried first. Other candidates may fit only because
    the test data have nulls.
    """
    for candidate in pool:
        _try(candidate, returned)
    tried = {trip.target for trip in returned}
    usable = [candidate for candidate in pool if candidate.occurs_for_all_its_kinds(tried)]
    chosen: list[Candidate] = []
    left = set(returned)
    while usable := [each for each in usable if each.explained & left]:
        # A candidate that changes other unexplained round trips may make it impossible to explain these.
        careful = [each for each in usable if not (each.touched - each.explained) & left]
        best = max(careful or usable, key=lambda each: _worth(each, left))
        usable.remove(best)
        with_best = _with(best, chosen, returned, left)
        if with_best is not None:
            chosen = with_best
            left = {trip for trip in left if not returned[trip].fits(_losses(chosen))}
    for candidate in list(chosen):
        # A later candidate may explain all round trips that this one explains. If both were declared, one would never
        # occur.
        if _fitting(rest := _without(candidate, chosen), returned) == _fitting(chosen, returned):
            chosen = rest
    for candidate in list(chosen):
        chosen = max(chosen, [candidate, *_without(candidate, chosen)], key=lambda order: _fitting(order, returned))
    fitting = [trip for trip in returned if returned[trip].fits(_losses(chosen))]
    for candidate in chosen:
        # Round trips that an earlier candidate explains completely are listed only with that candidate.
        seen = {trip for trip in fitting if candidate.loss in returned[trip].touching(_losses(chosen))}
        candidate.explained = seen & candidate.touched or seen
    return [candidate for candidate in chosen if candidate.explained]


def _try(candidate: Candidate, returned: Mapping[Trip, _Returned]) -> None:
    """Record which round trips the candidate changes, and which it explains together with the declared losses."""
    for trip, came_back in returned.items():
        if candidate.loss in came_back.touching([candidate.loss]):
            candidate.touched.add(trip)
            if came_back.fits([candidate.loss]):
                candidate.explained.add(trip)


def _with(
    best: Candidate, chosen: list[Candidate], returned: Mapping[Trip, _Returned], left: set[Trip]
) -> list[Candidate] | None:
    """Insert `best` as late as possible, so that it explains its round trips and all others stay explained.

    Relations that name types are merged into one. Returns None if no position fits.
    """
    wanted = (returned.keys() - left) | best.explained
    trials = [[*chosen[:place], best, *chosen[place:]] for place in range(len(chosen), -1, -1)]
    for place, other in enumerate(chosen):
        if best.types and other.types and other.loss.relation.parse is best.loss.relation.parse:
            trials.insert(0, [*chosen[:place], merged([other, best]), *chosen[place + 1 :]])
    return next((trial for trial in trials if all(returned[trip].fits(_losses(trial)) for trip in wanted)), None)


def _without(candidate: Candidate, chosen: Iterable[Candidate]) -> list[Candidate]:
    return [each for each in chosen if each is not candidate]


def _losses(chosen: Iterable[Candidate]) -> list[Loss]:
    return [candidate.loss for candidate in chosen]


def _fitting(chosen: Sequence[Candidate], returned: Mapping[Trip, _Returned]) -> int:
    return sum(came_back.fits(_losses(chosen)) for came_back in returned.values())


def _worth(candidate: Candidate, left: set[Trip]) -> tuple[float, ...]:
    """Return the sort key of a candidate.

    The criteria are, in this order: whether it explains all round trips of some kind, whether it is ready-made, whether
    it is a helper, the number of kinds and round trips explained, few other round trips changed, and a short spelling.
    """
    whole, explained = _whole(candidate, left), len(candidate.explained & left)
    rank = (candidate.is_ready, candidate.is_helper, len(whole), explained)
    return bool(whole), *rank, -len(candidate.touched - candidate.explained), -len(candidate.spelled)


def _whole(candidate: Candidate, left: set[Trip]) -> set[tuple[str, str]]:
    """Return the kinds and targets whose remaining round trips the candidate explains completely."""
    explained = candidate.explained & left
    return {(trip.kind, trip.target) for trip in explained} - {
        (trip.kind, trip.target) for trip in left - candidate.explained
    }
