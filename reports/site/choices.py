"""What a page lets one choose by, of the sections that it has.

It knows sections by their facts alone, and not what stands in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench_runner.data_kinds import kind_of_target
from reports.analysis.labels import network_text
from reports.site.views import ONE_PROCESS, Place

OVERALL = "all data sets"
TRACKS = {
    "plain": "plain: no codec",
    "default": "default: the library default",
    "equal": "equal: zstd level 1",
    "codecs": "codecs beside each other",
}
TITLES = {
    "suite": "Suite",
    "run": "Run",
    "machine": "Machine",
    "track": "Track",
    "target": "You hold",
    "cache": "Page cache",
    "network": "Network",
    "service": "Service",
    "threads": "Threads",
    "strings": "Strings",
    "folder": "Working folder",
    "dataset": "Data set",
    "amount": "Amount",
}


@dataclass(frozen=True)
class Facet:
    """One choice of a page: (value, text) of each option."""

    key: str
    title: str
    options: tuple[tuple[str, str], ...]


def facets(shown: Sequence[Mapping[str, str]], runs: Sequence[Place]) -> list[Facet]:
    """What there is to choose between on a page that shows things with these facets: what all share is no choice."""
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
    if key == "threads":
        return "the libraries' own" if value == "default" else f"{value} thread"
    if key == "network":
        return value if value == ONE_PROCESS else network_text(value)
    if key == "target":
        return kind_of_target(value).targets[value]
    return TRACKS.get(value, value) if key == "track" else value
