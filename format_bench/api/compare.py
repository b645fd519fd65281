"""Compare two stored runs: what became slower, larger or hungrier, and is it more than noise?

The figures are those of reports.analysis.compare; here two folders become a Comparison, or a wrong request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench_runner.results.records import Run, read_run
from format_bench.errors import RequestError
from reports.analysis import compare as comparing
from reports.analysis.compare import LEAST_CHANGE, CompareError, RunComparison


def compare(
    before: Run | Path | str, after: Run | Path | str, *, least_change: float = LEAST_CHANGE, anyway: bool = False
) -> RunComparison:
    """What changed from one run to another, each a result folder or what was read of it.

    Changes up to the share `least_change` (0.05 is 5 %) are neither told nor failed on. Runs of different machines or
    data are refused unless `anyway`. Raises RequestError when the two say nothing of each other, RecordError when a
    folder holds no run.
    """
    if not least_change >= 0:
        allowed = "a share of at least 0, e.g. 0.1 for 10 %"
        raise RequestError(parameter="least_change", given=least_change, allowed=allowed)
    with _refusal_told():
        return comparing.compare(_stored(before), _stored(after), least_change=least_change, anyway=anyway)


def check_comparable(before: Run | Path | str, after: Run | Path | str, *, anyway: bool = False) -> None:
    """As much of `compare` as can be said before there are rounds enough. Raises as it does."""
    with _refusal_told():
        comparing.check_comparable(_stored(before), _stored(after), anyway=anyway)


def _stored(run: Run | Path | str) -> Run:
    return run if isinstance(run, Run) else read_run(Path(run))


@contextmanager
def _refusal_told() -> Iterator[None]:
    """Two runs that say nothing of each other are a wrong request."""
    try:
        yield
    except CompareError as error:
        raise RequestError(str(error)) from None
