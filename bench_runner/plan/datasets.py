"""Which data sets take part: those of the suite, those that a request names, the user's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from adapters.spelling import parse
from bench_runner.errors import PlanError
from bench_runner.plan.request import WITH_DATA, Request
from bench_runner.suites import SUITES, Suite
from data_generator.catalogue import CATALOGUE, resolve
from data_generator.dataset import Dataset


def chosen_datasets(
    suite: Suite, request: Request, on_rows: Callable[[str, int], None] | None
) -> Iterator[Dataset]:
    """The data sets of a suite under a request. A user's data are read here; `on_rows` hears of which data set how
    many rows. Raises data_generator's DataError."""
    names = [name for pattern in request.datasets for name in _matching(suite, pattern)]
    if not request.datasets:
        names = list(suite.datasets) if request.data is None else ["images" if suite.images else "table"]
    if (request.webface is not None or request.generated_webface) and not suite.images:
        names.append("webface")
    for spelled in dict.fromkeys(names):
        name, parameters = parse(spelled)
        told = partial(on_rows, spelled) if on_rows else None
        yield resolve(
            name, parameters, rows=request.rows or suite.rows, source=_source(name, request), on_rows=told
        )


def _source(name: str, request: Request) -> Path | None:
    """The user's file or folder, for the data sets that are read from one."""
    if name == "webface":
        return request.webface
    return request.data if name in WITH_DATA else None


def check_datasets(suites: Sequence[Suite], request: Request) -> None:
    """Every pattern must find something in one of the suites at least."""
    for pattern in request.datasets:
        if not any(_matching(suite, pattern) for suite in suites):
            names = ", ".join(suite.name for suite in suites)
            offered = ", ".join(name for suite in suites for name in (*suite.datasets, *suite.on_request))
            raise PlanError(
                f"--datasets {pattern!r} matches no data set of the suite {names}\n"
                f"  it has: {offered}; 'format-bench list datasets' says what each is"
            )


def check_data_is_used(datasets: Iterable[str], request: Request) -> None:
    """The user's data must not be left aside without a word."""
    if request.data is not None and not any(parse(name)[0] in WITH_DATA for name in datasets):
        raise PlanError(
            f"--data {request.data} is read by none of the data sets that --datasets chooses\n"
            "  leave out --datasets, or add --datasets table (for images: images)"
        )


def _matching(suite: Suite, pattern: str) -> list[str]:
    """A spelled data set is taken as it is; a pattern searches the suite's data sets; those on request must be named
    in full, so that '.' does not start ten million rows."""
    known = _known(suite)
    if "[" in pattern and pattern.partition("[")[0] in known:
        return [pattern]
    literal = re.split(r"[|()^$]", pattern.replace("\\", ""))
    by_pattern = [name for name in suite.datasets if re.search(pattern, name)]
    found = {parse(name)[0] for name in by_pattern}
    return by_pattern + [name for name in known if name in literal and name not in found]


def _known(suite: Suite) -> Sequence[str]:
    """The data sets that a suite can measure: its own of images, or every table."""
    if suite.images:
        return (*suite.datasets, *suite.on_request)
    of_images = {name for other in SUITES.values() if other.images for name in (*other.datasets, *other.on_request)}
    return [name for name in CATALOGUE if name not in of_images]
