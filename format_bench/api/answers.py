"""What runs say to a question: an Answer, of a run made for it or of a stored one.

It puts together what bench_runner measures and what the reports rank, weighs nothing by itself and prints nothing. It
does not know where a question comes from.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from adapters.contract import Adapter, Can, TabularFormat
from adapters.errors import AdapterError
from adapters.offers import Reach
from bench_runner.data_kinds import DataKind, kind_of_target
from bench_runner.errors import RunError
from bench_runner.plan.candidates import is_chosen
from bench_runner.plan.patterns import check
from bench_runner.registries import engine_of
from bench_runner.request import WITH_DATA, Request
from bench_runner.results import reference
from bench_runner.results.information import READ, SAVE, MaturityInfo
from bench_runner.results.records import Run, changed, read_run
from bench_runner.results.statistics import summarise
from bench_runner.run.choosing import SIFTING, SMALLER, Measured, measure_for_choice
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher
from bench_runner.variants import Variant, is_raw_io, variant_of
from format_bench.api.own_format import PLAIN, PLAIN_CSV, PLAIN_JSON_LINES
from format_bench.errors import Interrupted
from format_bench.python_lines import Lines, PartLines, lines_of, part_lines_of
from format_bench.uses import words_of
from reports.analysis.near_storage.paying import paying, sentences
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.candidates import (
    CHANGES,
    NOT_COUNTED,
    Candidate,
    Question,
    project_candidates,
    questions,
    whole_rows,
)
from reports.analysis.recommendation.preferences import STAGES, USE, Preferences
from reports.analysis.recommendation.race import contending, may_win
from reports.analysis.recommendation.recommend import Recommendation, compared, recommend
from reports.analysis.recommendation.sifting import sifted


def measured_answer(
    request: Request,
    options: Options,
    new_folder: Callable[[], Path],
    command: Sequence[str],
    watcher: Watcher,
    preferences: Preferences,
    *,
    kind: DataKind,
    budget_s: float,
) -> Answer:
    """Measure for one decision, and answer. Raises what `measure_for_choice` raises, RunError when nothing could be
    measured, and Interrupted after Ctrl-C with what is kept."""

    own = request.baseline or PLAIN[kind.name]

    def near(run: Run) -> list[str]:
        question, candidates = _only(run)
        found = _found(run, question, candidates, preferences, own, on_all_rows=False)
        return [*may_win(found), *_unknown(_chosen(run, candidates), preferences)]

    def still_near(run: Run) -> list[str]:
        question, candidates = _only(run)
        return [*contending(_found(run, question, candidates, preferences, own)), *_unknown(candidates, preferences)]

    folders: list[Path] = []

    def begun() -> Path:
        folders.append(new_folder())
        return folders[-1]

    try:
        measured = measure_for_choice(
            request,
            options,
            begun,
            command,
            watcher,
            kind=kind,
            budget_s=budget_s,
            decisive=preferences.operations,
            may_win=near,
            contending=still_near,
        )
    except KeyboardInterrupt:
        if (stopped := _stopped(folders)) is None:
            raise
        raise stopped from None
    return _answer(measured, *_only(measured.run), preferences)


def _stopped(folders: Iterable[Path]) -> Interrupted | None:
    """What is kept of a measurement that was stopped: rounds of the race, else of what was sifted before it."""
    kept = [place for folder in folders for place in (folder, folder / SIFTING) if (place / "run.json").exists()]
    for place in kept:
        if any(sample.counted for sample in read_run(place).samples):
            return Interrupted(place, f"'recommend --from {_shown(place)}' answers from it, as far as it goes")
    return Interrupted(kept[0], "no round of it was counted yet, so it answers nothing: ask again") if kept else None


def stored_answer(
    run: Run,
    preferences: Preferences,
    datasets: Sequence[str],
    formats: Sequence[str] = (),
    formats_not: Sequence[str] = (),
) -> Answer:
    """Answer from a stored run; of one that was made for a decision, as when it was made. `formats` and `formats_not`
    choose among its variants. Raises RunError when it holds several data sets or conditions and none is chosen, when it
    has no figure of something that is weighed, or no variant of those chosen."""
    run = _of_formats(run, formats, formats_not)
    everything = _with_all_weighed(run, preferences, datasets)
    found = {
        question: candidates
        for question, candidates in everything.items()
        if not datasets or any(names_dataset(pattern, question.dataset) for pattern in datasets)
    }
    of_one_table = {question.dataset for question in found} - {SMALLER}
    if len(found) == 2 and len(of_one_table) == 1 and SMALLER in {question.dataset for question in found}:
        question, candidates = _only(run)
    elif len(found) == 1:
        ((question, candidates),) = found.items()
    else:
        offered = "\n".join(f"  {_told(question)}" for question in found or everything)
        raise RunError(
            f"{run.folder}: a recommendation is about one data set under one set of conditions; name it by --datasets"
            f"\n{offered}"
        )
    sifting = run.folder / SIFTING
    first = None
    if (sifting / "run.json").exists():
        first = _of_formats(read_run(sifting), formats, formats_not, required=False)
    words = [word for text in formats for word in ("--formats", text)]
    words += [word for text in formats_not for word in ("--formats-not", text)]
    return _answer(Measured(run, first), question, candidates, preferences, datasets, words)


def _of_formats(run: Run, formats: Sequence[str], formats_not: Sequence[str], *, required: bool = True) -> Run:
    """The run without the variants that these patterns leave out; what the user has now stays, to be compared. Raises
    RunError where nothing is left, if that is `required`, and PlanError for a pattern that is none."""
    if not (formats or formats_not):
        return run
    check("--formats", formats)
    check("--formats-not", formats_not)
    variants = dict.fromkeys(sample.variant for sample in run.samples if not is_raw_io(sample.variant))
    chosen = {variant for variant in variants if is_chosen(variant, formats, formats_not)}
    if required and not chosen:
        names = sorted({variant_of(each).format_name for each in variants})
        had = f"it has: {', '.join(names)}"
        raise RunError(f"--formats, --formats-not: leave nothing of {_shown(run.folder)}\n  {had}")
    request = changed(run.info.request, formats=tuple(formats), formats_not=tuple(formats_not))
    kept = {*chosen, request.baseline or PLAIN_CSV, PLAIN_JSON_LINES}
    samples = tuple(sample for sample in run.samples if sample.variant in kept or is_raw_io(sample.variant))
    return replace(run, info=changed(run.info, request=request), samples=samples)


def _with_all_weighed(run: Run, preferences: Preferences, datasets: Sequence[str]) -> dict[Question, list[Candidate]]:
    """The questions of a run in which somebody has a time of each operation that is weighed. Raises RunError where
    there is none, with what measures it."""
    everything = _questions(run)
    missing = {
        question: [name for name in preferences.operations if not any(name in each.cells for each in candidates)]
        for question, candidates in everything.items()
    }
    asked = [
        question
        for question in everything
        if not datasets or any(names_dataset(pattern, question.dataset) for pattern in datasets)
    ]
    if not asked or not all(missing[question] for question in asked):
        return {question: candidates for question, candidates in everything.items() if not missing[question]}
    lacking = dict.fromkeys(name for question in asked for name in missing[question])
    titles = ", ".join(preferences.title(name) for name in lacking)
    wanted = "|".join(dict.fromkeys(("read", *preferences.operations)))
    kind = kind_of_target(asked[0].conditions.target)
    suite = "access" if kind.has_columns else kind.suite
    raise RunError(
        f"{_shown(run.folder)}: has no figure of: {titles}\n"
        f"  measure it: run {suite} {_data_of(run.info.request, datasets)} --operations {shlex.quote(wanted)}, "
        "or ask without --from"
    )


def _data_of(request: Request, datasets: Sequence[str]) -> str:
    """The options that measure the same data: the user's own file, or the data set that is asked about."""
    if request.data_path is None:
        return f"--datasets {shlex.quote(next(iter(datasets), 'events'))}"
    key = f" --key {shlex.quote(request.key)}" if request.key is not None else ""
    return shlex.join(["--data", request.data_path, *request.options.words()]) + key


def _unknown(candidates: Iterable[Candidate], preferences: Preferences) -> Iterator[str]:
    """Those of which nothing that decides was counted, though it did not fail: the machine was not at rest."""
    for candidate in candidates:
        if candidate.unknown or any(candidate.lacks(name) == NOT_COUNTED for name in preferences.operations):
            yield candidate.variant


def names_dataset(pattern: str, dataset: str) -> bool:
    """Whether a data set is what a user calls by its name or by a regular expression of it."""
    return pattern == dataset or re.search(pattern, dataset) is not None


def _told(question: Question) -> str:
    conditions = question.conditions
    return (
        f"{question.dataset}: {question.rows:,} rows, cache {conditions.cache}, threads {conditions.threads}, "
        f"target {conditions.target}, strings {conditions.strings}, {conditions.work_dir}, on {question.machine}"
    )


# --- what was measured -------------------------------------------------------------------------------------------


def _questions(run: Run) -> dict[Question, list[Candidate]]:
    """All candidates of a run by question. Earlier versions did not tell how far a format has come: what its adapter
    says today stands for it. Where a run has both, what was read through a service is no format to choose."""
    found = {
        question: [_described(candidate) for candidate in candidates] for question, candidates in questions(run).items()
    }
    local = {question: candidates for question, candidates in found.items() if not question.conditions.network}
    return local or found


def _described(candidate: Candidate) -> Candidate:
    try:
        engine, settings = engine_of(candidate.variant)
        candidate = replace(candidate, capabilities=_able(candidate.capabilities, engine, settings))
    except AdapterError:
        # Of a plugin that is not installed here nobody knows.
        return candidate
    if candidate.maturity is not None:
        return candidate
    told = engine.maturity
    maturity = MaturityInfo(stage=told.stage.value, reason=told.reason, ours=told.ours)
    return replace(candidate, title=candidate.title or engine.title, maturity=maturity)


def _able(told: frozenset[str] | None, engine: type[Adapter], settings: Mapping[str, str]) -> frozenset[str] | None:
    """What the run tells that a variant can do, with what its adapter has calls for: what of these costs a part of the
    whole, times tell where there are any."""
    if told is None or not issubclass(engine, TabularFormat):
        return told
    offers = engine({name: value for name, value in settings.items() if name != "nulls"}).offers
    calls = {"random-access": offers.take is Reach.ROWS, "pushdown": bool(offers.scan)}
    return told | {name for name, offered in calls.items() if offered}


def _only(run: Run) -> tuple[Question, list[Candidate]]:
    """The question of a run that was made for one decision; of a sample, projected to the whole table."""
    found = dict(sorted(_questions(run).items(), key=lambda each: -each[0].rows))
    if not found:
        raise RunError(f"{run.folder}: nothing was measured, so there is nothing to recommend")
    question, candidates = next(iter(found.items()))
    rows = whole_rows(run, question.dataset)
    if rows is None or len(found) < 2:
        return question, candidates
    smaller, fewer = list(found.items())[-1]
    return question, project_candidates(candidates, fewer, (smaller.rows, question.rows, rows))


def _found(
    run: Run,
    question: Question,
    candidates: Sequence[Candidate],
    preferences: Preferences,
    baseline: str,
    left_out: Iterable[tuple[Variant, str]] = (),
    *,
    on_all_rows: bool = True,
) -> Recommendation:
    about = run.info.datasets.get(question.dataset)
    held_bytes = about.size_bytes if about else 0
    kept, dropped = sifted(_chosen(run, candidates), preferences, held_bytes, on_all_rows=on_all_rows)
    now = next((candidate for candidate in candidates if candidate.variant == baseline), None)
    return recommend(kept, [*dropped, *left_out], preferences, now)


def _users_own(measured: Measured) -> str | None:
    """What the user has now, as the runs tell: the second one does not where it was too dear for it."""
    told = measured.run.info.request.baseline
    return told or (measured.sifting.info.request.baseline if measured.sifting is not None else None)


def _with_baseline(
    found: Recommendation, measured: Measured, preferences: Preferences, baseline: str
) -> Recommendation:
    """Where the baseline was measured on few rows alone, it is compared there."""
    if found.baseline is not None or measured.sifting is None or not found.ranked:
        return found
    question, candidates = _only(measured.sifting)
    by_variant = {candidate.variant: candidate for candidate in candidates}
    now, first = by_variant.get(variant_of(baseline)), by_variant.get(found.ranked[0].candidate.variant)
    if now is None or first is None or not first.rounds:
        return found
    told = compared(now, first, preferences)
    return replace(found, baseline=replace(told, values={}, score=None, rows=question.rows))


def _chosen(run: Run, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that the user's patterns leave in, or the part before: the baseline takes part without."""
    request = run.info.request
    return [
        candidate
        for candidate in candidates
        if candidate.variant not in (request.baseline, PLAIN_CSV)
        or is_chosen(candidate.variant, request.formats, request.formats_not)
    ]


def _left_out(measured: Measured, preferences: Preferences) -> list[tuple[Variant, str]]:
    """What the first part left out, and why."""
    if measured.sifting is None:
        return []
    question, candidates = _only(measured.sifting)
    found = _found(measured.sifting, question, candidates, preferences, PLAIN_CSV, on_all_rows=False)
    second = {candidate.variant for candidate in _chosen(measured.run, _only(measured.run)[1])}
    slower = [
        (each.candidate.variant, f"behind: at {question.rows:,} rows its score was {each.score:.1f} times the best's")
        for each in (*found.ranked, *found.not_accepted)
        if each.candidate.variant not in second
    ]
    return [*((variant, reason) for variant, reason in found.dropped if variant not in second), *slower]


# --- what to say of it -------------------------------------------------------------------------------------------


def _answer(
    measured: Measured,
    question: Question,
    candidates: Sequence[Candidate],
    preferences: Preferences,
    datasets: Sequence[str] = (),
    more_words: Sequence[str] = (),
) -> Answer:
    run = measured.run
    own = _users_own(measured)
    baseline = own or PLAIN[kind_of_target(question.conditions.target).name]
    found = _found(run, question, candidates, preferences, baseline, _left_out(measured, preferences))
    found = _with_baseline(found, measured, preferences, baseline)
    key = run.info.request.key or "id"
    lines = _lines(found, question.conditions.target, key)
    parts = tuple(_part_lines(found, question.conditions.target, key))
    return Answer(
        question=question,
        found=found,
        remarks=tuple(_remarks(run)),
        imports=tuple(sorted({*lines.imports, *(each for _, part in parts for each in part.imports)})),
        save=lines.save,
        read=lines.read,
        about=_about(run, question),
        yours=own is not None,
        cautions=tuple(_cautions(found)),
        folder=_shown(run.folder),
        # The suites of the reference run bear the name of one machine, and are of several.
        processor=run.info.machine.cpu or "" if run.folder.is_relative_to(reference.PLACE) else "",
        again=_again(run, preferences, datasets, more_words),
        remote=tuple(_remote(run, question, preferences)),
        parts=tuple((f"{title} ({part.needs})", "\n".join(part.lines)) for title, part in parts),
    )


def _remote(run: Run, question: Question, preferences: Preferences) -> Iterator[str]:
    """From which selectivity reading near the storage beats fetching the files: as far as the run tells. Whoever names
    a bandwidth and has no such run learns what measures it."""
    bandwidth = preferences.bandwidth_bytes_per_s
    found = list(sentences(paying(summarise(run.samples), bandwidth, (question.dataset,))))
    if not found and bandwidth is not None and kind_of_target(question.conditions.target).has_columns:
        yield (
            "'run near-storage' measures from which selectivity on filtering there beats fetching the files; then ask "
            "by --from RUN"
        )
    yield from found


def _shown(folder: Path) -> str:
    """As the user would write it: from here on, where it lies below."""
    if folder.is_relative_to(reference.PLACE):
        return reference.NAME
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)


def _again(run: Run, preferences: Preferences, datasets: Sequence[str], more_words: Sequence[str]) -> str:
    """The words that ask the same of the stored run."""
    usual = Preferences()
    words = ["recommend", "--from", _shown(run.folder)]
    words += [word for name in datasets for word in ("--datasets", name)]
    words += more_words
    if preferences.uses:
        words += ["--use", ", ".join(map(words_of, preferences.uses))]
    if preferences.weights != (dict.fromkeys([USE], 1.0) if preferences.uses else usual.weights):
        words += ["--prefer", ",".join(f"{name}={weight:g}" for name, weight in preferences.weights.items())]
    if preferences.needs:
        words += ["--need", ",".join(preferences.needs)]
    for option, number in (
        ("--max-memory", preferences.max_memory_bytes),
        ("--reads-per-save", preferences.reads_per_save),
        ("--bandwidth", preferences.bandwidth_bytes_per_s),
    ):
        # Not as 2e+08, which no option reads.
        words += [] if number is None else [option, f"{number:.12f}".rstrip("0").rstrip(".")]
    if preferences.accept != usual.accept:
        words += ["--accept", preferences.accept]
    return shlex.join(words)


def _about(run: Run, question: Question) -> str:
    """What the user calls the data."""
    asked = run.info.request
    named = asked.data_title or (asked.data.name if asked.data is not None else None)
    return named if named and question.dataset.partition("[")[0] in WITH_DATA else question.dataset


def _cautions(found: Recommendation) -> Iterable[str]:
    """What a user of the recommended variant should know, beyond figures."""
    if not found.ranked:
        return
    first = found.ranked[0].candidate
    if first.maturity is not None and first.stage != STAGES[0]:
        yield f"{first.stage}{', ours' if first.maturity.ours else ''}: {first.maturity.reason}"
    if first.losses:
        yield f"{CHANGES}, as everything does that may be recommended: {'; '.join(first.losses)}"
    able = first.capabilities
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


def _lines(found: Recommendation, target: str, key: str) -> Lines:
    if not found.ranked:
        return Lines((), "", "")
    try:
        return lines_of(found.ranked[0].candidate.variant, target, key)
    except AdapterError:
        # A run of a plugin that is not installed here.
        return Lines((), "", "")


def _part_lines(found: Recommendation, target: str, key: str) -> Iterator[tuple[str, PartLines]]:
    """Of everything that is weighed beside saving and reading all, in words, with its lines."""
    for operation in found.preferences.operations if found.ranked else ():
        if operation not in (SAVE, READ):
            try:
                lines = part_lines_of(found.ranked[0].candidate.variant, target, operation, key)
            except AdapterError:
                return
            yield found.preferences.title(operation), lines


def _remarks(run: Run) -> list[str]:
    """How the figures come about where they are not as measured, and what the run warned of."""
    sizes = sorted({question.rows for question in questions(run)})
    datasets = {question.dataset for question in questions(run)}
    whole = next((rows for name in datasets if (rows := whole_rows(run, name)) is not None), None)
    told = []
    if whole is not None and len(sizes) == 2:
        told.append(
            f"figures are projected to all {whole:,} rows, by the line through {sizes[0]:,} and {sizes[1]:,} rows of a "
            "sample; what grows otherwise beyond it (memory that runs out) it does not know"
        )
    elif whole is not None:
        told.append(f"figures are of a sample of {sizes[-1]:,} of all {whole:,}, and not projected to all of them")
    return [*told, *(f"warning: {each.text}" for each in run.info.warnings)]
