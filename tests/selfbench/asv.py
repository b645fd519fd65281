"""Compare asv with our own runner on the same cells: `make selfbench-asv` prints the ratios.

asv runs from its command line, and asv's own reader reads its results.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from bench_runner.data_kinds import TABLES
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.statistics import Ratio, ratio_interval, summarise
from bench_runner.run.in_process_cell import ROWS_VARIABLE
from bench_runner.run.measuring import PROJECT_ROOT, measure
from bench_runner.run.options import Options
from bench_runner.suites import SUITES
from benchmarks.asv_settings import write_settings
from data_generator.cache import default_folder
from format_bench.progress import watching
from tests.selfbench.costs import Check, print_checks, told, within

VARIANTS = (
    "avro[engine=fastavro,codec=none]",
    "csv[engine=pandas]",
    "hdf5-table[engine=pandas]",
    "json[engine=pandas]",
    "orc[engine=pyarrow,codec=none]",
)
"""The variants of ten cells, each of which takes more than a few milliseconds."""
MACHINE = "selfbench"
LEAST, MOST = 0.90, 1.11
PAIRS = 15


def by_runner(folder: Path, rows: int) -> dict[tuple[str, str], float]:
    """Measure one round with our runner; return seconds by operation and variant."""
    request = Request(datasets=("^eq$",), formats=VARIANTS, tracks=("plain",), rows=rows)
    plan = make_plan([SUITES["tabular"]], request)
    folder.mkdir()
    with watching() as watcher:
        run, _ = measure(plan, request, Options(rounds=1, fidelity=False), folder, ["selfbench-asv"], watcher)
    return {
        (cell.operation, cell.variant): summary.figures["wall_ns"].median / 1e9
        for cell, summary in summarise(run.samples).items()
        if not cell.variant.is_raw_io and "wall_ns" in summary.figures
    }


def by_asv(folder: Path, rows: int) -> dict[tuple[str, str], float]:
    """Measure one round with asv; return seconds by operation and variant."""
    folder.mkdir()
    settings = write_settings(folder, MACHINE)
    chosen = "|".join(re.escape(variant) for variant in VARIANTS)
    bench = rf"^tabular\.Tabular\.time_(save|read)\('eq', '({chosen})'\)"
    commit = subprocess.run(
        ["git", "-C", str(PROJECT_ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (folder / "tmp").mkdir()
    environment = {
        ROWS_VARIABLE: str(rows),
        "TMPDIR": str(folder / "tmp"),
        "HOME": str(folder),
        "FORMAT_BENCH_CACHE": str(default_folder()),
    }
    words = ("--machine", MACHINE, "--bench", bench, "--set-commit-hash", commit, "--attribute", "rounds=1")
    _asv(settings, environment, "run", *words)
    return dict(_results(folder / "results" / "asv"))


def _asv(settings: Path, environment: Mapping[str, str], *words: str) -> None:
    command = [sys.executable, "-m", "asv", "--config", str(settings), *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise click.ClickException(f"asv {words[0]} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")


def _results(folder: Path) -> Iterator[tuple[tuple[str, str], float]]:
    from asv.results import iter_results

    for result in iter_results(str(folder)):
        for name in result.get_all_result_keys():
            parameters = result.get_result_params(name)
            values = result.get_result_value(name, parameters)
            operation = name.rpartition("time_")[2]
            names = [(dataset, variant) for dataset in parameters[0] for variant in parameters[1]]
            for (_, variant), value in zip(names, values, strict=True):
                # asv stores None or NaN for cells without a measurement.
                if value is not None and value == value:
                    yield (operation, variant.strip("'")), value


def agreement(folder: Path, rows: int) -> Iterator[Check]:
    """Yield the ratio of asv's time to ours, for each of ten cells and for all of them together.

    Rounds of both tools follow each other in pairs, alternating which goes first. Ratios are taken within a pair,
    because the machine's speed changes from minute to minute. A bias common to all cells, such as that of a clock,
    shows best in the ratio of all cells together, so its whole interval has to be within the bounds.
    """
    ours: defaultdict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    theirs: defaultdict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for pair in range(PAIRS):
        sides = [(by_runner, ours, "ours"), (by_asv, theirs, "asv")]
        for measured, seconds, name in sides if pair % 2 else reversed(sides):
            for key, value in measured(folder / f"{name}-{pair}", rows).items():
                seconds[key][pair] = value
    for operation, variant in itertools.product(("save", "read"), VARIANTS):
        key = operation, variant
        ratio = ratio_interval(theirs[key], ours[key])
        what = f"{operation} {variant}: asv/ours"
        if ratio is None:
            yield Check(what, "no figure", f"{LEAST} to {MOST}", False)
        else:
            yield Check(what, told(ratio), f"{LEAST} to {MOST}", median_within(ratio))
    together = ratio_interval(_together(theirs), _together(ours))
    if together is not None:
        yield Check("all cells together: asv/ours", told(together), f"{LEAST} to {MOST}", within(together, LEAST, MOST))


def median_within(ratio: Ratio) -> bool | None:
    """Return whether the median is within the bounds, or None if it may be outside only because of noise."""
    if LEAST <= ratio.ratio <= MOST:
        return True
    if ratio.low is None or ratio.high is None:
        return None
    return False if ratio.high < LEAST or ratio.low > MOST else None


def _together(seconds: Mapping[tuple[str, str], Mapping[int, float]]) -> dict[int, float]:
    """Return the geometric mean over all cells, by pair. All cells must have been measured in a pair."""
    pairs = set.intersection(*(set(by_pair) for by_pair in seconds.values())) if seconds else set()
    return {pair: math.exp(statistics.fmean(math.log(by_pair[pair]) for by_pair in seconds.values())) for pair in pairs}


@click.command()
@click.option("--rows", default=TABLES.asv_rows, show_default=True, help="Rows of the measured table.")
def main(rows: int) -> None:
    """Print asv's times as multiples of our runner's, for ten cells of the table eq."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as folder:
        print_checks("asv and our runner", agreement(Path(folder), rows))


if __name__ == "__main__":
    main()
