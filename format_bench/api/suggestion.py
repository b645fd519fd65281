"""Make the `Answer` from a ranking: add lines of Python, cautions, remarks, and the command that repeats the answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapters.contract import Can
from adapters.errors import AdapterError
from bench_runner.data_kinds import kind_of_target
from bench_runner.registries import build
from bench_runner.request import WITH_DATA
from bench_runner.results import reference
from bench_runner.results.information import READ, SAVE
from bench_runner.variants import Variant, operation_name_of, variant_of
from data_generator.imported.refusal import printable
from format_bench.api.ranking import Choice
from format_bench.python_lines import Lines, PartLines, lines_of, part_lines_of
from format_bench.uses import words_of
from format_bench.within.advice import advice_of, written_lines
from reports.analysis.near_storage.break_even import break_evens, sentences
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.candidates import CHANGES, RunSummary, whole_rows
from reports.analysis.recommendation.preferences import OF_DOCUMENTS, STAGES, USE, Preferences
from reports.analysis.recommendation.recommend import Recommendation


def answer_of(choice: Choice, found: Recommendation, selection: Sequence[str] = ()) -> Answer:
    """Return the answer for a ranking.

    `selection` are the command-line words that selected the data set and the variants from a stored run.
    """
    run, target = choice.summary.run, choice.question.conditions.target
    key = run.info.request.key or "id"
    advice = advice_of(run.folder, found)
    first = advice.advised.change.variant if advice is not None else None
    lines, parts = _lines(found, target, key, first)
    if advice is not None and advice.advised.change.arguments:
        lines = written_lines(advice.advised.change, target)
    return Answer(
        question=choice.question,
        found=found,
        remarks=(*_conditions_of_documents(choice, found), *_remarks(choice.summary)),
        imports=tuple(sorted({*lines.imports, *(each for _, part in parts for each in part.imports)})),
        save=lines.save,
        read=lines.read,
        about=_about(choice),
        yours=choice.own is not None,
        cautions=tuple(_cautions(found)),
        folder=shown(run.folder),
        # The runs that the package includes share one machine name, but were measured on several machines.
        processor=run.info.machine.cpu or "" if run.folder.is_relative_to(reference.PLACE) else "",
        again=shlex.join(
            ["format-bench", "recommend", "--from", shown(run.folder), *selection, *_wishes(found.preferences, target)]
        ),
        convert=_conversion(choice, found, first),
        within=advice,
        remote=tuple(_remote(choice, found.preferences)),
        parts=tuple(
            (f"{title} ({part.needs})" if part.needs else title, "\n".join(part.lines)) for title, part in parts
        ),
    )


def _conversion(choice: Choice, found: Recommendation, advised: Variant | None) -> str:
    """Return the command that stores the user's whole table in the recommended variant. Return '' if there is no such
    command: for data other than the user's file, and for a variant that sorts the rows."""
    asked = choice.summary.run.info.request
    path, kind = asked.data_path, kind_of_target(choice.question.conditions.target)
    if not found.ranked or path is None or asked.data_title is not None or not kind.has_columns:
        return ""
    # `nulls` is a setting of the measuring code.
    variant = str((advised or found.ranked[0].candidate.variant).without("nulls"))
    if variant_of(variant).settings.get("order") is not None:
        return ""
    try:
        suffix = build(variant).suffix
    except AdapterError:
        # The variant belongs to a plugin that is not installed here.
        return ""
    out = Path(path).name.partition(".")[0] + suffix
    return shlex.join(["format-bench", "convert", path, out, "--as", variant, *asked.options.words()])


def shown(folder: Path) -> str:
    """Return a folder as a user would write it: 'reference' for runs that the package includes, or a path. A path below
    the current folder is shortened to a relative path."""
    if folder.is_relative_to(reference.PLACE):
        return reference.NAME
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)


def _lines(
    found: Recommendation, target: str, key: str, advised: Variant | None
) -> tuple[Lines, list[tuple[str, PartLines]]]:
    """Return the lines of Python for the variant `advised`; if it is None, for the recommended variant.

    The first result saves and reads all data. The second has (title, lines) for each other operation with a weight.
    """
    if not found.ranked:
        return Lines((), "", ""), []
    first, wish = advised or found.ranked[0].candidate.variant, found.preferences
    parts = (operation for operation in wish.operations if operation not in (SAVE, READ))
    try:
        lines = lines_of(first, target, key)
        return lines, [(wish.title(operation), part_lines_of(first, target, operation, key)) for operation in parts]
    except AdapterError:
        # The variant belongs to a plugin that is not installed here.
        return Lines((), "", ""), []


def _conditions_of_documents(choice: Choice, found: Recommendation) -> Iterator[str]:
    """Yield notes on how documents were measured: the questions that were derived from the user's fields, in words, and
    the stores that answered from their own memory."""
    about = choice.summary.run.info.datasets.get(choice.question.dataset)
    asked = [name for name in found.preferences.operations if operation_name_of(name).name == "ask"]
    if about is not None and about.questions and asked:
        yield f"questions, from your fields: {printable('; '.join(about.questions))}"
    if not kind_of_target(choice.question.conditions.target).counts_own_memory:
        return
    shown_there = [each.candidate for each in (*found.ranked, *found.not_accepted)]
    own = {
        each.variant.format_name: None
        for each in shown_there
        if any(map(each.answers_from_memory, found.preferences.operations))
    }
    if own:
        yield (
            "stores stay open, and their data are in memory: in the page cache, or in the store's own memory "
            f"({', '.join(own)}); --cache cold measures the first call from the device"
        )


def _remarks(summary: RunSummary) -> Iterator[str]:
    """Yield the run's warnings. If only a sample of the rows was measured, first yield a sentence on how the figures
    relate to all rows."""
    sizes = sorted({question.rows for question in summary.questions})
    datasets = {question.dataset for question in summary.questions}
    whole = next((rows for name in datasets if (rows := whole_rows(summary.run, name)) is not None), None)
    if whole is not None and len(sizes) == 2:
        yield (
            f"figures are projected to all {whole:,} rows by a straight line through samples of {sizes[0]:,} and "
            f"{sizes[1]:,} rows; effects that begin only with more rows (memory runs out, say) are not foreseen"
        )
    elif whole is not None:
        yield f"figures are for a sample of {sizes[-1]:,} of {whole:,} rows; they are not projected to all rows"
    yield from (f"warning: {each.text}" for each in summary.run.info.warnings)


def _about(choice: Choice) -> str:
    """Return the name of the data for the answer: the name of the user's file or table, or of the built-in data set."""
    asked, dataset = choice.summary.run.info.request, choice.question.dataset
    named = asked.data_title or (asked.data.name if asked.data is not None else None)
    return named if named and operation_name_of(dataset).name in WITH_DATA else dataset


def _cautions(found: Recommendation) -> Iterator[str]:
    """Yield warnings about disadvantages of the recommended variant that the figures do not show."""
    if not found.ranked:
        return
    first = found.ranked[0].candidate
    if first.maturity is not None and first.stage != STAGES[0]:
        yield f"this format is {first.stage}{' and ours' if first.maturity.ours else ''}: {first.maturity.reason}"
    if first.losses:
        yield (f"this format {CHANGES}, as do all others that may be recommended: {'; '.join(first.losses)}")
    able = first.capabilities
    if able is None:
        return
    if Can.OTHER_LANGUAGES.value not in able:
        yield (
            "only Python reads files of this format: if other programs must read them, add "
            f"--need {Can.OTHER_LANGUAGES.value}"
        )
    if Can.NO_PICKLE.value not in able:
        yield (
            "reading a pickle runs code from the file: read only files that you wrote; if others may write them, add "
            f"--need {Can.NO_PICKLE.value}"
        )


def _wishes(preferences: Preferences, target: str) -> Iterator[str]:
    """Yield the command-line words that request these preferences for data of this target."""
    usual = Preferences()
    weights = OF_DOCUMENTS if kind_of_target(target).has_key else usual.weights
    weights = {USE: 1.0} if preferences.uses else weights
    if preferences.uses:
        yield from ("--use", ", ".join(map(words_of, preferences.uses)))
    if preferences.weights != weights:
        yield from ("--prefer", ",".join(f"{name}={weight:g}" for name, weight in preferences.weights.items()))
    if preferences.needs:
        yield from ("--need", ",".join(preferences.needs))
    for option, number in (
        ("--max-memory", preferences.max_memory_bytes),
        ("--reads-per-save", preferences.reads_per_save),
        ("--bandwidth", preferences.bandwidth_bytes_per_s),
    ):
        if number is not None:
            # Without an exponent (2e+08), which the options do not accept.
            yield from (option, f"{number:.12f}".rstrip("0").rstrip("."))
    if preferences.accept != usual.accept:
        yield from ("--accept", preferences.accept)


def _remote(choice: Choice, preferences: Preferences) -> Iterator[str]:
    """Yield sentences on when filtering near the storage is faster than fetching the files. The limit is a selectivity,
    the share of row groups that a query has to read.

    If the run did not measure this but a bandwidth is given, yield the command that measures it.
    """
    bandwidth, dataset = preferences.bandwidth_bytes_per_s, choice.question.dataset
    found = list(sentences(break_evens(choice.summary.cells, bandwidth, (dataset,))))
    if not found and bandwidth is not None and kind_of_target(choice.question.conditions.target).has_columns:
        yield (
            "'run near-storage' measures from which selectivity on filtering there beats fetching the files; then use "
            "--from RUN"
        )
    yield from found
