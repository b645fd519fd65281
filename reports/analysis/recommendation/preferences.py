"""Define what a user wants of a format (weights, required abilities and limits), and parse it from the command line."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench_runner.variants import operation_name_of

WEIGHED = {
    "read": "read time",
    "save": "save time",
    "size": "size",
    "read_memory": "read peak memory",
    "save_memory": "save peak memory",
}
"""Maps each figure that can have a weight to its title in reports. These are the figures of saving and of reading
everything."""

OF_DOCUMENTS = {"read": 1.0, "get[documents=100]": 1.0, "ask[query=usual]": 1.0, "size": 2.0, "save": 1.0}
"""Default weights for documents. As for tables, reading has a total weight of 3. For documents, this weight is divided
among the three operations for which people choose a store: read all documents, find some by their keys, and answer
questions about all."""

USE = "use"
"""Name of the weight for the total time per day of all `uses`."""

NEEDS = (
    *("append", "projection", "random-access", "pushdown"),
    *("types", "nested", "no-pickle", "other-languages", "single-file"),
)
"""Names of the abilities that a user may require. The first four are measured, the others are values of
adapters.contract.Can."""

STAGES = ("established", "young", "experimental")
"""Maturity of a format, the highest first. These are the values of adapters.contract.Stage."""

_TITLES = {**WEIGHED, USE: "time a day", "time": "time"}
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class PreferenceError(Exception):
    """Raised for an invalid preference. The message is for the user."""


@dataclass(frozen=True)
class Use:
    """One operation that a user performs on a stored table, and how often per day."""

    operation: str
    """The operation's name with its parameters."""
    title: str
    """The title of the operation, such as 'take 100 rows'."""
    per_day: float

    @property
    def told(self) -> str:
        """The operation and its frequency as printed: 'take 100 rows 1,000 times a day'."""
        return f"{self.title} {_often(self.per_day)}"


def _often(per_day: float) -> str:
    if per_day == 1:
        return "once a day"
    if per_day == 2:
        return "twice a day"
    if per_day > 1:
        return f"{per_day:,.10g} times a day"
    a_week = f"{per_day * 7:,.3g}"
    return "once a week" if a_week == "1" else f"{a_week} times a week"


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """The settings that decide a recommendation. Weights are not negative, and at least one is above 0.

    `reads_per_save` replaces the times of save and read by one time: that of one save and this many reads.
    `bandwidth_bytes_per_s` adds the time to transfer the stored bytes to the times of save and read. `accept` is the
    lowest maturity of STAGES that may be recommended. Variants of lower maturity are only shown.

    An operation on a part of a table can also have a weight, by its name with parameters. `titles` then has the title
    of the operation. The weight USE belongs to the total time per day of all `uses`.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: {"read": 3.0, "size": 2.0, "save": 1.0})
    needs: tuple[str, ...] = ()
    max_memory_bytes: int | None = None
    reads_per_save: float | None = None
    bandwidth_bytes_per_s: float | None = None
    accept: str = STAGES[0]
    titles: Mapping[str, str] = field(default_factory=dict)
    uses: tuple[Use, ...] = ()

    @property
    def weighed_parts(self) -> tuple[str, ...]:
        """The operations on a part of a table that have a weight."""
        return tuple(name for name, weight in self.weights.items() if weight and name not in (*WEIGHED, USE))

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations whose times affect the recommendation, each once."""
        whole = tuple(name for name in ("read", "save") if self.weights.get(name))
        return tuple(dict.fromkeys((*whole, *self.weighed_parts, *(use.operation for use in self.uses))))

    @property
    def needs_size_alone(self) -> bool:
        """Whether only the size affects the recommendation. One sample is then enough, because it gives the exact
        size."""
        weighed = {name for name, weight in self.weights.items() if weight}
        return weighed == {"size"} and not self.needs and not self.uses and self.max_memory_bytes is None

    def title(self, name: str) -> str:
        """Return the title of a figure or operation that has a weight."""
        return _TITLES.get(name) or self.titles.get(name, name)

    def accepts(self, stage: str) -> bool:
        """Return whether formats of this maturity may be recommended. A maturity that is not in STAGES is accepted only
        if the lowest maturity is accepted."""
        return stage in STAGES[: STAGES.index(self.accept) + 1] or self.accept == STAGES[-1]


def parse_weights(text: str, parts: Iterable[str]) -> dict[str, float]:
    """Parse 'read=3,take[rows=10]=2' into {'read': 3.0, 'take[rows=10]': 2.0}.

    `parts` are the names of operations on a part of the data, without their parameters. Raises PreferenceError if a
    name or weight is invalid.
    """
    weights: dict[str, float] = {}
    known = (*WEIGHED, *parts, USE)
    for part in _parts(text):
        # A parameter within the brackets also contains '=', so split after the brackets.
        name, bracket, rest = part.partition("[")
        inside, closing, number = rest.rpartition("]")
        name, sign, number = (f"{name}[{inside}]", *number.partition("=")[1:]) if closing else part.partition("=")
        name = name.strip() if closing else name.strip().replace("-", "_")
        if bracket and not closing:
            raise PreferenceError(f"{part!r} has no closing bracket. Write e.g. take[rows=10]=2.")
        if operation_name_of(name).name not in known:
            raise PreferenceError(f"{name!r} cannot be weighed{_near(name, known)}")
        if name in weights:
            raise PreferenceError(f"{name} is named twice. Give it one weight.")
        try:
            weight = float(number) if sign else 1.0
        except ValueError:
            weight = -1.0
        if not (math.isfinite(weight) and weight >= 0):
            raise PreferenceError(f"a weight must be a number of at least 0 (got {part!r}). Write e.g. {name}=2.")
        weights[name] = weight
    if not any(weights.values()):
        raise PreferenceError(f"at least one weight must be above 0 (got {text!r}). Write e.g. read=3,size=2,save=1.")
    return weights


def parse_needs(text: str) -> tuple[str, ...]:
    """Parse 'append,types' into a tuple. Raises PreferenceError."""
    needs = tuple(dict.fromkeys(part.replace("_", "-") for part in _parts(text)))
    for need in needs:
        if need not in NEEDS:
            raise PreferenceError(f"{need!r} is not a known need{_near(need, NEEDS)}")
    return needs


def parse_bytes(text: str) -> int:
    """Parse '8G' or '500 MB' into bytes, in powers of 1000. Raises PreferenceError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip(), re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise PreferenceError(f"{text!r} is not a number of bytes above 0. Write e.g. 500M or 8G.")
    return int(float(match[1]) * _BYTES[match[2].upper()])


def parse_bandwidth(text: str) -> float:
    """Parse '200MB/s' or '1600Mbit/s' into bytes per second.

    Raises PreferenceError, also for 'Mb/s', which means bits to some people and bytes to others.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*((?i:[KMGT]?))(B|bit)?(?:/s)?", text.strip())
    if match is None or float(match[1]) == 0:
        raise PreferenceError(
            f"{text!r} is not a bandwidth above 0 in B/s or bit/s. Write bytes as in 200MB/s, or bits as in 1600Mbit/s."
        )
    amount = float(match[1]) * _BYTES[match[2].upper()]
    return amount / 8 if match[3] == "bit" else amount


def _parts(text: str) -> list[str]:
    """Split at commas outside brackets."""
    return [part.strip() for part in re.split(r",(?![^\[\]]*\])", text) if part.strip()]


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{guess}. Choose among {', '.join(names)}."
