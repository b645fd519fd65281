"""Read a source's statements as comparisons between two of our figures, from the files below `published/`.

A finding is one statement. It consists of several comparisons of the form 'this figure is below that figure'. Nothing
here depends on our samples.
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
"""The role (time, size or memory) of each figure. The size ratio of a codec is computed. All other figures are stored
in the samples."""
ACROSS = ("",)
"""Value of `datasets` for findings that compare data sets with each other. In such findings, each figure names its data
set."""


@dataclass(frozen=True)
class Subject:
    """One figure of one format, such as the read time of CSV. `dataset` is empty if the finding is judged on each data
    set separately."""

    column: Column
    format: str
    dataset: str = ""


@dataclass(frozen=True)
class Pair:
    """A comparison of two figures. It holds if `lower` times `factor` is below `higher`."""

    lower: Subject
    higher: Subject
    factor: float = 1.0


@dataclass(frozen=True)
class Finding:
    """One statement of a source. It holds if all comparisons in `pairs` hold on all `datasets`. With `some`, one data
    set is enough.

    `about` are the formats that the finding needs. A run may lack the other compared formats; the reason for the
    verdict then names these. If one of the other formats has too few rounds, the finding stays open. With
    `rests_on_data`, the verdict depends on the values in the data rather than on the formats, so generated data cannot
    support the finding.
    """

    place: str
    statement: str
    pairs: tuple[Pair, ...]
    about: tuple[str, ...]
    datasets: tuple[str, ...]
    some: bool = False
    rests_on_data: bool = False


class Slip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An error in a source: the printed statement, what is correct, and the effect of the error."""

    place: str
    printed: str
    right: str
    matters: str


Row = Mapping[str, str]


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names used in the rows of a source. `figures` maps a title to an operation and a figure. `variants` maps a
    name to our variant, and is empty if the rows use our names. `groups` maps a name to a list of names, and `texts`
    maps a name to a sentence. `command` and `datasets` are the defaults for rows that have none."""

    title: str
    figures: dict[str, str]
    variants: dict[str, str] = {}
    groups: dict[str, tuple[str, ...]] = {}
    texts: dict[str, str] = {}
    command: str = ""
    datasets: tuple[str, ...] = ()
    slips: tuple[Slip, ...] = ()

    def finding(self, rows: Sequence[Row]) -> Finding:
        """Return the finding that several rows describe.

        The first row has the statement. Each row compares two figures. If a row has lists of figures, each figure of
        one list is compared with each figure of the other list. All comparisons are repeated for every combination of
        the first row's `figures` and `variants`. Without a column `about`, the finding needs all formats that it
        compares. The column `decides` states whether one data set is enough, or whether the verdict depends on the
        values in the data.
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
        """Return the sentence with this name. A name that is not in `texts` is itself the sentence and is returned
        unchanged."""
        return self.texts.get(name, name)

    def _listed(self, text: str) -> tuple[str, ...]:
        names = text.split("; ") if text else ()
        return tuple(each for name in names for each in self.groups.get(name, (name,)))

    def _pairs(self, figure: str, variant: str, row: Row) -> Iterator[Pair]:
        """Yield the comparisons of a row. The column `relation` gives their form. "below": `lower` times the factor is
        below `higher`. "at most": `lower` is at most the factor times `higher`. "within": each figure is at most the
        factor times the other."""
        factor = float(row["factor"] or 1)
        for lower, higher in itertools.product(self._listed(row["lower"]), self._listed(row["higher"])):
            if lower != higher:
                low, high = self._subject(figure, variant, lower), self._subject(figure, variant, higher)
                yield Pair(low, high, factor if row["relation"] == "below" else 1 / factor)
                if row["relation"] == "within":
                    yield Pair(high, low, 1 / factor)

    def _subject(self, title: str, variant: str, name: str) -> Subject:
        """Return the figure to compare. `name` is the part that differs within a row. If `title` is empty, `name` is
        the title of a figure. Otherwise, `name` is a variant if `variant` is empty, and a data set if not."""
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
    """Return the rows of each claim of a source. A row without a `place` is a further comparison of the preceding
    claim."""
    found: list[list[Row]] = []
    for row in published_rows(f"{file}_claims.csv"):
        if row["place"]:
            found.append([])
        found[-1].append(row)
    return found
