"""What to declare of a format that changes some kind of column: the ready-made losses and relations that fit.

Used when the contract fails, so that the failure can be pasted into the module. It tries what there is on what came
back; it knows no format.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from adapters.contract import TabularFormat
from adapters.losses import Cause, Loss, Relation
from adapters.relations import floats, integers, texts, times, written
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.results.records import Fidelity
from bench_runner.worker import fidelity, verify
from data_generator.generated.kinds import KINDS
from formats.shared import pandas_losses, text_losses

_MODULES = {"shared": pandas_losses, "text": text_losses}
"""The modules of ready-made losses, under the names that formats import them by."""

_IMPORTS = """\
from adapters.losses import Cause, Loss, Relation
from adapters.relations import floats, integers, texts, times, written
from formats.shared import pandas_losses as shared
from formats.shared import text_losses as text"""

RELATIONS = {"floats": floats, "integers": integers, "texts": texts, "times": times, "written": written}
"""The modules of ready-made relations, likewise."""

_MISSED = "declared, but did not occur"
"""How the fidelity of a declaration that has grown stale begins: there is nothing to add for it."""

_UNITS = ("s", "ms", "us", "ns")


@dataclass
class _Candidate:
    """A line to paste, the relation that it declares, and where that was seen to hold."""

    spelled: str
    relation: Relation
    ready: Loss | None = None
    """The loss itself, where it is ready-made; else the line is a relation, and a loss is written around it."""
    explained: set[tuple[str, str]] = field(default_factory=set)
    """Kind and target."""

    @property
    def kinds(self) -> list[str]:
        return sorted({kind for kind, _ in self.explained})

    @property
    def targets(self) -> list[str]:
        return sorted({target for _, target in self.explained})

    def line(self) -> str:
        """The loss as it is pasted into `losses`."""
        if self.ready is not None:
            return f"    {self.spelled},  # {', '.join(self.kinds)}"
        only = "" if len(self.targets) > 1 else f"\n        targets=frozenset({{{_quoted(self.targets)}}}),"
        return (
            '    Loss(\n        "<what becomes what>",\n        "<what still holds>",\n        Cause.CALL,\n'
            f"        {self.spelled},\n        frozenset({{{_quoted(self.kinds)}}}),{only}\n    ),"
        )


def records(variant: str, adapter: TabularFormat, target: Target, folder: Path) -> list[Fidelity]:
    """What the variant does to each kind of column, as a run stores it."""
    return [
        Fidelity(variant=variant, target=target.kind, strings=target.strings, **asdict(verdict))
        for verdict in fidelity.probe(adapter, target, folder)
    ]


def report(adapter: TabularFormat, undeclared: Sequence[Fidelity], folder: Path) -> str:
    """What became of each kind, one line for all its round trips, and what to declare of it."""
    told = {record.kind: f"{record.kind} (target {record.target}): {record.how}" for record in reversed(undeclared)}
    changed = [record for record in undeclared if not record.how.startswith(_MISSED)]
    lines = ["not declared, or declared and not seen:", *reversed(told.values())]
    return "\n".join([*lines, "", _advice(adapter, changed, folder)] if changed else lines)


def _advice(adapter: TabularFormat, undeclared: Iterable[Fidelity], folder: Path) -> str:
    """What to paste into the module for these changes, and what is left for which nothing ready-made fits."""
    candidates = list(_candidates())
    changed = sorted({(record.kind, record.target, record.nulls) for record in undeclared})
    unexplained: list[tuple[str, str, bool]] = []
    for kind, target, nulls in changed:
        fitting = _fitting(adapter, kind, Target(target), nulls, candidates, folder)
        for candidate in fitting:
            candidate.explained.add((kind, target))
        if not fitting:
            unexplained.append((kind, target, nulls))
    chosen = _fewest(candidates, {(kind, target) for kind, target, _ in changed})
    said = []
    if chosen:
        said += ["these ready-made losses fit what came back; paste what you find true:", "", _IMPORTS, ""]
        said += ["losses = (", *(candidate.line() for candidate in chosen), ")"]
    if unexplained:
        names = ", ".join(dict.fromkeys(kind for kind, _, _ in unexplained))
        said += ["", f"nothing ready-made fits {names}: mend the call, refuse the type in `refusal`, write a relation"]
        said += ["(adapters/relations.py shows how), or name the kind in `known_faults`"]
    return "\n".join([*said, "see 'Losses' in docs/adding-a-format.md"])


def _fitting(
    adapter: TabularFormat, kind: str, target: Target, nulls: bool, candidates: list[_Candidate], folder: Path
) -> list[_Candidate]:
    """The candidates that explain what becomes of this kind, beside what is declared already."""
    table = KINDS[kind].table(nulls)
    targets.apply_strings(target)
    location = folder / f"{kind}-{target.kind}-{nulls}{adapter.suffix}"
    adapter.save(targets.to_native(targets.make(table, target), target, adapter.native), location)
    got = targets.from_native(adapter.read(location), target, adapter.native_read)
    return [candidate for candidate in candidates if _explains(candidate, adapter, table, got, target)]


def _explains(candidate: _Candidate, adapter: TabularFormat, table: pa.Table, got: Any, target: Target) -> bool:
    loss = candidate.ready or Loss("tried", "", Cause.CALL, candidate.relation, frozenset())
    if not loss.holds_for(target.kind, target.strings, target.nulls):
        return False
    try:
        return not verify.compare(table, got, target, (*adapter.losses, loss)).problems
    except Exception:
        return False  # a relation that cannot be had of this column does not explain it


def _fewest(candidates: list[_Candidate], wanted: set[tuple[str, str]]) -> list[_Candidate]:
    """Candidates that together explain all that can be: in turn the one that explains most, a ready-made one before
    others."""
    chosen: list[_Candidate] = []
    usable = [candidate for candidate in candidates if _is_honest(candidate)]
    while usable and (best := max(usable, key=lambda each: _worth(each, wanted))).explained & wanted:
        chosen.append(best)
        wanted = wanted - best.explained
    for candidate in chosen:
        if candidate.ready is None:
            # What an earlier one explains need not be said again.
            earlier = set().union(*(each.explained for each in chosen[: chosen.index(candidate)]))
            candidate.explained -= earlier
    # Losses are tried in their order, each on what the one before has made of the column: the special ones come first.
    return sorted(chosen, key=lambda each: len(each.explained))


def _worth(candidate: _Candidate, wanted: set[tuple[str, str]]) -> tuple[int, bool, int]:
    return len(candidate.explained & wanted), candidate.ready is not None, -len(candidate.spelled)


def _is_honest(candidate: _Candidate) -> bool:
    """Whether a ready-made loss names no kind on which it was not seen: that would be an error of its own."""
    return candidate.ready is None or candidate.ready.kinds <= {kind for kind, _ in candidate.explained}


def _candidates() -> Iterator[_Candidate]:
    for module, losses in _MODULES.items():
        for name, value in vars(losses).items():
            if isinstance(value, Loss):
                yield _Candidate(f"{module}.{name}", value.relation, value)
    missing = pandas_losses.missing_words(pandas_losses.READ_CSV_WORDS)
    yield _Candidate("shared.missing_words(shared.READ_CSV_WORDS)", missing.relation, missing)
    wider = pandas_losses.float32_as_float64(bound="the same number as float64")
    yield _Candidate('shared.float32_as_float64(bound="the same number as float64")', wider.relation, wider)
    for name, function in _relations():
        yield _Candidate(f"Relation({name})", Relation(function))
        for argument, values in {
            "relative_tolerance=2.0**-24": {"relative_tolerance": 2.0**-24},
            'nulls="numpy"': {"nulls": "numpy"},
            "parse=written.parse_text": {"parse": written.parse_text},
        }.items():
            relation = Relation(function, **values)
            yield _Candidate(f"Relation({name}, {argument})", relation)
    for to_unit in _UNITS:
        others = [unit for unit in _UNITS if unit != to_unit]
        for zone in (None, "UTC"):
            arguments = f'{others}, "{to_unit}"'.replace("'", '"') + (f', "{zone}"' if zone else "")
            relation = Relation(times.timestamps_in(others, to_unit, zone))
            yield _Candidate(f"Relation(times.timestamps_in({arguments}))", relation)


def _relations() -> Iterator[tuple[str, Any]]:
    """Every ready-made relation that takes a column alone, under the name by which a format uses it."""
    for module, content in RELATIONS.items():
        for name, function in vars(content).items():
            of_this_module = inspect.isfunction(function) and function.__module__ == content.__name__
            if of_this_module and not name.startswith("_") and [*_parameters(function)] == ["column"]:
                yield f"{module}.{name}", function


def _parameters(function: Any) -> Iterator[str]:
    yield from inspect.signature(function).parameters


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
