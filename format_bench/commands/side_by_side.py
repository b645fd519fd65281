"""`format-bench side-by-side`: two environments measured in turn, and compared.

What is to be measured stays in words, because another interpreter parses them: see bench_runner.run.side_by_side.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from format_bench.commands.compare import told
from format_bench.options import ANYWAY, FAIL_ABOVE, FORM
from format_bench.terminal import FAILED, INTERRUPTED, errors_told, with_flags

NOT_IN_TURN = ("--quick", "--budget", "--report", "--list")
"""Options of `run` that say how many rounds there are, or what else becomes of one run."""


# Without -h: an option that is handed on with its value, -fhdf5, is looked at letter by letter.
@click.command("side-by-side", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, metavar="SUITE... [OPTIONS OF run]", type=click.UNPROCESSED)
@click.option(
    "--before",
    metavar="PYTHON",
    required=True,
    type=click.Path(path_type=Path),
    help="Interpreter of the first environment, e.g. old/.venv/bin/python.",
)
@click.option(
    "--after",
    metavar="PYTHON",
    required=True,
    type=click.Path(path_type=Path),
    help="Interpreter of the second environment.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=5),
    default=20,
    show_default=True,
    help="Rounds of each: more show smaller changes.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of the two result folders, before and after (default: results/<time>-side-by-side).",
)
@click.option("--resume", is_flag=True, help="Measure what the runs in --out lack.")
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
    """Measure two environments in turn, a few rounds of each, and compare them.

    What the machine does meanwhile hits both alike, so that smaller changes are found, and fewer that are none, than
    between two runs of different hours. The environments may hold other versions of libraries, or of Format Bench.
    SUITE and options of `run` say what is measured; both are asked for the same. Neither checkout may change
    meanwhile. Exit codes are those of `compare`; 1: it ended early, and --resume goes on.
    """
    if not words:
        raise click.UsageError("No suite was named. Name one; options of 'run' choose what of it is measured.")
    for word in words:
        if word.partition("=")[0] in NOT_IN_TURN:
            raise click.UsageError(
                f"side-by-side cannot use {word}: it measures --rounds rounds of each environment and compares them."
            )
    if resume and out is not None and not any((out / name / "run.json").exists() for name in ("before", "after")):
        raise click.UsageError(f"--out {out} holds no runs to continue. Omit --resume.")
    with errors_told():
        from format_bench.api.compare import compare

        folder = _result_folder(before, after, out, resume)
        if not _measured(words, (before, after), folder, rounds, anyway):
            return FAILED
        click.echo(f"results: {folder}", err=True)
        found = compare(folder / "before", folder / "after", least_change=least_change, anyway=anyway)
        return told(found, form)


def _result_folder(before: Path, after: Path, out: Path | None, resume: bool) -> Path:
    """Where the two result folders lie, made when both interpreters are good."""
    from bench_runner.run.measuring import new_folder
    from bench_runner.run.side_by_side import Environment, check
    from format_bench.api.request import RESULTS, result_folder

    for name, python in (("before", before), ("after", after)):
        check(Environment(name, python, Path()))
    return result_folder(out, resume, lambda: new_folder(RESULTS, "side-by-side"))


def _measured(words: tuple[str, ...], pythons: tuple[Path, Path], folder: Path, rounds: int, anyway: bool) -> bool:
    """Whether all rounds of both were taken; where not, it is said, and what to do."""
    from bench_runner.errors import BenchError
    from bench_runner.run.side_by_side import Environment, measure_in_turn
    from format_bench.api.compare import check_comparable
    from format_bench.progress import watching

    pair = [Environment(name, python, folder / name) for name, python in zip(("before", "after"), pythons, strict=True)]
    first, second = (environment.folder for environment in pair)
    kept = (
        f"All that was measured is in {folder}\n  To measure the rest, repeat the command with --out {folder} --resume."
    )
    try:
        with watching() as watcher:
            measure_in_turn(pair, words, rounds, watcher, lambda: check_comparable(first, second, anyway=anyway))
    except KeyboardInterrupt:
        click.echo(f"Stopped. {kept}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except BenchError as error:
        # A request that could not be met leaves no empty folders behind.
        for place in (first, second, folder):
            with suppress(OSError):
                place.rmdir()
        if not folder.exists():
            raise
        click.echo(f"error: {with_flags(error.text)}\n{kept}", err=True)
        return False
    return True
