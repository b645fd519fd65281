"""The comparison of a run with the thesis: its figures, its verdicts, and what is left untested."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bench_runner.results.records import Conditions, Failure, Run, RunInfo, Sample, changed
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, THESIS_METRICS, Role
from reports.sources.findings import FORMATS, ROWS, TABLES
from reports.sources.judgement import FindingVerdict, Judgement, count_text
from reports.sources.reproduction import reproduce, reproduction_markdown, show_reproduction, thesis_figures
from reports.sources.rows import Subject
from tests.reports.factory import make_run, make_sample

GOLDEN = Path(__file__).parents[1] / "golden"


def reproduced(run: Run) -> str:
    stream = io.StringIO()
    show_reproduction(run, Console(file=stream, width=80))
    return stream.getvalue()


def thesis_run(
    change: Callable[[Subject, float], float] = lambda subject, value: value,
    *,
    rounds: int = 5,
    rows: int | None = None,
    conditions: Conditions | None = None,
) -> Run:
    """Return a run with the figures of the thesis, modified by `change`."""
    samples: list[Sample] = []
    for dataset, data_rows in ROWS.items():
        for name, ours in FORMATS.items():
            for operation in ("save", "read"):
                figures = {}
                for column in THESIS_METRICS:
                    subject = Subject(column, name, dataset)
                    if column.operation == operation and subject in thesis_figures():
                        scale = 1e9 if column.figure == "wall_ns" else 1e6
                        figures[column.figure] = int(change(subject, thesis_figures()[subject]) * scale)
                if figures:
                    samples += [
                        make_sample(
                            operation=operation,
                            dataset=dataset,
                            rows=rows or data_rows,
                            variant=ours,
                            conditions=conditions or Conditions(),
                            round=number,
                            figures=figures,
                        )
                        for number in range(1, rounds + 1)
                    ]
    return replace(make_run(datasets=()), samples=tuple(samples), info=RunInfo())


def judged(run: Run, statement: str) -> Judgement:
    return next(item for item in reproduce(run).judgements if item.finding.statement.startswith(statement))


def test_the_figures_are_the_thesiss() -> None:
    assert len(thesis_figures()) == 5 * (12 * 5 + 9)
    assert thesis_figures()[Subject(SAVE_TIME, "Feather", "webface")] == 10.96
    assert thesis_figures()[Subject(SIZE, "Parquet", "eq")] == 47
    assert {subject.format for subject in thesis_figures()} == set(FORMATS)


def test_a_run_with_the_thesiss_figures_agrees_with_it() -> None:
    found = reproduce(thesis_run())
    assert all(item.tau == pytest.approx(1) for item in found.agreements)
    assert len(found.agreements) == 6 * 5
    assert all(item.ours == pytest.approx(item.theirs) for item in found.comparisons)
    assert judged(thesis_run(), "Feather has the shortest save").verdict is FindingVerdict.HOLDS
    assert judged(thesis_run(), "Pickle has the shortest read").verdict is FindingVerdict.HOLDS
    assert judged(thesis_run(), "Avro is smaller than Parquet on some").verdict is FindingVerdict.HOLDS
    assert judged(thesis_run(), "Pickle needs considerably more memory for strings").verdict is FindingVerdict.HOLDS


def test_findings_that_the_thesiss_own_tables_contradict_do_not_hold_and_say_so() -> None:
    found = judged(thesis_run(), "every text format is larger")
    assert found.verdict is FindingVerdict.DOES_NOT
    assert "own tables" in found.reason
    assert "int: H5 fixed 71.0 MB, CSV 49.0 MB" in found.figures
    assert "own tables" not in judged(thesis_run(), "Feather has the shortest save").reason


def test_a_contradiction_names_figures_and_the_thesiss_faults() -> None:
    def faster_lance(subject: Subject, value: float) -> float:
        return 0.05 if (subject.column, subject.format) == (SAVE_TIME, "Lance") else value

    found = judged(thesis_run(faster_lance), "Feather has the shortest save")
    assert found.verdict is FindingVerdict.DOES_NOT
    assert "eq: Feather 0.240 s, Lance 0.050 s" in found.figures
    assert "first writes a Parquet copy within the measured time" in found.reason


def test_one_contradicted_data_set_is_enough() -> None:
    def once(subject: Subject, value: float) -> float:
        return 0.01 if subject == Subject(READ_TIME, "CSV", "bool") else value

    assert judged(thesis_run(once), "Pickle has the shortest read").verdict is FindingVerdict.DOES_NOT


def test_a_tie_is_no_verdict() -> None:
    def alike(subject: Subject, value: float) -> float:
        return (
            thesis_figures()[Subject(SAVE_TIME, "Feather", "eq")]
            if subject == Subject(SAVE_TIME, "Parquet", "eq")
            else value
        )

    found = judged(thesis_run(alike), "Feather has the shortest save")
    assert found.verdict is FindingVerdict.OPEN
    assert "eq: tied" in found.reason


def test_under_five_rounds_sizes_alone_are_judged() -> None:
    found = reproduce(thesis_run(rounds=4)).judgements
    of_sizes = [item for item in found if {pair.lower.column.role for pair in item.finding.pairs} == {Role.SIZE}]
    assert FindingVerdict.OPEN not in {item.verdict for item in of_sizes}
    assert {item.verdict for item in found if item not in of_sizes} == {FindingVerdict.OPEN}
    assert "Feather has 4 rounds, too few" in judged(thesis_run(rounds=4), "Feather has the shortest save").reason


@pytest.mark.parametrize("factor", [1.0, 0.1], ids=["as there", "faster than JSON"])
def test_a_finding_does_not_hold_without_all_that_it_compares(factor: float) -> None:
    """XML has only four rounds, so it is not yet known whether JSON is the fastest of the three formats."""

    def other_xml(subject: Subject, value: float) -> float:
        return value * factor if (subject.column, subject.format) == (SAVE_TIME, "XML") else value

    run = thesis_run(other_xml)
    few = tuple(sample for sample in run.samples if sample.variant != "xml" or sample.round < 3)
    found = judged(replace(run, samples=few), "JSON is the fastest text format to save")
    assert found.verdict is FindingVerdict.OPEN
    assert "too few rounds of XML, so no verdict" in found.reason
    assert judged(replace(run, samples=few), "ORC is smaller than Parquet").verdict is FindingVerdict.HOLDS


def test_few_rounds_on_one_data_set_leave_a_finding_open() -> None:
    run = thesis_run()
    few = tuple(
        sample for sample in run.samples if (sample.variant, sample.dataset) != ("feather", "int") or sample.round < 3
    )
    found = judged(replace(run, samples=few), "Feather has the shortest save")
    assert found.verdict is FindingVerdict.OPEN
    assert "int: Feather has 2 rounds, too few for a verdict" in found.reason
    assert judged(replace(run, samples=few), "ORC is smaller than Parquet").verdict is FindingVerdict.HOLDS


def test_a_finding_without_anything_to_compare_is_not_open() -> None:
    """More rounds would not help, because the formats for the comparison were not measured."""
    run = thesis_run()
    alone = tuple(sample for sample in run.samples if sample.variant.startswith("json"))
    found = judged(replace(run, samples=alone), "JSON is the fastest text format to save")
    assert found.verdict is FindingVerdict.NOT_TESTABLE
    assert "no figure of CSV, XML to compare with" in found.reason


def test_verdicts_are_counted_in_words() -> None:
    verdicts = [FindingVerdict.HOLDS, FindingVerdict.OPEN, FindingVerdict.OPEN, FindingVerdict.NOT_TESTABLE]
    assert count_text(verdicts) == "1 holds, 0 do not, 2 are open, 1 is not testable here"


def test_one_contradiction_needs_no_other_rounds() -> None:
    def slow_json(subject: Subject, value: float) -> float:
        return value * 10 if (subject.column, subject.format) == (SAVE_TIME, "JSON") else value

    run = thesis_run(slow_json)
    few = tuple(sample for sample in run.samples if sample.variant != "xml" or sample.round < 3)
    found = judged(replace(run, samples=few), "JSON is the fastest text format to save")
    assert found.verdict is FindingVerdict.DOES_NOT
    assert "XML" not in found.reason


def test_other_row_counts_are_not_compared() -> None:
    found = reproduce(thesis_run(rows=10_000))
    assert not found.comparisons
    assert {item.verdict for item in found.judgements} == {FindingVerdict.NOT_TESTABLE}
    assert "not compared, 10,000 rows here, 10,000,000 in the thesis: webface" in found.notes


@pytest.mark.parametrize("conditions", [Conditions(track="default"), Conditions(target="arrow")])
def test_other_tracks_and_targets_are_not_compared(conditions: Conditions) -> None:
    found = reproduce(thesis_run(conditions=conditions))
    assert not found.comparisons
    assert any("track plain with target pandas" in note for note in found.notes)


def test_strings_as_the_thesis_had_them_are_preferred_and_never_mixed() -> None:
    plain, objects = thesis_run(lambda _, value: value * 2), thesis_run(conditions=Conditions(strings="object"))
    both = replace(plain, samples=(*plain.samples, *objects.samples))
    found = reproduce(both)
    assert found.conditions == Conditions(strings="object")
    assert all(item.ours == pytest.approx(item.theirs) for item in found.comparisons)
    assert any("Python objects" in note for note in reproduce(plain).notes)


def test_the_library_default_represents_a_format_with_several_variants() -> None:
    found = reproduce(make_run(datasets=("eq",), tracks=("plain",)))
    json_size = next(item for item in found.comparisons if (item.format, item.column) == ("JSON", SIZE))
    assert json_size.ours == 128


def test_a_format_that_a_finding_is_about_must_have_its_figures() -> None:
    run = thesis_run()
    without = replace(run, samples=tuple(sample for sample in run.samples if sample.variant != "xml"))
    found = judged(without, "XML and Excel are the slowest to save")
    assert found.verdict is FindingVerdict.NOT_TESTABLE
    assert "no save time of XML" in found.reason
    others = judged(without, "Feather has the shortest save")
    assert others.verdict is FindingVerdict.HOLDS
    assert "no figure of XML to compare with" in others.reason


@pytest.mark.rule(17)
def test_a_wrong_answer_decides_no_finding() -> None:
    run = thesis_run()
    sample = next(each for each in run.samples if each.variant == "pickle" and each.operation == "read")
    wrong = changed(sample, round=6, figures={}, failure=Failure(kind="mismatch", reason="row 3"))
    found = judged(replace(run, samples=(*run.samples, wrong)), "Pickle has the shortest read time")
    assert "eq: no read time of Pickle" in found.reason


def test_every_finding_has_pairs() -> None:
    for finding in TABLES:
        assert finding.pairs, finding.statement
        named = {subject.format for pair in finding.pairs for subject in (pair.lower, pair.higher)}
        assert set(finding.about) <= named <= set(FORMATS)


def test_the_terminal_shows_it_as_pinned() -> None:
    text = reproduced(make_run(datasets=("eq", "str", "core"), tracks=("plain",)))
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines == (GOLDEN / "reproduction.txt").read_text().splitlines()
    assert max(map(len, lines)) <= 100


def test_markdown_has_every_finding_and_even_tables() -> None:
    text = reproduction_markdown(thesis_run())
    for finding in TABLES:
        assert finding.statement in text
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) == 6 + 1 + 1
    for block in blocks:
        assert len({line.count("|") for line in block}) == 1
