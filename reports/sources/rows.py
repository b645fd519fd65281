"""Read a source's statements as relations between our figures, from tables below `published/`.

Each finding is a set of pairs 'this figure is below that one'. Nothing here depends on our samples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import msgspec

from bench_runner.variants import operation_name_of
from reports.analysis.columns import Column, Role
from reports.analysis.near_storage.workloads import published_rows

ROLES = {
    "wall_ns": Role.TIME,
    "cpu_ns": Role.TIME,
    "size_bytes": Role.SIZE,
    "size_ratio": Role.SIZE,
    "peak_private_bytes": Role.MEMORY,
}
"""The role of each figure. The size ratio of a codec is computed, all others are registered."""
ACROSS = ("",)
"""Value of `datasets` for findings that compare data sets, because their pairs name the data sets instead."""


@dataclass(frozen=True)
class Subject:
    """One figure of one format; `dataset` is empty if a finding applies to each data set separately."""

    column: Column
    format: str
    dataset: str = ""


@dataclass(frozen=True)
class Pair:
    """`lower` times `factor` is below `higher`."""

    lower: Subject
    higher: Subject
    factor: float = 1.0


@dataclass(frozen=True)
class Finding:
    """One statement of a source. It holds if all of its pairs hold on all of its data sets (on one, if `some`).

    `about` are the formats that the finding needs. Other formats may be missing from a run and are then named. If one
    of these has too few rounds, the finding stays open. With `rests_on_data`, the values in the data decide, not the
    formats, so generated data that resemble the source's cannot support the finding.
    """

    place: str
    statement: str
    pairs: tuple[Pair, ...]
    about: tuple[str, ...]
    datasets: tuple[str, ...]
    some: bool = False
    rests_on_data: bool = False


class Slip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error of a source: the printed text, what is correct, and the effect of the error."""

    place: str
    printed: str
    right: str
    matters: str


Row = Mapping[str, str]


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names used in the rows of a source: figures (title -> operation and figure), our variants (empty if the rows
    use our names), groups of names, and texts. `command` and `datasets` are defaults for rows that have none."""

    title: str
    figures: dict[str, str]
    variants: dict[str, str] = {}
    groups: dict[str, tuple[str, ...]] = {}
    texts: dict[str, str] = {}
    command: str = ""
    datasets: tuple[str, ...] = ()
    slips: tuple[Slip, ...] = ()

    def finding(self, rows: Sequence[Row]) -> Finding:
        """Build a finding from its rows.

        The first row has the statement. Each row has one relation, which applies to each combination of its figures and
        variants. Without a column `about`, the finding is about all formats that it compares. The column `decides`
        states whether one data set is enough, or whether the values in the data decide.
        """
        row = rows[0]
        shared = itertools.product(self._listed(row["figures"]) or ("",), self._listed(row["variants"]) or ("",))
        pairs = tuple(pair for names in shared for each in rows for pair in self._pairs(*names, each))
        compared = dict.fromkeys(subject.format for pair in pairs for subject in (pair.lower, pair.higher))
        return Finding(
            row["place"],
            row["statement"],
            pairs,
            self._listed(row["about"]) if "about" in row else tuple(compared),
            self._listed(row["datasets"]) or self.datasets or ACROSS,
            some=row.get("decides") == "one data set",
            rests_on_data=row.get("decides") == "the data",
        )

    def text(self, name: str) -> str:
        """Return a text by its name; an unknown name is the text itself."""
        return self.texts.get(name, name)

    def _listed(self, text: str) -> tuple[str, ...]:
        names = text.split("; ") if text else ()
        return tuple(each for name in names for each in self.groups.get(name, (name,)))

    def _pairs(self, figure: str, variant: str, row: Row) -> Iterator[Pair]:
        """Yield the pairs of a row: each of `lower` times the factor is below each of `higher` ("below"), is at most
        the factor times as high ("at most"), or both are within the factor of each other ("within")."""
        factor = float(row["factor"] or 1)
        for lower, higher in itertools.product(self._listed(row["lower"]), self._listed(row["higher"])):
            if lower != higher:
                low, high = self._subject(figure, variant, lower), self._subject(figure, variant, higher)
                yield Pair(low, high, factor if row["relation"] == "below" else 1 / factor)
                if row["relation"] == "within":
                    yield Pair(high, low, 1 / factor)

    def _subject(self, title: str, variant: str, name: str) -> Subject:
        """Return a figure. `name` is what a row compares: figures, else variants, else data sets."""
        dataset = name if title and variant else ""
        title, variant = (title, variant or name) if title else (name, variant)
        operation, figure = self.figures[title].split(" ")
        column = Column(operation_name_of(operation), figure, ROLES[figure], title)
        return Subject(column, self.variants[variant] if self.variants else variant, dataset)


def names_of(file: str) -> Names:
    """Read the names used in the rows of a source."""
    place = resources.files("reports.sources").joinpath(f"published/{file}.toml")
    return msgspec.toml.decode(place.read_bytes(), type=Names)


def claims_of(file: str) -> Iterable[Sequence[Row]]:
    """Return the rows of each claim of a source. A row without a `place` is a further relation of the claim above."""
    found: list[list[Row]] = []
    for row in published_rows(f"{file}_claims.csv"):
        if row["place"]:
            found.append([])
        found[-1].append(row)
    return found
