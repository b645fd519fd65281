"""Compare two stored runs, to find times, sizes and memory peaks that changed by more than noise.

This module checks the request and reads the runs; reports.analysis.compare makes the comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench_runner.results.records import Run, read_run
from bench_runner.run.cluster.division import host_folders, is_division
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

    Changes up to the share `least_change` are ignored (0.05 is 5 %). Runs on different machines or of different data
    are refused unless `anyway`. For two runs that `side-by-side` measured, `most_rounds` is the number of rounds that
    was requested, because such runs may stop earlier. Raises RequestError if the runs cannot be compared, and
    RecordError if a folder holds no run.
    """
    if not least_change >= 0:
        allowed = "a share of at least 0, e.g. 0.1 for 10 %"
        raise RequestError(parameter="least_change", given=least_change, allowed=allowed)
    with _refusal_told():
        return comparing.compare(
            _stored(before), _stored(after), least_change=least_change, anyway=anyway, most_rounds=most_rounds
        )


def compare_hosts(
    before: Path, after: Path, *, least_change: float = LEAST_CHANGE, anyway: bool = False
) -> tuple[dict[str, RunComparison], list[str]]:
    """Compare two runs over one cluster, host by host.

    Return two results: a comparison by name of the host, and a text for each host that cannot be compared, such as one
    that was lost during a run. The text has the host's name and the reason. Raises RecordError, and RequestError if one
    of the folders holds no run over a cluster or no host can be compared.
    """
    for folder, other in ((before, after), (after, before)):
        if not is_division(folder):
            raise RequestError(
                f"{other} holds a run over a cluster, and {folder} does not.",
                f"Name the folder of one host, such as {next(iter(host_folders(other)), other)}.",
            )
    there = {folder.name for folder in host_folders(after)}
    hosts = [folder for folder in host_folders(before) if folder.name in there]
    if not hosts:
        raise RequestError(f"{before} and {after} have no host in common.", "Compare runs over the same cluster.")
    found, refused = {}, []
    for folder in hosts:
        try:
            found[folder.name] = compare(folder, after / folder.name, least_change=least_change, anyway=anyway)
        except RequestError as error:
            refused.append(f"{folder.name}: {error}")
    if not found:
        raise RequestError("\n".join(refused))
    return found, refused


def check_comparable(before: Run | Path | str, after: Run | Path | str, *, anyway: bool = False) -> None:
    """Raise RequestError if `compare` would refuse these runs. Runs with too few rounds for a result are accepted."""
    with _refusal_told():
        comparing.check_comparable(_stored(before), _stored(after), anyway=anyway)


def decided(
    before: Path, after: Path, most_rounds: int, already: Collection[tuple[str, str]] = ()
) -> set[tuple[str, str]] | None:
    """Return the pairs (variant, operation) that need no further rounds. Return None if all pairs are decided, so that
    measuring can stop.

    A pair needs no further rounds if it is certain whether the operation's times changed between the runs `before` and
    `after`, or if the operation failed or is missing in one of the runs. Pairs in `already` stay decided.
    """
    return comparing.decided(read_run(before), read_run(after), most_rounds, already)


def _stored(run: Run | Path | str) -> Run:
    return run if isinstance(run, Run) else read_run(Path(run))


@contextmanager
def _refusal_told() -> Iterator[None]:
    """Turn CompareError into RequestError."""
    try:
        yield
    except CompareError as error:
        raise RequestError(str(error)) from None
