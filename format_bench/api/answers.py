"""What runs say to a question: an Answer, of a run made for it or of a stored one.

It puts together what bench_runner measures and what the reports rank, weighs nothing by itself and prints nothing. It
does not know where a question comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from adapters.contract import Can
from adapters.errors import AdapterError
from bench_runner.errors import RunError
from bench_runner.plan.request import Request
from bench_runner.results.records import Run
from bench_runner.run.choosing import Measured, measure_for_choice
from bench_runner.run.session import Options, Watcher
from format_bench.python_lines import Lines, lines_of
from reports.analysis.recommendation.candidates import Candidate, Question, projected, questions, sifted, whole_rows
from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.recommend import Ranked, Recommendation, contending, may_win, recommend
from reports.text.recommendation import Answer


def measured_answer(
    request: Request,
    options: Options,
    new_folder: Callable[[], Path],
    command: Sequence[str],
    watcher: Watcher,
    preferences: Preferences,
    *,
    images: bool,
    budget_s: float,
) -> Answer:
    """Measure for one decision, and answer. Raises what `measure_for_choice` raises, and RunError when nothing could be
    measured."""

    def asked(run: Run, chosen: Callable[[Recommendation], Iterable[Ranked]]) -> list[str]:
        question, candidates = _only(run)
        kept, _ = _sifted(run, question, candidates, preferences)
        near = [ranked.candidate.variant for ranked in chosen(recommend(kept, (), preferences))]
        return [*near, *(candidate.variant for candidate in candidates if candidate.unknown)]

    measured = measure_for_choice(
        request,
        options,
        new_folder,
        command,
        watcher,
        images=images,
        budget_s=budget_s,
        may_win=lambda run: asked(run, may_win),
        contending=lambda run: asked(run, contending),
    )
    return _answer(measured.run, *_only(measured.run), preferences, left_out=_left_out(measured, preferences))


def stored_answer(run: Run, preferences: Preferences, datasets: Sequence[str]) -> Answer:
    """Answer from a stored run. Raises RunError when it holds several data sets or conditions and none is chosen."""
    everything = questions(run)
    found = {
        question: candidates
        for question, candidates in everything.items()
        if not datasets or any(_names(pattern, question.dataset) for pattern in datasets)
    }
    if len(found) != 1:
        offered = "\n".join(f"  {_told(question)}" for question in found or everything)
        raise RunError(
            f"{run.folder}: a recommendation is about one data set under one set of conditions; name it by --datasets"
            f"\n{offered}"
        )
    ((question, candidates),) = found.items()
    return _answer(run, question, candidates, preferences, left_out=())


def _names(pattern: str, dataset: str) -> bool:
    return pattern == dataset or re.search(pattern, dataset) is not None


def _told(question: Question) -> str:
    conditions = question.conditions
    return (
        f"{question.dataset}: {question.rows:,} rows, cache {conditions.cache}, threads {conditions.threads}, "
        f"target {conditions.target}, strings {conditions.strings}, {conditions.work_dir}, on {question.machine}"
    )


def _only(run: Run) -> tuple[Question, list[Candidate]]:
    """The question of a run that was made for one decision; of a sample, projected to the whole table."""
    found = dict(sorted(questions(run).items(), key=lambda each: -each[0].rows))
    if not found:
        raise RunError(f"{run.folder}: nothing was measured, so there is nothing to recommend")
    question, candidates = next(iter(found.items()))
    rows = whole_rows(run, question.dataset)
    if rows is None or len(found) < 2:
        return question, candidates
    smaller, fewer = list(found.items())[-1]
    return question, projected(candidates, question.rows, fewer, smaller.rows, rows)


def _sifted(
    run: Run, question: Question, candidates: Iterable[Candidate], preferences: Preferences
) -> tuple[list[Candidate], list[tuple[str, str]]]:
    return sifted(candidates, preferences, _held_bytes(run, question.dataset))


def _held_bytes(run: Run, dataset: str) -> int:
    about = run.info.datasets.get(dataset)
    return about.size_bytes if about else 0


def _left_out(measured: Measured, preferences: Preferences) -> list[tuple[str, str]]:
    """What the first part left out, and why."""
    if measured.sifting is None:
        return []
    question, candidates = _only(measured.sifting)
    kept, dropped = _sifted(measured.sifting, question, candidates, preferences)
    second = {candidate.variant for candidate in _only(measured.run)[1]}
    found: Recommendation = recommend(kept, (), preferences)
    slower = [
        (each.candidate.variant, f"at {question.rows:,} rows its score was {each.score:.1f} times the best's")
        for each in found.ranked
        if each.candidate.variant not in second
    ]
    return [*((variant, reason) for variant, reason in dropped if variant not in second), *slower]


def _answer(
    run: Run,
    question: Question,
    candidates: Sequence[Candidate],
    preferences: Preferences,
    *,
    left_out: Iterable[tuple[str, str]],
) -> Answer:
    kept, dropped = _sifted(run, question, candidates, preferences)
    found = recommend(kept, [*dropped, *left_out], preferences)
    lines = _lines(found, question.conditions.target)
    remarks = (*_cautions(found), *_remarks(run))
    return Answer(question, found, remarks, lines.imports, lines.save, lines.read)


def _cautions(found: Recommendation) -> Iterable[str]:
    """What a user of the recommended variant should know, beyond figures."""
    able = found.ranked[0].candidate.capabilities if found.ranked else None
    if able is None:
        return
    if Can.OTHER_LANGUAGES.value not in able:
        yield (
            "programs in other languages do not read such files: where they have to, ask with "
            f"--need {Can.OTHER_LANGUAGES.value}"
        )
    if Can.NO_PICKLE.value not in able:
        yield (
            "reading a pickle runs code that is in the file: read your own alone, and for files that others may write "
            f"ask with --need {Can.NO_PICKLE.value}"
        )


def _lines(found: Recommendation, target: str) -> Lines:
    if not found.ranked:
        return Lines((), "", "")
    try:
        return lines_of(found.ranked[0].candidate.variant, target)
    except AdapterError:
        # A run of a plugin that is not installed here.
        return Lines((), "", "")


def _remarks(run: Run) -> list[str]:
    """Where the samples lie, and what the run warned of."""
    sizes = sorted({question.rows for question in questions(run)})
    datasets = {question.dataset for question in questions(run)}
    whole = next((rows for name in datasets if (rows := whole_rows(run, name)) is not None), None)
    told = []
    if whole is not None and len(sizes) == 2:
        told.append(
            f"figures are projected to all {whole:,} rows, by the line through {sizes[0]:,} and {sizes[1]:,} rows of a "
            "sample; what grows otherwise beyond it (memory that runs out) it does not know"
        )
    told += [f"warning: {each.text}" for each in run.info.warnings]
    return [f"all samples: {run.folder}", *told]
