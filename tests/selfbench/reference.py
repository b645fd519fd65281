"""Make the reference run: `python -m tests.selfbench.reference measure SUITE` for each suite, then `... pack`.

Suites are measured from the command line, on a checkout without changes. They run whole and at full size, except those
in WORDS. An interrupted measurement continues. Packing replaces earlier runs of the measured suites in the package,
and leaves out the pilot rounds, which no report shows.
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
_CODECS = ("none", "snappy", *(f"zstd,level={level}" for level in (1, 3, 9)))
_STORE = "document-store[layout={},codec=snappy]"
_PARQUET = "parquet[engine=pyarrow,codec={}]"
WORDS = {
    "levels": (
        *("choice", "--datasets", "^core$"),
        *(word for codec in _CODECS for word in ("--formats", _PARQUET.format(codec))),
    ),
    "row-groups": ("sweep", "--over", "row_group_rows"),
    "files": ("sweep", "--over", "files"),
    "small": (
        *("sweep", "--over", "rows=45000,450000", "--formats", "csv[engine=pandas]"),
        *("--formats", _PARQUET.format("none"), "--formats", "feather[engine=pyarrow,codec=none]"),
    ),
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
        *(
            "documents",
            "--rows",
            "10000",
            "--operations",
            r"save|ask\[query=q",
            "--datasets",
            "^(cell|sensors|tweets|wos)$",
        ),
        *("--formats", "^document-store", "--formats-not", "merges=", "--rounds", "5"),
    ),
    "documents-sizes": (
        *("documents", "--rows", "10000", "--operations", "save", "--datasets", "^(cell|sensors|tweets|wos)$"),
        *(word for layout in ("amax", "vector", "open") for word in ("--formats", _STORE.format(layout))),
        *("--rounds", "1", "--no-fidelity"),
    ),
    "documents-fidelity": (
        *("documents", "--rows", "1000", "--operations", "save", "--datasets", "^cell$", "--rounds", "1"),
        *("--formats-not", "way=|merges="),
    ),
    "documents-ranges": (
        *("documents", "--rows", "20000", "--operations", "save|range", "--datasets", "^tweets-2016$"),
        *("--formats", r"^document-store\[layout=amax\]$", "--rounds", "5"),
    ),
}
"""Arguments of suites that do not run whole and at full size, and of runs for the page of questions. The suite of
documents would take a day; its last three parts cover the claims of the paper on columnar document stores. Near storage
over networks leaves out queries that return all rows, because answers of 754 MB need more memory for client and
services than some machines have. In one process all queries run, also on small row groups and with single
techniques."""


@click.group()
@click.option(
    "--runs",
    default=Path("reference-runs"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder of the runs until they are packed.",
)
@click.pass_context
def main(context: click.Context, runs: Path) -> None:
    """Measure the reference run in parts, and pack it."""
    context.obj = runs


@main.command()
@click.argument("suite", type=click.Choice(ORDER))
@click.option("--budget", help="Time limit of the whole suite [default: the method's rounds]")
@click.pass_obj
def measure(runs: Path, suite: str, budget: str | None) -> None:
    """Measure one suite, or continue an interrupted measurement."""
    folder = runs / suite
    command = [sys.executable, str(ROOT / "main.py"), "run", *WORDS.get(suite, (suite,)), "--machine", MACHINE]
    command += ["--out", str(folder), *(["--resume"] if (folder / "run.json").exists() else [])]
    command += ["--budget", budget] if budget else []
    sys.exit(subprocess.run(command, stdout=subprocess.DEVNULL).returncode)


@main.command()
@click.pass_obj
def pack(runs: Path) -> None:
    """Put the measured suites into the package, and print their sizes."""
    PLACE.mkdir(exist_ok=True)
    costs = msgspec.json.decode(COSTS.read_bytes(), type=Costs) if COSTS.exists() else Costs()
    for suite in ORDER:
        if not (runs / suite / "run.json").exists():
            click.echo(f"{suite}: no new measurement")
            continue
        run = read_run(runs / suite)
        if run.info.finished is None:
            # Round trips are measured last; packing earlier would silently lose them.
            sys.exit(
                f"{runs / suite}: the run is not finished. Run `measure` again, which continues it, before `pack`."
            )
        costs.learn(sample for sample in run.samples if sample.round > 0)
        place = PLACE / suite
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        kept = tuple(sample for sample in run.samples if sample.round > 0 or sample.failure is not None)
        pack_run(replace(run, samples=kept), place)
        # Do not publish the path on the measuring machine.
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
