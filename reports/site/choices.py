"""Find the choices by which a reader selects the sections of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench_runner.conditions import CONDITIONS
from reports.site.views import Place

OVERALL = "all data sets"
TITLES = {
    "suite": "Suite",
    "run": "Run",
    "machine": "Machine",
    **{condition.name: condition.title for condition in CONDITIONS},
    "dataset": "Data set",
    "amount": "Amount",
}


@dataclass(frozen=True)
class Facet:
    """One choice, such as the data set. `options` are pairs (value, title)."""

    key: str
    title: str
    options: tuple[tuple[str, str], ...]


def facets(shown: Sequence[Mapping[str, str]], runs: Sequence[Place]) -> list[Facet]:
    """Return the choices that a page offers. `shown` has the values of each section by choice. A choice is left out if
    all sections have the same value."""
    titles = {place.slug: place.title for place in runs}
    found = []
    for key, title in TITLES.items():
        values = list(dict.fromkeys(each[key] for each in shown if key in each))
        if key == "amount" or len(values) < 2:
            continue
        found.append(Facet(key, title, tuple((value, _option(key, value, titles)) for value in values)))
    return found


def _option(key: str, value: str, titles: Mapping[str, str]) -> str:
    if key == "run":
        return titles[value]
    for condition in CONDITIONS:
        if condition.name == key and value != condition.absent:
            return condition.choice(value)
    return value
