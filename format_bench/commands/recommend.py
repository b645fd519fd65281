"""`format-bench recommend`: recommend a format, a call and a codec for the user's data and its use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench_runner.clock import now_ns
from format_bench.errors import Interrupted
from format_bench.options import READING, UNDER_RECOMMEND, read_options
from format_bench.parameter_types import DURATION, USES, Wish
from format_bench.terminal import FAILED, INTERRUPTED, console, errors_told, with_flags


@click.command()
@click.option(
    "--data",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Your own table or folder of images, as for 'run'; with --key your own documents.",
)
@click.option(
    "--key",
    metavar="FIELD",
    help="Compare document stores: --data is JSON Lines, and FIELD is unique in each document.",
)
@READING
@click.option(
    "-d", "--datasets", metavar="NAME", multiple=True, help="A built-in data set; with --from, a data set of that run."
)
@click.option(
    "--from",
    "stored",
    metavar="RUN",
    type=click.Path(path_type=str),
    help="Answer from a stored run without measuring; 'reference' means the runs that come with the package.",
)
@click.option(
    "--prefer",
    "weights",
    type=Wish("format_bench.uses:parse_weights", "weights"),
    help="Weights, e.g. read=1,take=3; only what you name counts. Names: read, save, size, read_memory, "
    "save_memory, project (some columns), take (rows by number), scan (rows by filter), append; for documents also ask "
    "(three questions from your fields), get (by key), fields (some fields of all); with --use also use. [default: "
    "read=3,size=2,save=1; with --use: use=1; for documents: size=2,read=1,get=1,ask=1,save=1]",
)
@click.option(
    "--use",
    "uses",
    metavar="WORDS",
    type=USES,
    help="What you do per day, e.g. 'take 100 rows 1000 times a day, read all once'. To see all phrases, give an "
    "unknown one. Variants are ranked by the total time per day, unless --prefer gives weights.",
)
@click.option(
    "--need",
    "needs",
    type=Wish("reports.analysis.recommendation.preferences:parse_needs", "needs"),
    default="",
    help="What a format must be able to do, e.g. append,types. Measured: append, projection (reads some "
    "columns fast), random-access (reads some rows fast), pushdown (filters fast). Stated by each format: types "
    "(keeps types), nested (stores lists and structs), no-pickle (reading runs no code), other-languages, single-file.",
)
@click.option(
    "--max-memory",
    "max_memory_bytes",
    type=Wish("reports.analysis.recommendation.preferences:parse_bytes", "bytes"),
    help="Largest memory that saving or reading may need, e.g. 8G. [default: no limit]",
)
@click.option(
    "--reads-per-save",
    metavar="N",
    type=click.FloatRange(min=0, min_open=True),
    help="Count the time of one save and N reads as one figure, instead of save time and read time.",
)
@click.option(
    "--bandwidth",
    "bandwidth_bytes_per_s",
    type=Wish("reports.analysis.recommendation.preferences:parse_bandwidth", "bandwidth"),
    help="Bandwidth of your storage, e.g. 200MB/s. The time to transfer the file is added to each time.",
)
@click.option(
    "--accept",
    type=click.Choice(["established", "young", "experimental"]),
    default="established",
    show_default=True,
    help="Which formats may be recommended: only established ones, also young ones, or also experimental ones.",
)
@click.option(
    "--within",
    type=click.Choice(["parquet", "feather", "orc", "lance"]),
    help="Stay with this format, and look for its best settings: codec, row groups, encodings of each column, ...",
)
@click.option("--allow-reorder", is_flag=True, help="With --within parquet: also try to sort the rows by a column.")
@click.option(
    "--budget",
    "budget_s",
    type=DURATION,
    default="2m",
    show_default=True,
    help="Time for the whole measurement, e.g. 10m.",
)
@click.option(
    "--rows",
    metavar="N",
    type=click.IntRange(min=1),
    help="Largest number of rows to measure; figures of a longer table are projected. [default: 200,000, or 10,000 "
    "images; fewer if they are large]",
)
@click.option(
    "-f",
    "--formats",
    metavar="REGEX",
    multiple=True,
    help="Consider only variants whose name matches: 'parquet' (the usual variants of Parquet), 'codec=zstd', or a "
    "full name (repeatable).",
)
@click.option("--formats-not", metavar="REGEX", multiple=True, help="Skip variants whose name matches (repeatable).")
@UNDER_RECOMMEND
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    help="Seed of the order of measurements. [default: random, recorded in the run]",
)
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Result folder. [default: results/<time>-<machine>]"
)
@click.option("--machine", metavar="NAME", help="Name of this machine in all records. [default: the host name]")
@click.option("--explain", is_flag=True, help="Show every variant, the reasons, and what was left out and why.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with all figures.")
@click.pass_obj
def recommend(words: list[str], explain: bool, as_json: bool, **options: Any) -> int:
    """Recommend a format and call for your data and its use.

    A variant is a format with a library and its settings. Every variant is measured on few rows. The variants that may
    be the best are then measured again and again on up to --rows rows. This ends when --budget is spent, or when all
    variants but one are clearly worse. If the table is longer than that, two samples of different sizes are measured,
    and times and sizes are projected to all rows. Everything that is saved is read back and compared with the data.

    \b
    Examples:
      format-bench recommend --data my.csv                  for a table that is read often
      format-bench recommend --data my.csv --cache cold     ... about once a day, from the disk
      format-bench recommend --data my.csv -f parquet       among the usual Parquet variants
      format-bench recommend --data my.csv --within parquet    codec, encodings, ... of Parquet
      format-bench recommend --from reference -d core       for the built-in table core, at once
      format-bench recommend --data my.jsonl --key id       which store for JSON documents?

    \b
    In the answer:
      score        all figures in one number (geometric mean with the weights of --prefer); the
                   recommended variant has 1, and a variant with 1.1 is 10 % worse
      P(best)      the probability that a variant has the best score, by resampling its rounds
                   (bootstrap). It does not include the error of a projection to a longer
                   table; a larger --rows reduces this error.
      how sure     P(best) of the recommended variant. At 0.975 or more, all others are clearly worse;
                   below that, those with = may be as good, and a larger --budget may tell
      =            tied: the rounds do not show that this variant is worse than the recommended one
      not counted  rounds that enter no figure, mostly because the machine was busy ('doctor' helps)
      (young), (experimental)
                   low maturity; such formats are recommended only with --accept young or experimental
    """
    began_ns = now_ns()
    read = read_options(options)
    with errors_told():
        from format_bench.api.recommend import recommend as answered
        from format_bench.progress import watching
        from reports.text import recommendation, recommendation_json, recommendation_within

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
        elif answer.within is not None:
            recommendation_within.show(answer, answer.within, console(), explain=explain)
        else:
            recommendation.show(answer, console(), explain=explain)
    return 0 if answer.found.ranked else FAILED
