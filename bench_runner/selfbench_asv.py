"""Whether asv and our own runner agree on the same cells: `make selfbench-asv` prints the ratios.

Ours is taken before asv's and after it, so that a machine whose speed drifts does not make the difference. It uses asv
as a user does, by its command line, and reads its results by asv's own reader.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from bench_runner.asv_settings import write_settings
from bench_runner.asv_suite import ROUNDS, ROWS_VARIABLE, TABLE_ROWS
from bench_runner.plan import Request, make_plan
from bench_runner.progress import watching
from bench_runner.run import PROJECT_ROOT, measure
from bench_runner.selfbench import Check, print_checks
from bench_runner.session import Options
from bench_runner.statistics import is_floor, summarise
from bench_runner.suites import SUITES
from data_generator.cache import default_folder

VARIANTS = (
    "avro[engine=fastavro,codec=none]",
    "csv[engine=pandas]",
    "hdf5-table[engine=pandas]",
    "json[engine=pandas]",
    "orc[engine=pyarrow,codec=none]",
)
"""Ten cells, none of which is over within a few milliseconds."""
MACHINE = "selfbench"
LEAST, MOST = 0.90, 1.11


def by_runner(folder: Path, rows: int) -> dict[tuple[str, str], list[float]]:
    """Seconds of each round, by operation and variant."""
    request = Request(datasets=("^eq$",), formats=VARIANTS, tracks=("plain",), rows=rows)
    plan = make_plan([SUITES["tabular"]], request)
    folder.mkdir()
    with watching() as watcher:
        run, _ = measure(plan, request, Options(rounds=ROUNDS, fidelity=False), folder, ["selfbench-asv"], watcher)
    return {
        (cell.operation, cell.variant): [ns / 1e9 for ns in summary.by_round["wall_ns"].values()]
        for cell, summary in summarise(run.samples).items()
        if not is_floor(cell.variant) and "wall_ns" in summary.by_round
    }


def by_asv(folder: Path, rows: int) -> dict[tuple[str, str], float]:
    """asv's median in seconds, by operation and variant."""
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
    _asv(settings, environment, "run", "--machine", MACHINE, "--bench", bench, "--set-commit-hash", commit)
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
                # asv writes 'not measured' as None or NaN.
                if value is not None and value == value:
                    yield (operation, variant.strip("'")), value


def agreement(folder: Path, rows: int) -> Iterator[Check]:
    """asv's median over ours, for each of ten cells."""
    before = by_runner(folder / "before", rows)
    theirs = by_asv(folder / "asv", rows)
    after = by_runner(folder / "after", rows)
    for key in sorted(before.keys() & after.keys()):
        operation, variant = key
        if key not in theirs:
            yield Check(f"{operation} {variant}", "no figure by asv", f"{LEAST} to {MOST}", False)
            continue
        ours = statistics.median(before[key] + after[key])
        drift = statistics.median(after[key]) / statistics.median(before[key])
        ratio = theirs[key] / ours
        yield Check(
            f"{operation} {variant}: asv/ours (ours after/before {drift:.2f})",
            f"{ratio:.3f}",
            f"{LEAST} to {MOST}",
            LEAST <= ratio <= MOST,
        )


@click.command()
@click.option("--rows", default=TABLE_ROWS, show_default=True, help="Rows of the table that is measured.")
def main(rows: int) -> None:
    """Print asv's medians as multiples of our runner's, on ten cells of the table eq."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as folder:
        print_checks("asv and our runner", agreement(Path(folder), rows))


if __name__ == "__main__":
    main()
