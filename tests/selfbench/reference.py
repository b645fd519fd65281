"""Makes the reference run: `python -m tests.selfbench.reference measure SUITE`, one suite at a time, then `... pack`.

Each suite is measured by the command line, on a checkout without changes, whole and at full size unless WORDS says
otherwise; what was interrupted goes on. Packing puts what is there into the package, in place of the same suites'
earlier runs, without the pilot rounds, which no report shows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from bench_runner.results.records import pack_run, read_run
from bench_runner.results.reference import COSTS, ORDER, PLACE
from bench_runner.run.known.costs import Costs

ROOT = Path(__file__).parents[2]
MACHINE = "reference"
MOST_BYTES = 3 * 10**6
WORDS = {
    "near-storage": (
        *("near-storage", "--operations", r"save|query\[groups=0\.(5|25|1|01|0)\]|values=|metadata", "--rounds", "9"),
        *("--formats-not", r"row_group_rows|technique=none|ranges.technique"),
    ),
    "near-storage-all": (
        *("near-storage", "--network", "one-process", "--operations", r"save|query\[groups=[0-9.]+\]$"),
        *("--formats-not", r"ranges.technique", "--rounds", "5"),
    ),
    "encodings-cold": ("encodings", "--cache", "cold", "--datasets", r"values\[bytes=(64|4096|65536)\]$"),
    "documents": (
        *("documents", "--rows", "15000", "--formats-not", "way=|merges=", "--rounds", "5"),
        *("--datasets", "^tweets-2016$", "--datasets", "^bluesky-events$"),
    ),
    "documents-layouts": (
        *("documents", "--rows", "10000", "--operations", "save|ask", "--datasets", "^(cell|sensors|tweets|wos)$"),
        *("--formats", "^document-store", "--formats-not", "merges=", "--rounds", "5"),
    ),
    "documents-ranges": (
        *("documents", "--rows", "20000", "--operations", "save|range", "--datasets", "^tweets-2016$"),
        *("--formats", r"^document-store\[layout=amax\]$", "--rounds", "5"),
    ),
}
"""What is run where it is not a whole suite at full size: that of documents would take a day. Its last two parts hold
what the paper on columns in document stores makes claims about. Near storage is measured over networks without what
gives all rows: of answers of 754 MB client and services need more memory than some machines hold ready. In one process
it is asked for all of them, of small row groups and by single techniques too."""


@click.group()
@click.option(
    "--runs",
    default=Path("reference-runs"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the runs are kept until they are packed.",
)
@click.pass_context
def main(context: click.Context, runs: Path) -> None:
    """Measure the reference run in parts, and pack it."""
    context.obj = runs


@main.command()
@click.argument("suite", type=click.Choice(ORDER))
@click.option("--budget", help="Time for all of it; without it the rounds of the method.")
@click.pass_obj
def measure(runs: Path, suite: str, budget: str | None) -> None:
    """Measure one suite, or go on with it."""
    folder = runs / suite
    command = [sys.executable, str(ROOT / "main.py"), "run", *WORDS.get(suite, (suite,)), "--machine", MACHINE]
    command += ["--out", str(folder), *(["--resume"] if (folder / "run.json").exists() else [])]
    command += ["--budget", budget] if budget else []
    sys.exit(subprocess.run(command, stdout=subprocess.DEVNULL).returncode)


@main.command()
@click.pass_obj
def pack(runs: Path) -> None:
    """Put what is measured into the package, and print what it takes there."""
    PLACE.mkdir(exist_ok=True)
    costs = msgspec.json.decode(COSTS.read_bytes(), type=Costs) if COSTS.exists() else Costs()
    for suite in ORDER:
        if not (runs / suite / "run.json").exists():
            click.echo(f"{suite}: not measured anew")
            continue
        run = read_run(runs / suite)
        if run.info.finished is None:
            # Its round trips come last: packed before, they would be lost without a word.
            sys.exit(f"{runs / suite}: the run has not ended; measure it to its end first, it goes on where it was")
        costs.learn(sample for sample in run.samples if sample.round > 0)
        place = PLACE / suite
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        kept = tuple(sample for sample in run.samples if sample.round > 0 or sample.failure is not None)
        pack_run(replace(run, samples=kept), place)
        # Where it lay on the machine that measured it is nobody's business.
        about = place / "run.json"
        about.write_text(about.read_text().replace(str(runs.resolve()), "reference-runs"))
        size_bytes = sum(path.stat().st_size for path in place.iterdir())
        partial = ", partial" if run.info.partial else ""
        click.echo(f"{suite}: {len(kept):,} samples, {size_bytes / 1e3:,.0f} kB{partial}")
    COSTS.write_bytes(msgspec.json.encode(costs))
    whole_bytes = sum(path.stat().st_size for path in PLACE.rglob("*") if path.is_file())
    click.echo(f"together {whole_bytes / 1e6:.2f} MB, at most {MOST_BYTES / 1e6:.0f}")
    sys.exit(whole_bytes > MOST_BYTES)


if __name__ == "__main__":
    main()
