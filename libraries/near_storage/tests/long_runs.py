"""What the tests do a little of, done at length, each by a seed.

`python -m libraries.near_storage.tests.long_runs NAME...` runs those that are named, or all. Each ends in an error that
names what was wrong, or says how long it took. `make fuzz-near-storage` and `make selfbench-near-storage` run some; the
tests hold to the same rules with fewer cases.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from libraries.near_storage.parquet.footer import read_footer
from libraries.near_storage.tests import test_aggregates
from libraries.near_storage.tests.client import test_agreement
from libraries.near_storage.tests.parquet import test_engines, test_fuzzing
from libraries.near_storage.tests.parquet.tables import WRITERS
from libraries.near_storage.tests.predicates import test_expressions, test_filter_evaluation, test_wire
from libraries.near_storage.tests.serving import mutated
from libraries.near_storage.tests.serving.cluster import cluster
from libraries.near_storage.tests.storing import cuts, kills

SEED = 100_001


def footers(folder: Path) -> str:
    """Broken footers end in a footer or an error, in little time."""
    test_fuzzing.check(10_000, SEED, folder)
    return "10,000 broken footers"


def requests(folder: Path) -> str:
    """Broken requests are answered or refused, and tell nothing."""
    with cluster(folder) as served:
        served.client().put("t", mutated.TABLE, 250)
        wrong = mutated.send(served, 10_000, SEED)
    assert wrong == [], wrong[:5]
    return "10,000 broken requests"


def messages(folder: Path) -> str:
    """Broken filters end in a filter or an error."""
    test_wire.assert_bounded(10_000, SEED)
    return "10,000 broken filters"


def filters(folder: Path) -> str:
    """Filters say of every row what plain Python says."""
    rng = random.Random(SEED)
    for _ in range(1_000):
        test_filter_evaluation.assert_exact(rng, filters=20)
    return "20,000 filters beside Python"


def expressions(folder: Path) -> str:
    """Translated expressions keep what Arrow keeps."""
    rng = random.Random(SEED)
    compared = sum(test_expressions.assert_as_arrow(rng, 20)[0] for _ in range(1_000))
    assert compared > 10_000
    return f"{compared:,} expressions beside Arrow"


def aggregates(folder: Path) -> str:
    """Aggregates are what plain Python says."""
    rng = random.Random(SEED)
    for _ in range(1_000):
        test_aggregates.assert_exact(rng, 5)
    return "5,000 aggregates beside Python"


def pruning(folder: Path) -> str:
    """No row that matches is pruned, of no writer."""
    for write in WRITERS.values():
        path = folder / "file.parquet"
        write(path, random.Random(SEED))
        with path.open("rb") as file:
            footer = read_footer(file)
        test_engines.check_predicates(path, footer, 2_500, SEED)
        path.unlink()
    return f"2,500 filters pruning files of {len(WRITERS)} writers"


def flight(folder: Path) -> str:
    """Answers through Flight are those in memory."""
    for aggregated in (False, True):
        place = folder / str(aggregated)
        place.mkdir()
        test_agreement.run(place, SEED, 500, aggregated, ways_each=5)
    return "1,000 questions through Flight, each in 5 ways"


def power_cuts(folder: Path) -> str:
    """Nothing acknowledged is lost when the power goes out."""
    disks = cuts.prepared()
    for seed in range(SEED, SEED + 1_000):
        cuts.live(seed, disks)
    return "1,000 lives with a power cut"


def killed(folder: Path) -> str:
    """Nothing acknowledged is lost when a writer is killed."""
    return f"300 killed writers, {kills.main(300):,} operations acknowledged"


RUNS: dict[str, Callable[[Path], str]] = {
    run.__name__: run
    for run in (footers, requests, messages, filters, expressions, aggregates, pruning, flight, power_cuts, killed)
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(RUNS)))
def main(names: tuple[str, ...]) -> None:
    """Run the named ones, or all; the first that fails ends it."""
    for name in names or RUNS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="near-storage-") as folder:
            told = RUNS[name](Path(folder))
        click.echo(f"{told}: as they should be, in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
