"""Make a recommendation from a stored run. A run that `recommend` measured gives the same answer again."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from adapters.errors import AdapterError
from bench_runner.data_kinds import kind_of_target
from bench_runner.errors import RunError
from bench_runner.plan.candidates import is_chosen
from bench_runner.plan.patterns import check
from bench_runner.registries import engine_of
from bench_runner.request import Request
from bench_runner.results.information import VariantInfo
from bench_runner.results.records import Run, changed, read_run
from bench_runner.run.choosing import SCREENING, SMALLER
from bench_runner.run.preparation import declared
from bench_runner.variants import variant_of
from format_bench.api.own_format import PLAIN_CSV, PLAIN_JSON_LINES
from format_bench.api.ranking import Choice, only_choice, rank_after_screening
from format_bench.api.suggestion import answer_of, shown
from format_bench.errors import RequestError
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.candidates import Question, RunSummary, summary_of
from reports.analysis.recommendation.preferences import Preferences


def chosen_run(runs: Sequence[Run], datasets: Sequence[str], preferences: Preferences) -> Run:
    """Return a run that measured one of these data sets. If no run did, return the most preferred of all runs.

    Runs that measured every operation with a weight are preferred. Among these, runs of the suite 'tabular' come first,
    then runs of 'image', then other runs. Raises RequestError if there are several runs and no data set is named.
    """
    first = ("tabular", "image")
    if not datasets and len(runs) > 1:
        held: dict[str, list[str]] = {}
        for run in runs:
            held.setdefault(", ".join(run.info.suites), []).extend(run.info.datasets)
        some = "; ".join(f"{_first_few(dict.fromkeys(named))} ({suites})" for suites, named in held.items())
        raise RequestError(
            f"`stored` contains {len(runs)} runs, but a recommendation needs one of them.",
            f"To choose a run, name one of its data sets by `datasets` (in brackets: its suites): {some}.",
            parameter="datasets",
            allowed=[dataset for run in runs for dataset in run.info.datasets],
        )
    ordered = sorted(runs, key=lambda run: [name not in run.info.suites for name in first])
    asked = set(preferences.operations)
    ordered.sort(key=lambda run: bool(asked - {sample.operation for sample in run.samples}) if asked else False)
    held_there = (run for run in ordered if any(_is_named(datasets, dataset) for dataset in run.info.datasets))
    return next(held_there, ordered[0])


def _first_few(names: Collection[str]) -> str:
    return ", ".join(list(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def stored_answer(
    run: Run,
    preferences: Preferences,
    datasets: Sequence[str],
    formats: Sequence[str] = (),
    formats_not: Sequence[str] = (),
) -> Answer:
    """Return the answer from a stored run. `formats` and `formats_not` are patterns that select among the run's
    variants.

    Raises RunError if the run has several data sets or conditions and `datasets` does not select one of them, if the
    run lacks a figure that has a weight, or if the patterns select no variant.
    """
    summary = summary_of(ask_todays_adapters(_of_formats(run, formats, formats_not)))
    found = _questions_asked(summary, preferences, datasets)
    screening = _screening(run, formats, formats_not)
    if len(found) == 1:
        choice = Choice(summary, found[0], summary.questions[found[0]], screening)
    else:
        choice = only_choice(summary, screening)
    options = (("--datasets", datasets), ("--formats", formats), ("--formats-not", formats_not))
    selection = [word for option, texts in options for text in texts for word in (option, text)]
    return answer_of(choice, rank_after_screening(choice, preferences), selection)


def ask_todays_adapters(run: Run) -> Run:
    """Return the run with three facts for each variant: title, maturity, and partial reads (such as `take`).

    Records of old versions of Format Bench lack some of these facts. The adapters of the current version then provide
    the missing facts. Variants of plugins that are not installed stay unchanged.
    """
    described = dict(run.info.variants)
    for variant in dict.fromkeys(variant_of(sample.variant) for sample in run.samples):
        about = described.get(variant, VariantInfo())
        if variant.is_raw_io or (about.maturity is not None and about.partial_reads is not None):
            continue
        try:
            # `nulls` is a setting of the measuring code, which adapters do not accept.
            today = declared(*engine_of(variant.without("nulls")))
        except AdapterError:
            continue
        described[variant] = changed(
            about,
            title=about.title or today.title,
            maturity=about.maturity or today.maturity,
            partial_reads=today.partial_reads,
        )
    return replace(run, info=changed(run.info, variants=described))


def _of_formats(run: Run, formats: Sequence[str], formats_not: Sequence[str], *, required: bool = True) -> Run:
    """Return the run with only the variants that the patterns select.

    Baselines and raw I/O (a plain write and read of the same bytes) are also kept, for comparison. Raises PlanError for
    an invalid pattern, and RunError if the patterns select no variant although `required` is set.
    """
    if not (formats or formats_not):
        return run
    check("formats", formats)
    check("formats_not", formats_not)
    variants = {variant_of(sample.variant) for sample in run.samples}
    raw_io = {variant for variant in variants if variant.is_raw_io}
    chosen = {variant for variant in variants - raw_io if is_chosen(variant, formats, formats_not)}
    if required and not chosen:
        had = sorted({variant.format_name for variant in variants - raw_io})
        raise RunError(
            f"`formats` and `formats_not` leave no variant of {shown(run.folder)}.",
            f"The formats of the run are {', '.join(had)}.",
            parameter="formats",
            given=tuple(formats),
            allowed=had,
        )
    request = changed(run.info.request, formats=tuple(formats), formats_not=tuple(formats_not))
    kept = {*chosen, *raw_io, request.baseline or PLAIN_CSV, PLAIN_JSON_LINES}
    samples = tuple(sample for sample in run.samples if sample.variant in kept)
    return replace(run, info=changed(run.info, request=request), samples=samples)


def _questions_asked(summary: RunSummary, preferences: Preferences, datasets: Sequence[str]) -> list[Question]:
    """Return the question that the run answers about these data sets. A question is a data set with its rows and
    conditions.

    If `recommend` measured samples of two sizes, two questions are returned, one for each size. Otherwise there must be
    exactly one question in which every operation with a weight was measured. Raises RunError for none, or for several.
    """
    lacking = {
        question: [name for name in preferences.operations if not any(name in each.cells for each in candidates)]
        for question, candidates in summary.questions.items()
    }
    complete = [question for question, names in lacking.items() if not names]
    asked = [question for question in lacking if not datasets or _is_named(datasets, question.dataset)]
    found = [question for question in complete if question in asked]
    if asked and not found:
        missing = dict.fromkeys(name for question in asked for name in lacking[question])
        raise RunError(*_what_measures(summary.run, preferences, datasets, asked[0], list(missing)))
    names = {question.dataset for question in found}
    two_sizes = len(found) == len(names) == 2 and SMALLER in names
    if len(found) != 1 and not two_sizes:
        offered = [_told(question) for question in found or complete or lacking]
        fault = f"{summary.run.folder} has {len(found)} data sets or conditions, but a recommendation needs one."
        if not found:
            named = f" for `datasets={tuple(datasets)!r}`" if datasets else ""
            fault = f"{summary.run.folder} has no figures{named}."
        step = "Measure with one of these conditions only:" if len(names) == 1 else "Choose one by `datasets`:"
        raise RunError(
            fault,
            "\n  ".join([step, *offered]) if offered else "",
            parameter="datasets",
            given=tuple(datasets),
            allowed=offered,
        )
    return found


def _is_named(patterns: Sequence[str], dataset: str) -> bool:
    """Return whether one of the patterns is the data set's name, or a regular expression found in this name."""
    return any(pattern == dataset or re.search(pattern, dataset) is not None for pattern in patterns)


def _what_measures(
    run: Run, preferences: Preferences, datasets: Sequence[str], question: Question, missing: Sequence[str]
) -> tuple[str, str]:
    """Return the two parts of an error message: which figures the run lacks, and the call that measures them."""
    titles = ", ".join(preferences.title(name) for name in missing)
    wanted = "|".join(dict.fromkeys(("read", *preferences.operations)))
    kind = kind_of_target(question.conditions.target)
    suite = "access" if kind.has_columns else kind.suite
    return (
        f"{shown(run.folder)} has no figure of: {titles}.",
        f"Omit `stored`, or measure this: run {suite} {_data_of(run.info.request, datasets)} `operations={wanted!r}`",
    )


def _data_of(request: Request, datasets: Sequence[str]) -> str:
    """Return the parameters that select the same data for a new run: the user's own file, or the named data set."""
    if request.data_path is None:
        return f"`datasets={next(iter(datasets), 'events')!r}`"
    key = {} if request.key is None else {"key": request.key}
    given = {"data": request.data_path, **request.options.given(), **key}
    return " ".join(f"`{name}={value!r}`" for name, value in given.items())


def _told(question: Question) -> str:
    conditions = question.conditions
    return (
        f"{question.dataset}: {question.rows:,} rows, cache {conditions.cache}, threads {conditions.threads}, "
        f"target {conditions.target}, strings {conditions.strings}, {conditions.work_dir}, on {question.machine}"
    )


def _screening(run: Run, formats: Sequence[str], formats_not: Sequence[str]) -> Choice | None:
    """Return the screening (the first measurement on few rows) of a run of `recommend`; None if there was none."""
    folder = run.folder / SCREENING
    if not (folder / "run.json").exists():
        return None
    screened = _of_formats(read_run(folder), formats, formats_not, required=False)
    return only_choice(summary_of(ask_todays_adapters(screened)))
