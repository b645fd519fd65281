"""Effects of a codec: pairs within rounds, the Pareto frontier, and the break-even bandwidth."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench_runner.results.records import Conditions, Failure, Run, RunInfo, Sample, changed
from reports.analysis.codecs import break_even_text, by_format, codec_effects, codec_notes, frontier
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, Role
from reports.analysis.sections import TITLES
from reports.analysis.tables import Table, tables
from reports.pdf.pages import codecs_pages
from reports.sources.findings import FORMATS
from reports.sources.judgement import FindingVerdict
from reports.sources.reproduction import reproduce, reproduction_markdown
from reports.sources.reproduction_codecs import CODECS, NAMES, thesis_figures
from reports.sources.rows import Subject
from reports.text.thesis_csv import write_csv
from tests.reports.factory import make_run, make_sample, with_info
from tests.reports.pdf_text import drawn
from tests.reports.terminal_text import shown

NONE = "parquet[engine=pyarrow,codec=none]"
ZSTD = "parquet[engine=pyarrow,codec=zstd,level=1]"
LZ4 = "orc[engine=pyarrow,codec=lz4]"
ORC = "orc[engine=pyarrow,codec=none]"
RAW_IO = "raw-io[engine=readinto]"
MS, MB = 1_000_000, 1_000_000


def samples(
    variant: str, save_ms: float, read_ms: float, size_mb: float, *, rounds: int = 5, dataset: str = "webface"
) -> Iterator[Sample]:
    """Return the samples of one chain, one per round. Each takes 10 ms longer than the one before, as if the machine
    slowed."""
    conditions = Conditions(track="codecs", target="arrow" if variant == RAW_IO else "pandas")
    for number in range(1, rounds + 1):
        base = make_sample(suite="compression", dataset=dataset, variant=variant, conditions=conditions, round=number)
        slower = 10 * number
        yield changed(
            base,
            operation="save",
            figures={"wall_ns": int((save_ms + slower) * MS), "size_bytes": int(size_mb * MB)},
            fidelity=None,
        )
        yield changed(base, operation="read", figures={"wall_ns": int((read_ms + slower) * MS)})


def run_of(*groups: list[Sample]) -> Run:
    chosen = tuple(sample for group in groups for sample in group)
    return replace(make_run(datasets=()), samples=chosen, info=RunInfo(), fidelity=())


def table_of(*groups: list[Sample]) -> Table:
    (table,) = tables(run_of(*groups))
    return table


@pytest.fixture
def four() -> list[list[Sample]]:
    return [
        list(samples(NONE, 200, 100, 80)),
        list(samples(ZSTD, 300, 140, 20)),
        list(samples(ORC, 250, 150, 60)),
        list(samples(LZ4, 260, 130, 60)),
        list(samples(RAW_IO, 20, 10, 80)),
    ]


def test_differences_are_taken_within_rounds(four: list[list[Sample]]) -> None:
    """Successive rounds differ by 10 ms, but the difference within each round is constant."""
    effects = {effect.row.variant: effect for effect in codec_effects(table_of(*four))}
    zstd, lz4 = effects[ZSTD], effects[LZ4]
    assert zstd.codec == "zstd 1"
    assert zstd.save_delta_ns is not None
    assert zstd.save_delta_ns.median == 100 * MS
    assert zstd.save_delta_ns.spread == (100 * MS, 100 * MS)
    assert zstd.read_delta_ns is not None
    assert zstd.read_delta_ns.median == 40 * MS
    assert zstd.ratio == 0.25
    assert not zstd.saves_nothing
    assert lz4.ratio == 1.0
    assert lz4.saves_nothing


def test_a_codec_is_compared_with_its_engine_without_one() -> None:
    others = [list(samples(f"parquet[engine={engine},codec=none]", 400, 300, 90)) for engine in ("fastparquet", "zzz")]
    (effect,) = codec_effects(table_of(list(samples(NONE, 200, 100, 80)), *others, list(samples(ZSTD, 300, 140, 20))))
    assert (effect.row.variant, effect.base.variant, effect.ratio) == (ZSTD, NONE, 0.25)


def test_a_codec_without_an_uncompressed_variant_is_left_out() -> None:
    assert codec_effects(table_of(list(samples(ZSTD, 300, 140, 20)))) == []


def test_the_break_even_is_bytes_saved_by_time_added(four: list[list[Sample]]) -> None:
    effects = {effect.row.variant: effect for effect in codec_effects(table_of(*four))}
    found = effects[ZSTD].break_even
    assert found is not None
    assert found.usual == pytest.approx(60 * MB / 0.040)
    assert break_even_text(found) == "1,500"
    assert effects[LZ4].break_even is None, "nothing is saved, so nothing breaks even"


def test_a_smaller_file_that_decodes_faster_wins_at_any_bandwidth() -> None:
    table = table_of(list(samples(NONE, 200, 100, 80)), list(samples(ZSTD, 300, 90, 20)))
    assert break_even_text(codec_effects(table)[0].break_even) == "any"


def test_an_added_time_that_may_be_none_gives_a_lower_bound() -> None:
    packed = list(samples(ZSTD, 300, 100, 20))
    noise = {1: -20, 2: 20, 3: 10, 4: 20, 5: -10}
    packed = [
        changed(each, figures={**each.figures, "wall_ns": each.figures["wall_ns"] + noise[each.round] * MS})
        for each in packed
    ]
    table = table_of(list(samples(NONE, 200, 100, 80)), packed)
    assert break_even_text(codec_effects(table)[0].break_even) == ">3,000"


def test_the_frontier_holds_what_nothing_beats_in_both(four: list[list[Sample]]) -> None:
    table = table_of(*four)
    assert [row.variant for row in frontier(table, READ_TIME)] == [ZSTD, LZ4, NONE]
    assert [row.variant for row in frontier(table, SAVE_TIME)] == [ZSTD, ORC, NONE]


def test_cached_and_wrong_cells_are_not_on_the_frontier(four: list[list[Sample]]) -> None:
    """Rules 11 and 19: neither kind of cell is ranked."""
    none, zstd, *others = four
    cached = [changed(each, cached=each.operation == "read") for each in zstd]
    table = table_of(none, cached, *others)
    assert [row.variant for row in frontier(table, READ_TIME)] == [LZ4, NONE]
    assert [row.variant for row in frontier(table, SAVE_TIME)] == [ZSTD, ORC, NONE], "its save is not cached"
    mismatch = Failure(kind="mismatch", reason="row 3 came back as None")
    failed = {"figures": {}, "fidelity": None, "saw_all": False, "failure": mismatch}
    wrong = [changed(each, **failed) if (each.operation, each.round) == ("read", 5) else each for each in zstd]
    assert [row.variant for row in frontier(table_of(none, wrong, *others), READ_TIME)] == [LZ4, NONE]


def test_a_cold_read_has_no_break_even(four: list[list[Sample]]) -> None:
    """A cold read already includes the time of the device, so dividing the saved bytes by the added time says nothing
    about a bandwidth."""
    cold = [[changed(each, conditions=changed(each.conditions, cache="cold")) for each in group] for group in four]
    table = table_of(*cold)
    assert [effect.break_even for effect in codec_effects(table)] == [None, None]
    assert any("only for warm reads" in note for note in codec_notes(table))
    assert not any("only for warm reads" in note for note in codec_notes(table_of(*four)))


def test_each_format_comes_before_its_codecs(four: list[list[Sample]]) -> None:
    assert [row.variant for row in by_format(table_of(*four))] == [NONE, ZSTD, ORC, LZ4, RAW_IO]


def test_equal_points_are_both_on_the_frontier() -> None:
    table = table_of(list(samples(NONE, 200, 100, 80)), list(samples(ORC, 200, 100, 80)))
    assert {row.variant for row in frontier(table, READ_TIME)} == {NONE, ORC}


def test_the_terminal_shows_costs_and_savings_of_codecs(four: list[list[Sample]]) -> None:
    text = shown(run_of(*four)).split(TITLES["codecs"])[1]
    line = next(line for line in text.splitlines() if "0.25" in line)
    assert line.split()[:2] == ["parquet", "+0.100"]
    assert "1,500" in line
    assert line.rstrip().endswith("read save")
    assert "orc[codec=lz4]: the codec does not reduce the size (size ratio 1.000)" in text
    assert max(map(len, shown(run_of(*four)).splitlines())) <= 100


def test_the_csv_has_the_metrics_of_the_thesis(four: list[list[Sample]], tmp_path: Path) -> None:
    write_csv(run_of(*four), tmp_path)
    (path,) = tmp_path.glob("codecs-*.csv")
    rows = list(csv.reader(path.open()))
    assert rows[0] == ["format_name", "save_time_delta (s)", "read_time_delta (s)", "compression_ratio"]
    assert [ZSTD, "0.100000", "0.040000", "0.2500"] in rows


def test_the_pdf_has_a_page_on_codecs(four: list[list[Sample]]) -> None:
    text = drawn(codecs_pages(run_of(*four), table_of(*four)))
    assert "Pareto" in text
    assert "parquet [codec=zstd,level=1]" in text
    assert "saves nothing" in text


# --- compared with the thesis ---------------------------------------------------------------------------------------


def thesis_run(rounds: int = 5) -> Run:
    """Return a run with the figures of the thesis."""
    theirs = thesis_figures()
    groups = []
    for name in NAMES:
        blosc = "blosc:" if name == "H5 table" else ""
        for codec in (None, *CODECS):
            told = f"{name} {codec}" if codec else name
            variant = f"{FORMATS[name]}[engine=x,codec={blosc + codec if codec else 'none'}]"
            save, read = (theirs[Subject(column, told, "webface")] * 1000 for column in (SAVE_TIME, READ_TIME))
            groups.append(list(samples(variant, save, read, theirs[Subject(SIZE, told, "webface")], rounds=rounds)))
    return with_info(run_of(*groups), request={"webface": "webface.h5"})


def test_the_thesiss_own_figures_support_its_findings() -> None:
    found = reproduce(thesis_run())
    verdicts = {judgement.finding.statement: judgement.verdict for judgement in found.judgements}
    assert set(verdicts.values()) == {FindingVerdict.HOLDS}, verdicts
    assert len(verdicts) == 8


def test_a_generated_webface_supports_no_finding_about_its_values() -> None:
    found = reproduce(replace(thesis_run(), info=RunInfo())).judgements
    ratio = next(item for item in found if item.finding.statement.startswith("ZSTD reduces Parquet's file"))
    assert ratio.verdict is FindingVerdict.NOT_TESTABLE
    assert "generated" in ratio.reason
    best = next(item for item in found if item.finding.statement.startswith("HDF5 table has the best compression"))
    assert best.verdict is FindingVerdict.NOT_TESTABLE
    assert sum(item.verdict is FindingVerdict.HOLDS for item in found) == 6


def test_the_multiples_are_next_to_the_thesiss() -> None:
    text = reproduction_markdown(thesis_run())
    row = next(line for line in text.splitlines() if line.startswith("| Parquet"))
    assert "0.50 / 0.50" in row
    assert "0.21 / 0.21" in row


def test_few_rounds_allow_no_verdict_on_times() -> None:
    found = reproduce(thesis_run(rounds=3)).judgements
    of_sizes = [item for item in found if {pair.lower.column.role for pair in item.finding.pairs} == {Role.SIZE}]
    assert {item.verdict for item in of_sizes} == {FindingVerdict.HOLDS}
    assert {item.verdict for item in found if item not in of_sizes} == {FindingVerdict.OPEN}


def test_a_run_without_webface_says_so(four: list[list[Sample]]) -> None:
    other = run_of(list(samples(NONE, 200, 100, 80, dataset="eq")), list(samples(ZSTD, 300, 140, 20, dataset="eq")))
    found = reproduce(other)
    assert {item.verdict for item in found.judgements} == {FindingVerdict.NOT_TESTABLE}
    assert all("not in this run" in item.reason for item in found.judgements)
