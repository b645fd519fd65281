"""The command line. `python main.py` and `format-bench` are this program.

Data goes to standard output, progress and warnings to standard error. Exit codes: 0 all measured (not installed and
refused are no failures), 1 some cells failed, 2 the request was wrong, 3 a regression was found, 130 Ctrl-C.

Everything heavy is imported inside the commands: `--help` must not pay for pandas. This module decides nothing about
measuring or showing; it turns words into calls.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

    from bench_runner.plan.chain import Plan
    from bench_runner.plan.request import Request
    from bench_runner.results.records import Run
    from reports.analysis.compare import Comparison
    from reports.text.recommendation import Answer

FAILED, WRONG_REQUEST, REGRESSION, INTERRUPTED = 1, 2, 3, 130
SUITE_FLAGS = ("--tabular", "--compression", "--image")
"""Spelled as in the thesis: `--tabular ...` is exactly `run tabular ...`."""
RESULTS = Path("results")

EPILOG = """
\b
Examples:
  python main.py --tabular --report             the main job: every format, six tables, PDF
  python main.py --compression --codecs all     what each codec costs, and what it saves
  python main.py run tabular --quick --rows 10000 --formats 'parquet|csv'
  python main.py report results/<run> --pdf     any report again, from stored samples
  python main.py report results/<run> --html site   the interactive site, for a browser
  python main.py --tabular --data FILE          your own table, in every format
  python main.py --image --data FOLDER          your own images, in every storage
  python main.py recommend --data my.csv        which format for my table, and the lines of Python
  python main.py compare results/A results/B    what became slower, and is it more than noise?
  python main.py side-by-side tabular --before old/.venv/bin/python --after new/.venv/bin/python
  python main.py list formats                   what is there, and what is installed
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=EPILOG)
def cli() -> None:
    """Format Bench: which storage format, and which call, for my data and my use of it?

    `python main.py --tabular` with any option of `run` is the same as `python main.py run tabular`.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the program and exit with its code; no traceback reaches a user for an error of the request."""
    words = _expanded(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(words, prog_name="format-bench", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(WRONG_REQUEST)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _forget_output() -> None:
    """The reader of our output has gone, as `| head` does: nothing is wrong, and the last flush must not say so."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _expanded(words: list[str]) -> list[str]:
    """`--tabular --report` becomes `run tabular --report`."""
    suites = [word.removeprefix("--") for word in words if word in SUITE_FLAGS]
    if not suites:
        return words
    rest = [word for word in words if word not in SUITE_FLAGS]
    command = rest.pop(0) if rest[:1] in (["run"], ["side-by-side"]) else "run"
    return [command, *suites, *rest]


# --- values ----------------------------------------------------------------------------------------------------------


class Duration(click.ParamType):
    """'90s', '10m', '2h', in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse, or fail with what is allowed."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", str(value).strip())
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is not a time; write 90s, 10m or 2h", param, ctx)
        return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


class Names(click.ParamType):
    """'zstd,gzip', as a tuple of texts."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Split at commas."""
        if isinstance(value, tuple):
            return value
        return tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip()))


class Levels(click.ParamType):
    """'1,3,9', as a tuple of integers."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Split at commas; fail with what is allowed."""
        parts = Names().convert(value, param, ctx)
        if not all(re.fullmatch(r"\d{1,3}", str(part)) for part in parts):
            self.fail(f"{value!r} are not levels; write numbers with commas, e.g. 1,3,9", param, ctx)
        return tuple(int(part) for part in parts)


class Percent(click.ParamType):
    """'10%', as 0.1."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse, or fail with what is allowed."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a share; write it in percent, e.g. 10%", param, ctx)
        return float(match[1]) / 100


class Wish(click.ParamType):
    """What a user wants of a format, by a parser of reports.analysis.preferences."""

    def __init__(self, parser: str, name: str) -> None:
        self.name = name
        self._parser = parser

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse, or fail with what is allowed."""
        from reports.analysis import preferences

        if not isinstance(value, str):
            return value
        try:
            return getattr(preferences, self._parser)(value)
        except preferences.PreferenceError as error:
            self.fail(str(error), param, ctx)


DURATION, NAMES, LEVELS, PERCENT = Duration(), Names(), Levels(), Percent()
Command = TypeVar("Command", bound=Callable[..., Any])


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


WHICH = _options(
    click.option(
        "-f",
        "--formats",
        metavar="REGEX",
        multiple=True,
        help="Keep variants whose name matches, e.g. '^parquet' (repeatable).",
    ),
    click.option(
        "--formats-not", metavar="REGEX", multiple=True, help="Drop variants whose name matches (repeatable)."
    ),
    click.option(
        "-d",
        "--datasets",
        metavar="REGEX",
        multiple=True,
        help="Keep data sets whose name matches; name one on request, e.g. webface, in full; or spell one: "
        "'synthetic[int=5,str=1]' (repeatable).",
    ),
    click.option(
        "--operations",
        metavar="REGEX",
        multiple=True,
        help="Keep operations whose name matches; a save always comes with a read, which verifies it (repeatable).",
    ),
    click.option(
        "--webface",
        metavar="[PATH]",
        is_flag=False,
        flag_value="",
        help="Add the data set webface: from this HDF5 file, or without a path a generated one.",
    ),
    click.option(
        "--data",
        metavar="PATH",
        type=click.Path(path_type=Path),
        help="Your own data instead of ours: a table (CSV, JSON Lines, Parquet, Arrow, ORC, Excel, Avro, a folder of "
        "Parquet files; of a large one a sample), or, for the suite image, images (in folders by class, in Parquet, or "
        "saved by the datasets library).",
    ),
    click.option(
        "--rows",
        type=click.IntRange(min=1),
        help="Rows of each data set, or of the sample of your own table (default: its own, 1,000,000 for most).",
    ),
    click.option(
        "--track",
        "tracks",
        type=click.Choice(["plain", "default", "equal"]),
        multiple=True,
        help="No codec, the library default, or zstd level 1 for all that have it (default: the suite's; repeatable).",
    ),
    click.option(
        "--codecs",
        type=NAMES,
        default="",
        metavar="NAME,...",
        help="For the suite compression: codecs of every format that has them, e.g. 'zstd,gzip', or 'all'.",
    ),
    click.option(
        "--levels",
        type=LEVELS,
        default="",
        metavar="N,...",
        help="For the suite compression: levels, e.g. '1,3,9' (default: 1); one that a codec does not take is refused.",
    ),
)
UNDER = _options(
    click.option(
        "--cache",
        type=click.Choice(["warm", "cold"]),
        default="warm",
        show_default=True,
        help="Page cache before a read; cold evicts the stored copy, and proves it.",
    ),
    click.option(
        "--threads",
        type=click.Choice(["default", "1"]),
        help="The libraries' own choice, or one thread on one core (default: the suite's, which is the first but for "
        "engines, which has both).",
    ),
    click.option(
        "--target",
        type=click.Choice(["pandas", "arrow"]),
        default="pandas",
        show_default=True,
        help="What you hold and want back: a DataFrame or an Arrow table.",
    ),
    click.option(
        "--strings",
        type=click.Choice(["str", "object"]),
        default="str",
        show_default=True,
        help="The pandas dtype of text: pandas 3's, or Python objects as in the thesis.",
    ),
    click.option(
        "--work-dir",
        "work_dirs",
        metavar="PATH",
        multiple=True,
        help="Where files are written and read (repeatable: each is a condition with its device; "
        "default: the result folder).",
    ),
)
HOW = _options(
    click.option(
        "--rounds",
        type=click.IntRange(min=1),
        help="Rounds for every cell (default: 7; 3 for cells over 10 s, 1 over 60 s; a cell whose interval is narrow "
        "stops after 5).",
    ),
    click.option("--quick", is_flag=True, help="One round; every report says so."),
    click.option(
        "--budget",
        "budget_s",
        type=DURATION,
        help="Time to spend on rounds, e.g. 10m: cheap cells get more, every cell gets one.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=DURATION,
        default="600s",
        show_default=True,
        help="Longest time for one operation.",
    ),
    click.option(
        "--seed", type=click.IntRange(min=0), help="Order of the rounds (default: random, stored in the run)."
    ),
    click.option(
        "--isolate",
        type=click.Choice(["forkserver", "spawn"]),
        default="forkserver",
        show_default=True,
        help="How fresh processes are made; spawn is slower and the reference.",
    ),
    click.option("--no-fidelity", is_flag=True, help="Leave out the round trips of every kind of column."),
)
WHERE = _options(
    click.option(
        "--out",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Result folder (default: results/<time>-<machine>).",
    ),
    click.option("--resume", is_flag=True, help="Measure what the run in --out lacks."),
    click.option("--report", is_flag=True, help="Leave a PDF in the result folder as well."),
    click.option("--machine", metavar="NAME", help="Stands in all records in place of this host's name."),
    click.option("--list", "list_only", is_flag=True, help="Print what would be measured, and stop."),
)


# --- run -------------------------------------------------------------------------------------------------------------


@cli.command()
@click.argument("suites", nargs=-1, metavar="SUITE...")
@WHICH
@HOW
@UNDER
@WHERE
def run(suites: tuple[str, ...], **options: Any) -> int:
    """Measure one or more suites, and show the result.

    Every figure stands behind a verified round trip; a cell without figures shows the reason. The result folder holds
    run.json, samples.jsonl, fidelity.jsonl and CSV files; docs/results.md describes them.
    """
    with _errors_told():
        request = _request(options)
        plan = _plan(suites, request)
        if options["list_only"]:
            _print_plan(plan)
            return 0
        return _measure(plan, request, options)


def _request(options: dict[str, Any]) -> Request:
    from bench_runner.plan.request import Request

    webface = Path(options["webface"]) if options["webface"] else None
    if webface is not None and not webface.is_file():
        raise click.UsageError(f"--webface {webface}: no such file; without a path a generated table is measured")
    data = options["data"]
    if data is not None and not data.exists():
        raise click.UsageError(f"--data {data}: no such file or folder; leave it out for our own data")
    for work_dir in options["work_dirs"]:
        if not Path(work_dir).is_dir():
            raise click.UsageError(f"--work-dir {work_dir}: no such directory; make it first")
    return Request(
        formats=options["formats"],
        formats_not=options["formats_not"],
        datasets=options["datasets"],
        operations=options["operations"],
        webface=webface,
        generated_webface=options["webface"] == "",
        data=options["data"],
        rows=options["rows"],
        cache=options["cache"],
        threads=options["threads"],
        target=options["target"],
        tracks=options["tracks"],
        codecs=options["codecs"],
        levels=options["levels"],
        strings=options["strings"],
        work_dirs=tuple(dict.fromkeys(str(Path(path).resolve()) for path in options["work_dirs"])) or ("default",),
    )


def _plan(names: tuple[str, ...], request: Request) -> Plan:
    import difflib

    from bench_runner.plan.planning import make_plan
    from bench_runner.suites import SUITES
    from format_bench.progress import watching

    if not names:
        raise click.UsageError(f"name a suite: {', '.join(SUITES)}; 'list suites' says what each answers")
    for name in names:
        if name not in SUITES:
            near = difflib.get_close_matches(name, SUITES, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise click.UsageError(f"no suite is called {name!r}{guess}; there are: {', '.join(SUITES)}")
    with watching() as watcher:
        watcher.stage("plan")
        return make_plan(
            [SUITES[name] for name in dict.fromkeys(names)],
            request,
            on_rows=lambda name, rows: watcher.step(f"{name}: {rows:,} read", None),
        )


def _measure(plan: Plan, request: Request, options: dict[str, Any]) -> int:
    from reports.text import render

    folder, measured, failed = _measured(plan, request, options)
    # The files first: whoever reads our output may stop reading, as `| head` does.
    render.write_csv(measured, folder)
    if options["report"]:
        render.write_pdf(measured, folder / "report.pdf")
    click.echo(f"results: {folder}", err=True)
    try:
        render.show(measured, _console())
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
    return FAILED if failed else 0


def measure_run(options: dict[str, Any]) -> Path:
    """Measure what the options of `run` ask for, for programs; the result folder."""
    request = _request(options)
    folder, _, _ = _measured(_plan(options["suites"], request), request, options)
    return folder


def _measured(plan: Plan, request: Request, options: dict[str, Any]) -> tuple[Path, Run, bool]:
    """The result folder, what lies in it, and whether some cells failed."""
    from bench_runner.run.measuring import machine_name, measure, new_folder
    from bench_runner.run.session import Options
    from format_bench.progress import watching

    how = Options(
        rounds=options["rounds"],
        quick=options["quick"],
        budget_s=options["budget_s"],
        timeout_s=options["timeout_s"],
        seed=options["seed"],
        isolate=options["isolate"],
        resume=options["resume"],
        machine=options["machine"],
        fidelity=not options["no_fidelity"],
    )
    if how.quick and how.rounds is not None:
        raise click.UsageError("--quick is one round; leave out --rounds, or --quick")
    _check_machine(how.machine)
    if options["report"]:
        _check_matplotlib()
    folder = _result_folder(options["out"], how.resume, lambda: new_folder(RESULTS, machine_name(how)))
    try:
        with watching() as watcher:
            measured, failed = measure(plan, request, how, folder, ["format-bench", *_expanded(sys.argv[1:])], watcher)
    except KeyboardInterrupt:
        if not (folder / "run.json").exists():
            raise
        click.echo(
            f"stopped; all that was measured is in {folder}\n"
            f"  the same command with --out {folder} --resume measures the rest",
            err=True,
        )
        raise
    return folder, measured, failed


def _console() -> Console:
    """Standard output: as wide as the terminal, 100 columns where there is none."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=100)


def _check_machine(name: str | None) -> None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise click.UsageError(f"--machine {name!r}: a name is letters, digits, '.', '_' and '-'")


def _check_matplotlib() -> None:
    """A missing library is said before an hour of measuring, not after it."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        raise click.UsageError("the PDF needs matplotlib, not installed here: pip install -e '.[pdf]'")


def _result_folder(out: Path | None, resume: bool, make: Callable[[], Path]) -> Path:
    if resume:
        if out is None:
            raise click.UsageError("--resume needs --out DIR, the result folder of the run to go on with")
        return out
    if out is None:
        return make()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise click.UsageError(f"--out {out} is there already and not an empty folder; name another, or add --resume")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"--out {out} cannot be made ({error.strerror}); name another folder") from None
    return out


def _print_plan(plan: Plan) -> None:
    for chain in plan.chains:
        threads = "  threads=1" if chain.conditions.threads == "1" else ""
        for operation in chain.operations:
            click.echo(f"{chain.label(operation)}  track={chain.conditions.track}{threads}")
    for excluded in plan.excluded:
        click.echo(f"{excluded.chain.label()}  {excluded.failure.kind}: {excluded.failure.reason}")


# --- the other commands --------------------------------------------------------------------------------------------


@cli.command("list")
@click.argument("what", type=click.Choice(["suites", "formats", "storages", "datasets", "cells"]), default="suites")
def list_(what: str) -> None:
    """List suites, formats or image storages (and which are installed), data sets, or the cells of every suite."""
    from format_bench import listing

    with _errors_told():
        for line in listing.LISTINGS[what]():
            click.echo(line)


@cli.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--pdf", is_flag=True, help="Write report.pdf into the result folder.")
@click.option("--csv", "csv_files", is_flag=True, help="Write the CSV files into the result folder.")
@click.option("--fidelity", is_flag=True, help="Show what each format does to each kind of column.")
@click.option("--against", type=click.Choice(["thesis"]), help="Set the figures beside published ones.")
@click.option("--markdown", is_flag=True, help="With --against or --fidelity: print Markdown.")
@click.option(
    "--html",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write an interactive site of all RUNs into this folder; it opens from a disk, without network.",
)
def report(
    runs: tuple[Path, ...],
    pdf: bool,
    csv_files: bool,
    fidelity: bool,
    against: str | None,
    markdown: bool,
    html: Path | None,
) -> None:
    """Make reports again from stored samples: the table, or what the options name."""
    from bench_runner.results.records import read_run
    from reports.text import render

    if markdown and not (against or fidelity):
        raise click.UsageError("--markdown goes with --against or --fidelity")
    with _errors_told():
        if html is not None:
            click.echo(_write_site(runs, html))
        for folder in runs:
            stored = read_run(folder)
            if pdf:
                _check_matplotlib()
                click.echo(render.write_pdf(stored, folder / "report.pdf"))
            if csv_files:
                for path in render.write_csv(stored, folder):
                    click.echo(path)
            if fidelity:
                if markdown:
                    click.echo(render.fidelity_markdown(stored))
                else:
                    render.show_fidelity(stored, _console())
            if against:
                if markdown:
                    click.echo(render.against_thesis_markdown(stored))
                else:
                    render.show_against_thesis(stored, _console())
            if not (pdf or csv_files or fidelity or against or html):
                render.show(stored, _console())


def _write_site(folders: tuple[Path, ...], html: Path) -> Path:
    from bench_runner.results.records import read_run
    from reports.site.pages import SiteError, slow_pages
    from reports.text import render

    try:
        front = render.write_site([read_run(folder) for folder in folders], html)
    except SiteError as error:
        raise click.UsageError(str(error)) from None
    for name, size_bytes in slow_pages(html).items():
        text = f"warning: {name} has {size_bytes / 1e6:.1f} MB and is slow to open; name fewer runs for one site"
        click.echo(text, err=True)
    return front


@cli.command()
@click.option(
    "--data",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Your own table or images, as for 'run'.",
)
@click.option(
    "-d", "--datasets", metavar="NAME", multiple=True, help="A data set of ours in place of yours, or one of a run's."
)
@click.option("--from", "stored", metavar="RUN", type=click.Path(path_type=Path), help="A stored run: measure nothing.")
@click.option(
    "--prefer",
    "weights",
    type=Wish("parse_weights", "weights"),
    default="read=3,size=2,save=1",
    show_default=True,
    help="Weights of read, save, size, read_memory, save_memory.",
)
@click.option(
    "--need",
    "needs",
    type=Wish("parse_needs", "needs"),
    default="",
    help="Drop what lacks one of: append, projection, types, nested, no-pickle, other-languages, single-file.",
)
@click.option("--max-memory", type=Wish("parse_bytes", "bytes"), help="Drop what needs more, e.g. 8G.")
@click.option(
    "--reads-per-save",
    type=click.FloatRange(min=0, min_open=True),
    help="How often you read what you save once: their times become one.",
)
@click.option(
    "--bandwidth", type=Wish("parse_bandwidth", "bandwidth"), help="Of your storage, e.g. 200MB/s: added to the times."
)
@click.option(
    "--budget", "budget_s", type=DURATION, default="2m", show_default=True, help="Time for all of it, e.g. 10m."
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    help="Rows that are measured at most (default: 200,000 of a table, 10,000 images, fewer large ones).",
)
@click.option("-f", "--formats", metavar="REGEX", multiple=True, help="Only variants whose name matches (repeatable).")
@click.option("--formats-not", metavar="REGEX", multiple=True, help="None whose name matches (repeatable).")
@UNDER
@click.option("--seed", type=click.IntRange(min=0), help="Order of the rounds (default: random, stored in the run).")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Result folder.")
@click.option("--machine", metavar="NAME", help="Stands in all records in place of this host's name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with every figure, for programs.")
def recommend(**options: Any) -> int:
    """Say which variant to use for your data and your use of it, how sure that is, and why.

    Every candidate is measured once on few rows, and those that may win by rounds on all of them; each round trip is
    verified. A score is the weighted geometric mean of the figures. Ends with the lines of Python to paste.
    """
    from reports.text import render

    with _errors_told():
        answer = answered(options)
        if options["as_json"]:
            click.echo(render.answer_json(answer))
        else:
            render.show_answer(answer, _console())
    return 0 if answer.found.ranked else FAILED


def answered(options: dict[str, Any]) -> Answer:
    """The answer to a recommendation's options, for the command and for programs."""
    from bench_runner.results.records import read_run
    from bench_runner.run.measuring import machine_name, new_folder
    from bench_runner.run.session import Options
    from format_bench.advice import measured_answer, stored_answer
    from format_bench.progress import watching
    from reports.analysis.preferences import Preferences

    preferences = Preferences(
        weights=options["weights"],
        needs=options["needs"],
        max_memory_bytes=options["max_memory"],
        reads_per_save=options["reads_per_save"],
        bandwidth_bytes_per_s=options["bandwidth"],
    )
    given = [name for name in ("data", "stored") if options[name] is not None]
    if len(given) > 1 or not (given or options["datasets"]):
        raise click.UsageError(
            "name what it is about: --data PATH for your own, --from RUN for a stored run, or --datasets NAME"
        )
    if options["stored"] is not None:
        return stored_answer(read_run(options["stored"]), preferences, options["datasets"])
    images = _is_of_images(options)
    request = _request({"webface": None, "operations": (), "tracks": (), "codecs": (), "levels": (), **options})
    how = Options(seed=options["seed"], machine=options["machine"])
    _check_machine(how.machine)
    with watching() as watcher:
        return measured_answer(
            request,
            how,
            lambda: _result_folder(options["out"], False, lambda: new_folder(RESULTS, machine_name(how))),
            ["format-bench", *_expanded(sys.argv[1:])],
            watcher,
            preferences,
            images=images,
            budget_s=options["budget_s"],
        )


def _is_of_images(options: dict[str, Any]) -> bool:
    """Whether the data named are images: ours by their name, the user's by what the files' names say."""
    from bench_runner.suites import SUITES
    from data_generator.errors import DataError
    from data_generator.imported import image_input

    if options["data"] is None:
        names = (*SUITES["image"].datasets, *SUITES["image"].on_request)
        return any(name.partition("[")[0] in names for name in options["datasets"])
    try:
        found = image_input.find(options["data"])
    except DataError:
        return False
    # Parquet files are taken for a table, whatever their columns hold.
    return found.kind != image_input.PARQUET


FAIL_ABOVE = click.option(
    "--fail-above",
    "least_change",
    type=PERCENT,
    default="5%",
    show_default=True,
    help="Changes up to this are neither told nor failed on.",
)
ANYWAY = click.option("--anyway", is_flag=True, help="Compare runs of different machines or data all the same.")
FORM = _options(
    click.option("--markdown", "form", flag_value="markdown", help="Print Markdown, for a comment on a pull request."),
    click.option("--json", "form", flag_value="json", help="Print JSON with every figure, for programs."),
)


@cli.command()
@click.argument("before", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("after", metavar="RUN", type=click.Path(path_type=Path))
@FAIL_ABOVE
@ANYWAY
@FORM
def compare(before: Path, after: Path, least_change: float, anyway: bool, form: str | None) -> int:
    """Say what became slower, larger or hungrier from the first RUN to the second.

    A change counts when its interval excludes 1 and it is more than the noise that the two runs themselves show.
    Exit code 3: something is worse; 0: nothing is; 2: there was nothing to compare.
    """
    with _errors_told():
        found = _compared(before, after, least_change, anyway)
        _show_comparison(found, form)
    return REGRESSION if found.failed else 0


@contextmanager
def _refusal_told() -> Iterator[None]:
    """Two runs that say nothing of each other are a wrong request."""
    from reports.analysis.compare import CompareError

    try:
        yield
    except CompareError as error:
        raise click.UsageError(str(error)) from None


def _compared(before: Path, after: Path, least_change: float, anyway: bool) -> Comparison:
    from bench_runner.results.records import read_run
    from reports.text import render

    with _refusal_told():
        return render.compare_runs(read_run(before), read_run(after), least_change=least_change, anyway=anyway)


def _check_comparable(before: Path, after: Path, anyway: bool) -> None:
    """As much as can be said before there are rounds enough."""
    from bench_runner.results.records import read_run
    from reports.analysis.compare import check_comparable

    with _refusal_told():
        check_comparable(read_run(before), read_run(after), anyway=anyway)


def _show_comparison(found: Comparison, form: str | None) -> None:
    from reports.text import render

    if form is None:
        render.show_comparison(found, _console())
    else:
        click.echo(render.comparison_text(found, form))


NOT_IN_TURN = ("--quick", "--budget", "--report", "--list")
"""Options of `run` that say how many rounds there are, or what else becomes of one run."""


# Without -h: an option that is handed on with its value, -fhdf5, is looked at letter by letter.
@cli.command("side-by-side", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
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
    from bench_runner.errors import BenchError
    from bench_runner.run.measuring import new_folder
    from bench_runner.run.side_by_side import Environment, check, measure_in_turn
    from format_bench.progress import watching

    if not words:
        raise click.UsageError("name a suite, and with options of 'run' what of it is to be measured")
    for word in words:
        if word.partition("=")[0] in NOT_IN_TURN:
            raise click.UsageError(f"side-by-side has no {word}: it takes --rounds of each environment, and compares")
    if resume and out is not None and not any((out / name / "run.json").exists() for name in ("before", "after")):
        raise click.UsageError(f"--out {out}: no runs to go on with; leave out --resume")
    with _errors_told():
        for name, python in (("before", before), ("after", after)):
            check(Environment(name, python, Path()))
        folder = _result_folder(out, resume, lambda: new_folder(RESULTS, "side-by-side"))
        pair = [Environment("before", before, folder / "before"), Environment("after", after, folder / "after")]
        places = pair[0].folder, pair[1].folder
        kept = (
            f"all that was measured is in {folder}\n  the same command with --out {folder} --resume measures the rest"
        )
        try:
            with watching() as watcher:
                measure_in_turn(pair, words, rounds, watcher, lambda: _check_comparable(*places, anyway))
        except KeyboardInterrupt:
            click.echo(f"stopped; {kept}", err=True)
            raise
        except BenchError as error:
            # A request that could not be met leaves no empty folders behind.
            for place in (*places, folder):
                with suppress(OSError):
                    place.rmdir()
            if not folder.exists():
                raise
            click.echo(f"error: {error}\n{kept}", err=True)
            return FAILED
        click.echo(f"results: {folder}", err=True)
        found = _compared(*places, least_change, anyway)
        _show_comparison(found, form)
    return REGRESSION if found.failed else 0


@cli.command()
@click.option(
    "--work-dir",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where files would be written and read.",
)
def doctor(work_dir: Path) -> None:
    """Say whether this machine is fit to measure, and what to do about it."""
    from bench_runner.machine import doctor as examination

    with _errors_told():
        examination.render(examination.examine(work_dir), _console())


@contextmanager
def _errors_told() -> Iterator[None]:
    """Turn the errors that are meant for users into a message and an exit code; anything else is a bug and shows its
    traceback."""
    from adapters.errors import AdapterError
    from bench_runner.errors import BenchError
    from bench_runner.results.records import RecordError
    from data_generator.errors import DataError

    try:
        yield
    except (AdapterError, BenchError, DataError, RecordError) as error:
        click.echo(f"error: {error}", err=True)
        raise click.exceptions.Exit(WRONG_REQUEST) from None
    except BrokenPipeError:
        _forget_output()
        raise click.exceptions.Exit(0) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        advice = "\n  free some space; a run goes on with --resume" if error.errno == errno.ENOSPC else ""
        click.echo(f"error: {where}{error.strerror or error}{advice}", err=True)
        raise click.exceptions.Exit(FAILED) from None


if __name__ == "__main__":
    main()
