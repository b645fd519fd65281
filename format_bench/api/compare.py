"""Compare two stored runs: which times, sizes and memory peaks changed by more than noise.

reports.analysis.compare does the comparison. This module reads the runs and checks the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench_runner.results.records import Run, read_run
from bench_runner.variants import OperationName, Variant
from format_bench.errors import RequestError
from reports.analysis import compare as comparing
from reports.analysis.compare import LEAST_CHANGE, CompareError, RunComparison


def compare(
    before: Run | Path | str,
    after: Run | Path | str,
    *,
    least_change: float = LEAST_CHANGE,
    anyway: bool = False,
    most_rounds: int | None = None,
) -> RunComparison:
    """Return what changed between two runs, each given as a result folder or a Run.

    Changes up to the share `least_change` (0.05 is 5 %) are ignored. Runs of different machines or data are refused
    unless `anyway`. Set `most_rounds`, the limit of rounds, if the two runs were measured in turn and stopped early.
    Raises RequestError if the runs cannot be compared, and RecordError if a folder holds no run.
    """
    if not least_change >= 0:
        allowed = "a share of at least 0, e.g. 0.1 for 10 %"
        raise RequestError(parameter="least_change", given=least_change, allowed=allowed)
    with _refusal_told():
        return comparing.compare(
            _stored(before), _stored(after), least_change=least_change, anyway=anyway, most_rounds=most_rounds
        )


def check_comparable(before: Run | Path | str, after: Run | Path | str, *, anyway: bool = False) -> None:
    """Raise what `compare` would raise for these runs, even before they have enough rounds for a verdict."""
    with _refusal_told():
        comparing.check_comparable(_stored(before), _stored(after), anyway=anyway)


def decided(before: Path, after: Path, most_rounds: int) -> set[tuple[Variant, OperationName]] | None:
    """Return each (variant, operation) that needs no further sample in two runs measured in turn; None if none does."""
    return comparing.decided(read_run(before), read_run(after), most_rounds)


def _stored(run: Run | Path | str) -> Run:
    return run if isinstance(run, Run) else read_run(Path(run))


@contextmanager
def _refusal_told() -> Iterator[None]:
    """Turn CompareError into RequestError."""
    try:
        yield
    except CompareError as error:
        raise RequestError(str(error)) from None
