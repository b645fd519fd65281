"""`format-bench side-by-side`: measure two environments in turn and compare them.

Names of suites and options of `run` are passed on unparsed. Format Bench in each environment parses them. See
bench_runner.run.side_by_side.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from format_bench.commands.compare import show
from format_bench.options import ANYWAY, FAIL_ABOVE, FORM
from format_bench.terminal import FAILED, INTERRUPTED, errors_told, with_flags

NOT_IN_TURN = ("--quick", "--budget", "--report", "--list")
"""Options of `run` that `side-by-side` does not accept."""


# -h is not defined, because click would find it in options that are passed on with a value, such as -fhdf5.
@click.command("side-by-side", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, metavar="SUITE... [OPTIONS OF run]", type=click.UNPROCESSED)
@click.option(
    "--before",
    metavar="PYTHON",
    required=True,
    type=click.Path(path_type=Path),
    help="Python of the first environment, e.g. old/.venv/bin/python.",
)
@click.option(
    "--after",
    metavar="PYTHON",
    required=True,
    type=click.Path(path_type=Path),
    help="Python of the second environment.",
)
@click.option(
    "--rounds",
    metavar="N",
    type=click.IntRange(min=7),
    default=240,
    show_default=True,
    help="Maximum number of rounds in each environment. An operation ends earlier if its result is certain.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder for the two result folders, before and after. [default: results/<time>-side-by-side]",
)
@click.option("--resume", is_flag=True, help="Measure what is missing in the two runs in --out.")
@FAIL_ABOVE
@ANYWAY
@FORM
def side_by_side(
    words: tuple[str, ...],
    before: Path,
    after: Path,
    rounds: int,
    out: Path | None,
    resume: bool,
    least_change: float,
    anyway: bool,
    form: str | None,
) -> int:
    """Measure two environments in turn and compare them.

    The environments differ in the version of a library or of Format Bench. Format Bench must be installed in both. They
    take turns, a few rounds each, so that disturbances of the machine affect both in the same way. This finds smaller
    changes than two separate runs, with fewer false alarms. Operations whose result is certain are not measured any
    more; this is decided after a turn, at most every 10 rounds. SUITE and options of `run` select what is measured in
    both environments. Do not change the code or the libraries of either environment meanwhile.

    \b
    Example, two versions of pyarrow:
      format-bench side-by-side tabular -f parquet --before old/bin/python --after new/bin/python

    Exit codes are those of `compare`, and 1 if the run ended early; --resume then continues it.
    """
    if not words:
        raise click.UsageError("No suite was named. Name a suite; options of 'run' select a part of the suite.")
    for word in words:
        if word.partition("=")[0] in NOT_IN_TURN:
            raise click.UsageError(f"side-by-side cannot use {word}. Omit it; --rounds limits the measurement.")
    if resume and out is not None and not any((out / name / "run.json").exists() for name in ("before", "after")):
        raise click.UsageError(f"--out {out} holds no runs to continue. Omit --resume.")
    with errors_told():
        from format_bench.api.compare import compare

        folder = _result_folder(before, after, out, resume)
        if not _measured(words, (before, after), folder, rounds, anyway):
            return FAILED
        click.echo(f"results: {folder}", err=True)
        pair = folder / "before", folder / "after"
        found = compare(*pair, least_change=least_change, anyway=anyway, most_rounds=rounds)
        return show(found, form)


def _result_folder(before: Path, after: Path, out: Path | None, resume: bool) -> Path:
    """Check both interpreters, then make and return the folder that will hold both result folders."""
    from bench_runner.run.measuring import new_folder
    from bench_runner.run.side_by_side import Environment, check
    from format_bench.api.request import RESULTS, result_folder

    for name, python in (("before", before), ("after", after)):
        check(Environment(name, python, Path()))
    return result_folder(out, resume, lambda: new_folder(RESULTS, "side-by-side"))


def _measured(words: tuple[str, ...], pythons: tuple[Path, Path], folder: Path, rounds: int, anyway: bool) -> bool:
    """Measure both environments and return whether all rounds were measured. If some were not, print why, and what to
    do."""
    from bench_runner.errors import BenchError
    from bench_runner.run.side_by_side import Environment, measure_in_turn
    from format_bench.api.compare import check_comparable, decided
    from format_bench.progress import watching

    pair = [Environment(name, python, folder / name) for name, python in zip(("before", "after"), pythons, strict=True)]
    first, second = (environment.folder for environment in pair)
    kept = (
        f"All that was measured is in {folder}\n  To measure the rest, repeat the command with --out {folder} --resume."
    )
    try:
        with watching() as watcher:
            measure_in_turn(
                pair,
                words,
                rounds,
                watcher,
                lambda: check_comparable(first, second, anyway=anyway),
                lambda already: decided(first, second, rounds, already),
            )
    except KeyboardInterrupt:
        click.echo(f"Stopped. {kept}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BenchError as error:
        # Leave no empty folders behind.
        for place in (first, second, folder):
            with suppress(OSError):
                place.rmdir()
        if not folder.exists():
            raise
        click.echo(f"error: {with_flags(error.text)}\n{kept}", err=True)
        return False
    return True
