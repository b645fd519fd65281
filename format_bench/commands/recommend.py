"""`format-bench recommend`: which format, and which call, for my data and my use of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench_runner.clock import now_ns
from format_bench.errors import Interrupted
from format_bench.options import READING, UNDER, read_options
from format_bench.parameter_types import DURATION, USES, Wish
from format_bench.terminal import FAILED, INTERRUPTED, console, errors_told, with_flags


@click.command()
@click.option(
    "--data",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Your own table or images, as for 'run'; with --key your own documents.",
)
@click.option(
    "--key",
    metavar="FIELD",
    help="Take --data as documents, a JSON object a line, which this field tells apart: stores are measured.",
)
@READING
@click.option(
    "-d", "--datasets", metavar="NAME", multiple=True, help="A data set of ours in place of yours, or one of a run's."
)
@click.option(
    "--from",
    "stored",
    metavar="RUN",
    type=click.Path(path_type=str),
    help="A stored run, or 'reference', which this package brings: measure nothing.",
)
@click.option(
    "--prefer",
    "weights",
    type=Wish("format_bench.uses:parse_weights", "weights"),
    show_default="read=3,size=2,save=1, or with --use use=1",
    help="Weights of read, save, size, read_memory, save_memory, and of project, take, scan, append: 'take=3', or "
    "'take[rows=10]=3'; of documents: fields, get (default: read, fields, get and save 1, size 2).",
)
@click.option(
    "--use",
    "uses",
    metavar="WORDS",
    type=USES,
    help="What you do, and how often: 'take 100 rows 1000 times a day, read all once'. Its time a day decides.",
)
@click.option(
    "--need",
    "needs",
    type=Wish("reports.analysis.recommendation.preferences:parse_needs", "needs"),
    default="",
    help="Drop what lacks one of: append, projection, random-access, pushdown (these are measured), types, nested, "
    "no-pickle, other-languages, single-file.",
)
@click.option(
    "--max-memory",
    "max_memory_bytes",
    type=Wish("reports.analysis.recommendation.preferences:parse_bytes", "bytes"),
    help="Drop what needs more, e.g. 8G.",
)
@click.option(
    "--reads-per-save",
    type=click.FloatRange(min=0, min_open=True),
    help="How often you read what you save once: their times become one.",
)
@click.option(
    "--bandwidth",
    "bandwidth_bytes_per_s",
    type=Wish("reports.analysis.recommendation.preferences:parse_bandwidth", "bandwidth"),
    help="Of your storage, e.g. 200MB/s: added to the times.",
)
@click.option(
    "--accept",
    type=click.Choice(["established", "young", "experimental"]),
    default="established",
    show_default=True,
    help="How far a format has to have come to be recommended; experimental accepts all.",
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
@click.option("--explain", is_flag=True, help="Tell all of it: every variant, reasons, what was left out, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with every figure, for programs.")
@click.pass_obj
def recommend(words: list[str], explain: bool, as_json: bool, **options: Any) -> int:
    """Say which variant to use for your data and your use of it, how sure that is, and why.

    Every candidate is measured once on few rows, and those that may win by rounds on all of them; each round trip is
    verified. A score is the weighted geometric mean of the figures. Formats that are not established are shown and not
    recommended, unless --accept says so.
    """
    began_ns = now_ns()
    read = read_options(options)
    with errors_told():
        from format_bench.api.recommend import recommend as answered
        from format_bench.progress import watching
        from reports.text import recommendation, recommendation_json

        try:
            with watching() as watcher:
                answer = answered(**options, options=read, watcher=watcher, command=words, began_ns=began_ns)
        except Interrupted as stopped:
            click.echo(with_flags(stopped.text), err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:
            click.echo("stopped; nothing was measured yet", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        if as_json:
            click.echo(recommendation_json.as_json(answer))
        else:
            recommendation.show(answer, console(), explain=explain)
    return 0 if answer.found.ranked else FAILED
