"""Long versions of the tests, each identified by a seed.

`python -m libraries.near_storage.tests.long_runs NAME...` runs the named ones, or all. Each reports how long it took,
or fails with an error that names the problem. `make fuzz-near-storage` and `make selfbench-near-storage` run some; the
tests apply the same rules to fewer cases.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from libraries.filters.tests import test_expressions, test_filter_evaluation
from libraries.near_storage.parquet.footer import read_footer
from libraries.near_storage.tests import test_aggregates
from libraries.near_storage.tests.client import test_agreement
from libraries.near_storage.tests.parquet import test_engines, test_fuzzing
from libraries.near_storage.tests.parquet.tables import WRITERS
from libraries.near_storage.tests.predicates import test_wire
from libraries.near_storage.tests.serving import mutated
from libraries.near_storage.tests.serving.cluster import cluster
from libraries.near_storage.tests.storing import cuts, kills

SEED = 100_001


def footers(folder: Path) -> str:
    """Check that broken footers give a footer or an error, quickly."""
    test_fuzzing.check(10_000, SEED, folder)
    return "10,000 broken footers"


def requests(folder: Path) -> str:
    """Check that broken requests are answered or refused, and reveal nothing."""
    with cluster(folder) as served:
        served.client().put("t", mutated.TABLE, 250)
        wrong = mutated.send(served, 10_000, SEED)
    assert wrong == [], wrong[:5]
    return "10,000 broken requests"


def messages(folder: Path) -> str:
    """Check that broken filters give a filter or an error."""
    test_wire.assert_bounded(10_000, SEED)
    return "10,000 broken filters"


def filters(folder: Path) -> str:
    """Check that filters agree with plain Python on every row."""
    rng = random.Random(SEED)
    for _ in range(1_000):
        test_filter_evaluation.assert_exact(rng, filters=20)
    return "20,000 filters compared with Python"


def expressions(folder: Path) -> str:
    """Check that translated expressions keep the same rows as Arrow."""
    rng = random.Random(SEED)
    compared = sum(test_expressions.assert_as_arrow(rng, 20)[0] for _ in range(1_000))
    assert compared > 10_000
    return f"{compared:,} expressions compared with Arrow"


def aggregates(folder: Path) -> str:
    """Check that aggregates agree with plain Python."""
    rng = random.Random(SEED)
    for _ in range(1_000):
        test_aggregates.assert_exact(rng, 5)
    return "5,000 aggregates compared with Python"


def pruning(folder: Path) -> str:
    """Check that pruning drops no matching row, for any writer."""
    for write in WRITERS.values():
        path = folder / "file.parquet"
        write(path, random.Random(SEED))
        with path.open("rb") as file:
            footer = read_footer(file)
        test_engines.check_predicates(path, footer, 2_500, SEED)
        path.unlink()
    return f"2,500 filters pruning files of {len(WRITERS)} writers"


def flight(folder: Path) -> str:
    """Check that answers through Flight equal those in memory."""
    for aggregated in (False, True):
        place = folder / str(aggregated)
        place.mkdir()
        test_agreement.run(place, SEED, 500, aggregated, ways_each=5)
    return "1,000 queries through Flight, each in 5 ways"


def power_cuts(folder: Path) -> str:
    """Check that acknowledged data survive power cuts."""
    disks = cuts.prepared()
    for seed in range(SEED, SEED + 1_000):
        cuts.live(seed, disks)
    return "1,000 lives with a power cut"


def killed(folder: Path) -> str:
    """Check that acknowledged data survive killed writers."""
    return f"300 killed writers, {kills.main(300):,} operations acknowledged"


RUNS: dict[str, Callable[[Path], str]] = {
    run.__name__: run
    for run in (footers, requests, messages, filters, expressions, aggregates, pruning, flight, power_cuts, killed)
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(RUNS)))
def main(names: tuple[str, ...]) -> None:
    """Run the named ones, or all; stop at the first failure."""
    for name in names or RUNS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="near-storage-") as folder:
            told = RUNS[name](Path(folder))
        click.echo(f"{told}: passed in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
