"""A run of many uses: the fastest format for each use, short times as '<', and unranked figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from bench_runner.results.records import Failure, Run, Sample, changed
from docs._generate import findings
from docs._generate.reference import Reference
from reports.analysis.access.uses import USES_MEANING, Use, uses_of
from reports.analysis.columns import Role
from reports.analysis.tables import Table, tables
from reports.pdf.pages import uses_pages
from reports.site.pages import write_site
from reports.text.page import WIDTH
from tests.reports.factory import PROJECT_10, make_run
from tests.reports.pdf_text import written_on
from tests.reports.terminal_text import shown

TAKE, ONE, SCAN = "take[rows=100,handle=kept]", "take[rows=1,handle=kept]", "scan[selectivity=0.01,kind=range]"
APPEND = "append[rows=1000]"


def same(sample: Sample) -> Sample:
    return sample


def run_of(change: Callable[[Sample], Sample] = same, rounds: int = 5) -> Run:
    """Return a run of save, read, and five further operations on one table. These have the same times as the
    projection."""
    made = make_run(datasets=("eq",), tracks=("plain",), rounds=rounds, seed=1, project=True)
    more = [
        changed(sample, operation=operation)
        for sample in made.samples
        for operation in (TAKE, ONE, SCAN, APPEND)
        if sample.operation == PROJECT_10
    ]
    return replace(made, samples=tuple(change(sample) for sample in (*made.samples, *more)))


def use_of(run: Run, start: str) -> Use:
    (table,) = tables(run)
    return next(use for use in uses_of(run, table) if use.title.startswith(start))


def test_each_use_names_the_fastest_and_what_comes_next() -> None:
    run = run_of()
    (table,) = tables(run)
    titles = [use.title for use in uses_of(run, table)]
    assert "save" not in titles
    assert len(titles) == 6
    use = use_of(run, TAKE)
    column = table.columns.find(TAKE, Role.TIME)
    assert column is not None
    ranks = list(table.ranks(column))
    labels = {row.variant: row.label for row in table.rows}
    assert use.best.startswith(f"{labels[ranks[0]]} ")
    assert use.others.startswith(f"{labels[ranks[1]]} ")


def test_whole_reads_are_named_where_they_are_faster_than_every_call_for_the_use() -> None:
    def hurried(sample: Sample) -> Sample:
        if sample.operation == TAKE and sample.fallback and sample.figures:
            return changed(sample, figures={**sample.figures, "wall_ns": 1_000})
        return sample

    use = use_of(run_of(hurried), TAKE)
    assert use.others.startswith("reading everything with pickle ")
    assert "pickle" not in use.best
    assert "reading everything" not in use_of(run_of(hurried), SCAN).others


def whole_in(*wall_ms: float, fallback: str = "read-all") -> Callable[[Sample], Sample]:
    """Return a change of samples that sets the times of TAKE.

    Feather's call takes 10 ms, pickle's fallback takes these times by round, and all others take longer."""

    def taking(sample: Sample) -> Sample:
        if sample.operation != TAKE or not sample.figures:
            return sample
        wall_ms_of = {"feather": 10.0, "pickle": wall_ms[sample.round - 1]}
        name = sample.variant.partition("[")[0] if "mapped" not in sample.variant else ""
        figures = {**sample.figures, "wall_ns": int(wall_ms_of.get(name, 50.0) * 1e6)}
        return changed(sample, figures=figures, fallback=sample.fallback and fallback)

    return taking


def test_where_most_have_no_figure_none_is_the_fastest() -> None:
    def busy(counted: int, operation: str = TAKE) -> Run:
        """Return a run from a machine on which the takes of only this number of variants count."""
        run = run_of()
        (table,) = tables(run)
        own = [row.variant for row in table.rows if not row.fallback(TAKE) and row.variant in _ranked(table)]
        left_out = own[counted:]
        samples = (changed(each, unsettled=each.unsettled or _is(each, operation, left_out)) for each in run.samples)
        return replace(run, samples=tuple(samples))

    def _ranked(table: Table) -> set[str]:
        column = table.columns.find(TAKE, Role.TIME)
        assert column is not None
        return set(table.ranks(column))

    def _is(sample: Sample, operation: str, variants: list[str]) -> bool:
        return sample.operation == operation and sample.variant in variants

    total = len(_ranked(tables(run_of())[0]))
    assert total >= 4
    few = use_of(busy(1), TAKE)
    assert (few.best, few.others) == (f"only 1 of {total} variants counted", "")
    assert use_of(busy(1), ONE).best == use_of(run_of(), ONE).best
    most = use_of(busy(total - 1), TAKE)
    assert "only" not in most.best
    assert most.others.endswith(f" ({total - 1} of {total} counted)")
    assert "counted" not in use_of(run_of(), TAKE).others


def test_too_few_rounds_are_never_called_slower() -> None:
    for rounds, marked in ((3, True), (5, False)):
        others = use_of(run_of(rounds=rounds), TAKE).others.split(", ")
        assert others
        assert all(told.endswith("?") is marked for told in others), others
    for text in (shown(run_of()), written_on(uses_pages(run_of(), tables(run_of())[0]))):
        assert "?: too few rounds" in " ".join(text.split())


def test_faster_whole_reads_need_a_verdict() -> None:
    def told(*wall_ms: float) -> str:
        return use_of(run_of(whole_in(*wall_ms), len(wall_ms)), TAKE).others

    assert told(9, 9, 9, 9, 9).startswith("reading everything with pickle 9.00 ms is faster, ")
    # The median is only a hundredth less, and the times differ by a tenth.
    assert "reading everything" not in told(9.9, 9, 11, 9.8, 10.5)
    assert told(9, 9, 9).startswith("reading everything with pickle 9.00 ms is faster?, ")
    assert "reading everything" not in told(11, 11, 11)


def test_what_the_clock_takes_makes_no_whole_read_faster() -> None:
    def short(sample: Sample) -> Sample:
        sample = whole_in(*[9] * 5)(sample)
        figures = {**sample.figures, "empty_ns": 2_000_000} if sample.operation == TAKE else sample.figures
        return changed(sample, figures=figures)

    assert "reading everything" not in use_of(run_of(short), TAKE).others


@pytest.mark.parametrize(
    ("fallback", "words"),
    [("rewrite", "rewriting everything with pickle"), ("save-all", "gathering everything with pickle")],
)
def test_fallbacks_are_named(fallback: str, words: str) -> None:
    run = run_of(whole_in(*[9] * 5, fallback=fallback))
    assert use_of(run, TAKE).others.startswith(f"{words} 9.00 ms is faster, ")


def test_without_a_native_call_a_fallback_is_not_called_faster() -> None:
    def nobodys(sample: Sample) -> Sample:
        return changed(sample, fallback="read-all") if sample.operation == TAKE else sample

    use = use_of(run_of(nobodys), TAKE)
    assert use.best == "no native call"
    assert use.others.startswith("reading everything with ")
    assert "faster" not in use.others

    def stopped(sample: Sample) -> Sample:
        if sample.operation != TAKE:
            return sample
        failure = Failure(kind="timeout", reason="was stopped after 600 s")
        return changed(sample, figures={}, fidelity=None, failure=failure, fallback="read-all")

    use = use_of(run_of(stopped), TAKE)
    assert (use.best, use.others) == ("no native call", "")

    def from_memory(sample: Sample) -> Sample:
        return changed(sample, cached=sample.operation == TAKE and not sample.fallback)

    use = use_of(run_of(from_memory), TAKE)
    assert use.best == "none ranked"
    assert use.others.startswith("reading everything with ")


def test_answers_from_the_librarys_memory_are_marked_and_never_the_best() -> None:
    best = use_of(run_of(), TAKE).best.partition(" ")[0]

    def cached(sample: Sample) -> Sample:
        return changed(sample, cached=sample.operation == TAKE and sample.variant.startswith(best))

    run = run_of(cached)
    assert not use_of(run, TAKE).best.startswith(f"{best} ")
    assert use_of(run, ONE).best.startswith(f"{best} ")
    text = shown(run)
    assert "‡ cached: " in " ".join(text.split())
    assert text.count("‡") > 1
    assert "‡" not in shown(run_of())


def test_a_time_of_which_the_clock_takes_a_tenth_is_shown_as_less() -> None:
    def short(sample: Sample) -> Sample:
        if sample.operation != TAKE or not sample.figures:
            return sample
        is_short = sample.variant.startswith(("feather", "parquet"))
        # For long calls, the clock may take more time without making other figures invalid.
        wall_ns, empty_ns = (50_000, 20_000) if is_short else (2_000_000, 150_000)
        return changed(sample, figures={**sample.figures, "wall_ns": wall_ns, "empty_ns": empty_ns})

    run = run_of(short)
    assert use_of(run, TAKE).best.split()[1:] == ["<0.200", "ms"]
    (table,) = tables(run)
    column = table.columns.find(TAKE, Role.TIME)
    assert column is not None
    tied = {variant for variant, ratio in table.ranks(column).items() if ratio.tied}
    assert {variant.partition("[")[0] for variant in tied} >= {"feather", "parquet"}


def test_the_terminal_shows_times_alone_and_a_line_for_each_use() -> None:
    text = shown(run_of())
    assert max(map(len, text.splitlines())) <= WIDTH
    further = text.partition("eq: further operations")[2].partition("which format for which use")[0]
    assert "cores" not in further
    assert "eq: which format for which use" in text


def test_pdf_and_site_have_them_too(tmp_path: Path) -> None:
    run = run_of()
    (table,) = tables(run)
    assert "which format for which use" in written_on(uses_pages(run, table))
    write_site([run], tmp_path / "site")
    page = next(path for path in (tmp_path / "site").glob("*.html") if "which format for" in path.read_text().lower())
    text = unescape(page.read_text())
    assert use_of(run, TAKE).best in text
    assert USES_MEANING in text


def test_a_run_of_few_operations_has_no_uses() -> None:
    assert "which format for which use" not in shown(make_run(datasets=("eq",), tracks=("plain",), project=True))


def test_the_page_of_uses_says_what_the_reference_run_has() -> None:
    run = run_of()
    samples = tuple(changed(sample, suite="access") for sample in run.samples)
    run = replace(run, samples=samples, info=changed(run.info, suites={"access": "Which for which use?"}))
    text = findings.uses(Reference((run,)))
    (table,) = tables(run)
    for use in uses_of(run, table):
        assert f"| {use.title} | {use.best} | {use.others} |" in text
