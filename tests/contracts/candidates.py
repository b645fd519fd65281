"""Candidates for declarations: all ready-made losses, helpers and relations, spelled as a format's module would write
them.

`declarations` determines which candidates fit a format.
"""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

import pyarrow as pa

from adapters.losses import Cause, Expect, Loss, Parse, Relation
from adapters.relations import floats, integers, lists, nulls, texts, times, written
from data_generator.generated.kinds import KINDS
from formats.shared import pandas_losses, text_losses

LOSSES = {"shared": pandas_losses, "text": text_losses}
"""The modules of ready-made losses, by the name under which formats import them."""

RELATIONS = {
    "floats": floats,
    "integers": integers,
    "lists": lists,
    "nulls": nulls,
    "texts": texts,
    "times": times,
    "written": written,
}
"""The modules of ready-made relations, by the name under which formats import them."""

_WIDTH = 120
"""Maximum length of a line in this project."""

_UNITS = ("s", "ms", "us", "ns")
_OF_WRITTEN_AS_TEXT = ("date", "time", "duration", "binary", "list", "struct", "map")
"""Prefixes of the type names that `written_as_text` covers."""


class Trip(NamedTuple):
    """A round trip whose column came back changed."""

    kind: str
    target: str
    nulls: bool


@dataclass
class Candidate:
    """A declaration to try: the loss, its spelling, and the round trips that it changes and explains."""

    loss: Loss
    spelled: str
    """The name of a ready-made loss, a call of a helper that makes a loss, or a relation around which a loss is
    written."""
    is_ready: bool = False
    is_helper: bool = False
    types: tuple[str, ...] = ()
    """Prefixes of the type names that the relation lists. It is empty for relations that list no types."""
    touched: set[Trip] = field(default_factory=set)
    """The round trips whose column the loss changes."""
    explained: set[Trip] = field(default_factory=set)
    """The round trips whose column came back as the loss predicts."""

    def kinds_on(self, targets: Collection[str]) -> list[str]:
        """Return the kinds that the loss explains on each of these targets."""
        on = [{trip.kind for trip in self.explained if trip.target == target} for target in targets]
        return sorted(set.intersection(*on)) if on else []

    def occurs_for_all_its_kinds(self, targets: Collection[str]) -> bool:
        """Return whether the loss occurred for every kind that its declaration would name, on the targets that were
        tried.

        Otherwise the contract would reject the declaration as stale.
        """
        seen = set(self.kinds_on(self.loss.targets & set(targets)))
        if self.is_ready:
            return self.loss.kinds <= seen
        return bool(seen) or not self.is_helper

    def line(self, tried: Collection[str]) -> str:
        """Return the line to paste into `losses`, given the targets that were tried."""
        if self.is_ready:
            kinds = ", ".join(sorted({trip.kind for trip in self.explained}))
            return f"{_wrapped(kinds, '    # ', '    # ')}\n    {self.spelled},"
        held = self.loss.targets & set(tried)
        targets = held if self.kinds_on(held) else {min(trip.target for trip in self.explained)}
        kinds = self.kinds_on(targets)
        if self.is_helper:
            return _call(self.spelled, *map(_quoted, kinds))
        if targets == held:
            if self.loss.relation.parse is written.parse_text and self._are_written_as_text():
                return _call("shared.written_as_text", *map(_quoted, kinds), f"expect={self._expect()}")
            if self.loss.relation == Relation(self.loss.relation.expect) and _are_timestamps(kinds):
                return self._timestamps(kinds)
        only = [f"targets=frozenset({{{_listed(sorted(targets))}}})"] if targets != held else []
        what = ('"<what becomes what>"', '"<what still holds>"', "Cause.CALL")
        return _call("Loss", *what, self.spelled, f"frozenset({{{_listed(kinds)}}})", *only)

    def _are_written_as_text(self) -> bool:
        return bool(self.types) and all(name.startswith(_OF_WRITTEN_AS_TEXT) for name in self.types)

    def _expect(self) -> str:
        """Return the spelling of the function inside `Relation(...)`."""
        return f"written.of_types({_listed(self.types)})" if self.types else self.spelled[len("Relation(") : -1]

    def _timestamps(self, kinds: list[str]) -> str:
        zoned = [kind for kind in kinds if kind.endswith("-zone")]
        plain = [kind for kind in kinds if kind not in zoned]
        only = [] if len(zoned) == len(_UNITS) else [f"zoned=[{_listed(zoned)}]"]
        what = ('"<what becomes what>"', '"<what still holds>"')
        return _call("text.timestamps", *what, self._expect(), *map(_quoted, plain), *only)


def merged(parts: list[Candidate]) -> Candidate:
    """Merge relations that list types into one relation, with the parser of the first."""
    parse = parts[0].loss.relation.parse
    assert parse is not None
    types = tuple(sorted(name for part in parts for name in part.types))
    whole = _of_types(types, parse)
    for part in parts:
        whole.touched |= part.touched
        whole.explained |= part.explained
    return whole


def candidates(changed: Iterable[Trip]) -> Iterator[Candidate]:
    """Yield every candidate for these round trips."""
    yield from _ready()
    yield from _helpers()
    yield from _relations()
    beginnings = {name: None for trip in changed for name in _beginnings(KINDS[trip.kind].type)}
    for parse in (written.parse_text, written.parse_blob):
        yield from (_of_types((name,), parse) for name in beginnings)


def imports(lines: str) -> Iterator[str]:
    """Yield the import statements that the pasted lines need."""
    for module, names in {
        "adapters.losses": ("Cause", "Loss", "Relation"),
        "adapters.relations": tuple(RELATIONS),
    }.items():
        if named := [name for name in names if re.search(rf"\b{name}[.(]", lines)]:
            yield f"from {module} import {', '.join(named)}"
    for name, content in LOSSES.items():
        if re.search(rf"\b{name}\.", lines):
            yield f"from formats.shared import {content.__name__.rpartition('.')[2]} as {name}"


# --- ready-made declarations -----------------------------------------------------------------------------------


def _ready() -> Iterator[Candidate]:
    for module, content in LOSSES.items():
        for name, value in vars(content).items():
            if isinstance(value, Loss):
                yield Candidate(value, f"{module}.{name}", is_ready=True)
            elif isinstance(value, tuple) and value and all(isinstance(each, Loss) for each in value):
                for place, each in enumerate(value):
                    yield Candidate(each, f"{module}.{name}[{place}]", is_ready=True)
    missing = pandas_losses.missing_words(pandas_losses.READ_CSV_WORDS)
    yield Candidate(missing, "shared.missing_words(shared.READ_CSV_WORDS)", is_ready=True)
    for arguments, values in {
        'bound="the same number as float64"': {},
        'relative_tolerance=2.0**-24, bound="float64 within half a unit of float32"': {"relative_tolerance": 2.0**-24},
    }.items():
        for helper in (pandas_losses.float16_as_float64, pandas_losses.float32_as_float64):
            wider = helper(bound="", **values)
            yield Candidate(wider, f"shared.{helper.__name__}({arguments})", is_ready=True)
    for type_name in ("null", "double"):
        without = pandas_losses.categories_of_nulls_with(type_name)
        yield Candidate(without, f'shared.categories_of_nulls_with("{type_name}")', is_ready=True)


def _helpers() -> Iterator[Candidate]:
    """Yield the functions that make a loss from nothing but the kinds."""
    for module, content in LOSSES.items():
        for name, function in _functions(content):
            parameters = inspect.signature(function).parameters.values()
            given = [each for each in parameters if each.default is each.empty]
            if [each.kind for each in given] == [inspect.Parameter.VAR_POSITIONAL]:
                yield Candidate(function(), f"{module}.{name}", is_helper=True)


def _relations() -> Iterator[Candidate]:
    """Yield the ready-made relations whose only parameter is the column, with each way to compare and each unit of
    time."""
    for module, content in RELATIONS.items():
        for name, function in _functions(content):
            if [*inspect.signature(function).parameters] != ["column"]:
                continue
            yield _tried(f"Relation({module}.{name})", Relation(function))
            tolerant = Relation(function, relative_tolerance=2.0**-24)
            yield _tried(f"Relation({module}.{name}, relative_tolerance=2.0**-24)", tolerant)
            yield _tried(f'Relation({module}.{name}, nulls="numpy")', Relation(_unchanged(function), nulls="numpy"))
            parsed = Relation(_unchanged(function), parse=written.parse_text)
            yield _tried(f"Relation({module}.{name}, parse=written.parse_text)", parsed)
    for to_unit, zone in itertools.product(_UNITS, (None, "UTC")):
        others = [unit for unit in _UNITS if unit != to_unit]
        for units in itertools.chain.from_iterable(itertools.combinations(others, count) for count in (1, 2, 3)):
            arguments = f'[{_listed(units)}], "{to_unit}"' + (f', "{zone}"' if zone else "")
            relation = Relation(times.timestamps_in(units, to_unit, zone))
            yield _tried(f"Relation(times.timestamps_in({arguments}))", relation)


def _unchanged(expect: Expect) -> Expect:
    """Restrict a relation to results of the stored type, because the other ways to compare apply only to this type."""

    def same(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        changed = expect(column)
        return changed if changed is not None and changed.type == column.type else None

    return same


def _of_types(types: tuple[str, ...], parse: Parse) -> Candidate:
    spelled = f"Relation(written.of_types({_listed(types)}), parse=written.{parse.__name__})"  # type: ignore[attr-defined]
    candidate = _tried(spelled, Relation(written.of_types(*types), parse=parse))
    candidate.types = types
    return candidate


def _beginnings(arrow_type: pa.DataType) -> Iterator[str]:
    """Yield prefixes of the type's name, from the whole family of types to the single type."""
    name = str(arrow_type)
    if pa.types.is_dictionary(arrow_type) or name == "string":
        return
    family = re.match(r"\w+", name)
    assert family is not None
    yield family[0]
    if pa.types.is_timestamp(arrow_type):
        yield f"timestamp[{arrow_type.unit}"
        yield f"timestamp[{arrow_type.unit}" + ("," if arrow_type.tz else "]")


def _tried(spelled: str, relation: Relation) -> Candidate:
    return Candidate(Loss("tried", "", Cause.CALL, relation, frozenset()), spelled)


def _functions(content: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public functions that the module itself defines."""
    for name, value in vars(content).items():
        if inspect.isfunction(value) and value.__module__ == content.__name__ and not name.startswith("_"):
            yield name, value


# --- spelling --------------------------------------------------------------------------------------------------


def _call(name: str, *arguments: str) -> str:
    """Return a call as an item of a tuple. It is on one line if it fits, else each argument is on a separate line."""
    short = f"    {name}({', '.join(arguments)}),"
    if len(short) <= _WIDTH:
        return short
    # Wrapping at blanks is safe, because no name contains a blank.
    lines = (_wrapped(f"{argument},", " " * 8, " " * 12) for argument in arguments)
    return "\n".join([f"    {name}(", *lines, "    ),"])


def _wrapped(text: str, first: str, others: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def _are_timestamps(kinds: list[str]) -> bool:
    return all(kind.startswith("timestamp-") and not kind.endswith("-null") for kind in kinds)


def _quoted(name: str) -> str:
    return f'"{name}"'


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_quoted, names))
