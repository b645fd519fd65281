"""Make a recommendation by measuring. First screen all candidates (the variants that may be recommended) on few rows,
then measure the best ones on more rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench_runner.data_kinds import DataKind
from bench_runner.request import Request
from bench_runner.results.records import Run, read_run
from bench_runner.run.choosing import SCREENING, measure_for_choice
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher
from bench_runner.variants import Variant
from data_generator.dataset import Dataset
from format_bench.api.ranking import Choice, only_choice, rank, rank_after_screening, uncounted
from format_bench.api.suggestion import answer_of, shown
from format_bench.errors import Interrupted
from format_bench.within.advice import advice_of
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.candidates import summary_of
from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.race import contending, may_win


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
    propose: Callable[[Dataset, Path], Sequence[str]] | None = None,
) -> Answer:
    """Measure the candidates and return the answer.

    `new_folder` makes the result folder. `propose`, if given, is called with the data set and this folder, and returns
    the variants to measure; there is then no screening. Raises RunError if nothing could be measured, Interrupted with
    the result folder after Ctrl-C, and the errors of `measure_for_choice`.
    """
    folders: list[Path] = []
    screening: Choice | None = None

    def begun() -> Path:
        folders.append(new_folder())
        return folders[-1]

    def screened(run: Run) -> list[Variant]:
        nonlocal screening
        screening = only_choice(summary_of(run))
        found = rank(screening, preferences, on_all_rows=False)
        return [*may_win(found), *uncounted(screening.chosen, preferences)]

    def still_contending(run: Run) -> list[Variant]:
        choice = only_choice(summary_of(run), screening)
        found = rank(choice, preferences)
        left = [*contending(found), *uncounted(choice.candidates, preferences)]
        advice = advice_of(run.folder, found)
        compared = () if advice is None else (row.change.variant for row in advice.rows)
        # The advice compares these variants with the best one, so they need as many rounds.
        return list(dict.fromkeys((*left[:1], *compared, *left)))

    try:
        run = measure_for_choice(
            request,
            options,
            begun,
            command,
            watcher,
            kind=kind,
            budget_s=budget_s,
            decisive=preferences.operations,
            may_win=screened,
            contending=still_contending,
            propose=propose,
        )
    except KeyboardInterrupt:
        if (stopped := _stopped(folders)) is None:
            raise
        raise stopped from None
    choice = only_choice(summary_of(run), screening)
    return answer_of(choice, rank_after_screening(choice, preferences))


def _stopped(folders: Iterable[Path]) -> Interrupted | None:
    """Return the error for an interrupted measurement; None if nothing was stored.

    The error names the folder from which an answer can be made. This is the folder of the main measurement if at least
    one of its rounds counts, otherwise the folder of the screening (the first measurement on few rows).
    """
    kept = [place for folder in folders for place in (folder, folder / SCREENING) if (place / "run.json").exists()]
    for place in kept:
        if any(sample.counted for sample in read_run(place).samples):
            return Interrupted(
                place, f"To get an answer from it, as far as it goes: recommend with `stored={shown(place)!r}`."
            )
    return Interrupted(kept[0], "No round was counted yet, so it holds no answer. Start again.") if kept else None
