"""Select the data sets of a plan: the data sets of the suite, the data sets that the request names, or the user's own
data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from adapters.spelling import parse
from bench_runner.data_kinds import KINDS
from bench_runner.errors import PlanError
from bench_runner.plan.patterns import is_found
from bench_runner.request import WITH_DATA, Request
from bench_runner.suites import Suite
from data_generator.catalogue import CATALOGUE, resolve
from data_generator.dataset import Dataset

KEYED = frozenset(name for kind in KINDS.values() if kind.has_key for name in kind.own_datasets)
"""Names of the data sets that are read from the user's own data and have a key."""


def chosen_datasets(suite: Suite, request: Request, on_rows: Callable[[str, int], None] | None) -> Iterator[Dataset]:
    """Yield the data sets of a suite under a request. The user's own data are read here. While reading, `on_rows` is
    called with the data set's name and the number of rows read so far. Raises DataError if the data cannot be read."""
    names = [name for pattern in request.datasets for name in _matching(suite, pattern)]
    if not request.datasets:
        names = list(suite.datasets) if request.data is None else [suite.kind.own_datasets[0]]
    if (request.webface is not None or request.generated_webface) and suite.kind.has_columns:
        names.append("webface")
    for spelled in dict.fromkeys(names):
        name, parameters = parse(spelled)
        on_rows_of = partial(on_rows, spelled) if on_rows else None
        if name in KEYED and request.key is not None:
            parameters = {**parameters, "key": request.key}
        rows = request.rows or suite.rows
        yield resolve(
            name, parameters, rows=rows, source=_source(name, request), options=request.options, on_rows=on_rows_of
        )


def _source(name: str, request: Request) -> Path | None:
    """Return the path of the user's file or folder from which a data set is read, or None."""
    if name == "webface":
        return request.webface
    return request.data if name in WITH_DATA else None


def check_datasets(suites: Sequence[Suite], request: Request) -> None:
    """Check that every pattern of `datasets` matches a data set of at least one of the suites."""
    for pattern in request.datasets:
        if not any(_matching(suite, pattern) for suite in suites):
            _refuse_another_kind(suites, pattern)
            names = ", ".join(suite.name for suite in suites)
            offered = [name for suite in suites for name in (*suite.datasets, *suite.on_request)]
            raise PlanError(
                f"`datasets`: {pattern!r} matches no data set of the suite{'s' * (len(suites) > 1)} {names}.",
                f"There are {', '.join(offered)}. 'format-bench list datasets' explains them.",
                parameter="datasets",
                given=pattern,
                allowed=offered,
            )


def check_data_is_used(datasets: Iterable[str], request: Request) -> None:
    """If the request names the user's data, or options about these data, check that a data set uses them."""
    if request.key is not None and not any(parse(name)[0] in KEYED for name in datasets):
        raise PlanError(
            f"`key={request.key!r}` applies only to your own documents, but none are measured.",
            "Name your documents, e.g. `data='FILE.jsonl'`, with the suite documents.",
            parameter="key",
            given=request.key,
        )
    if (given := request.options.given()) and not any(CATALOGUE[parse(name)[0]].takes_options for name in datasets):
        raise PlanError(
            f"{', '.join(f'`{name}={value!r}`' for name, value in given.items())} "
            f"{'applies' if len(given) == 1 else 'apply'} only to your own table, but none is measured.",
            "Name your table, e.g. `data='FILE.csv'`, with the suite tabular, or omit the option.",
            parameter=next(iter(given)),
            given=next(iter(given.values())),
        )
    if request.data is not None and not any(parse(name)[0] in WITH_DATA for name in datasets):
        raise PlanError(
            f"None of the data sets in `datasets` uses `data={str(request.data)!r}`.",
            "Omit `datasets`, or add 'table', 'images' or 'documents' to it.",
            parameter="datasets",
            given=request.datasets,
            allowed=WITH_DATA,
        )


def _matching(suite: Suite, pattern: str) -> list[str]:
    """Return the data sets that a pattern matches. A data set that is named in full is used as it is. Otherwise the
    pattern is searched in the names of the suite's data sets. Data sets on request must be named in full, so that '.'
    does not start a measurement of ten million rows."""
    known = _known(suite)
    if "[" in pattern and pattern.partition("[")[0] in known:
        return [pattern]
    literal = re.split(r"[|()^$]", pattern.replace("\\", ""))
    by_pattern = [name for name in suite.datasets if is_found(pattern, name)]
    found = {parse(name)[0] for name in by_pattern}
    return by_pattern + [name for name in known if name in literal and name not in found]


def _known(suite: Suite) -> Sequence[str]:
    return [name for name, entry in CATALOGUE.items() if entry.kind == suite.kind.name]


def _refuse_another_kind(suites: Sequence[Suite], pattern: str) -> None:
    """Raise PlanError if a pattern names a data set whose kind of data none of the suites measures."""
    entry = CATALOGUE.get(pattern.partition("[")[0])
    if entry is not None and all(entry.kind != suite.kind.name for suite in suites):
        raise PlanError(
            f"`datasets`: {pattern} holds {entry.kind}, but the suite {suites[0].name} measures {suites[0].kind.name}.",
            f"Choose the suite {KINDS[entry.kind].suite}.",
            parameter="datasets",
            given=pattern,
        )
