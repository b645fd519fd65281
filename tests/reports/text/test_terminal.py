"""The terminal's tables: pinned text, marks, reasons and widths."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bench_runner.results.records import Conditions, Failure, RecordError, Run, RunInfo, changed, read_run
from reports.text.page import WIDTH, folded
from reports.text.terminal import show
from tests.reports.factory import make_run, make_sample, with_info, write_run

GOLDEN = Path(__file__).parents[1] / "golden"


def shown(run: Run, *, terminal: bool = False) -> str:
    stream = io.StringIO()
    show(run, Console(file=stream, force_terminal=terminal, width=80))
    return stream.getvalue()


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_a_run_is_shown_as_pinned() -> None:
    run = make_run(datasets=("eq", "core"), tracks=("plain",))
    golden = GOLDEN / "terminal.txt"
    assert [line.rstrip() for line in shown(run).splitlines()] == golden.read_text().splitlines(), (
        "if the change is wanted: python -m tests.reports.make_golden"
    )


def test_a_pipe_gets_plain_text_of_100_columns_and_a_terminal_colour() -> None:
    text = shown(make_run(rounds=5))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\x1b[" in shown(make_run(datasets=("eq",), tracks=("plain",), rounds=1), terminal=True)


def test_long_variant_names_do_not_push_figures_out() -> None:
    long = "parquet[engine=pyarrow,codec=zstd,level=1,row_group_rows=1000000,page_bytes=65536]"
    samples = [
        changed(sample, variant=long if sample.variant.startswith("parquet") else sample.variant)
        for sample in make_run(datasets=("eq",), tracks=("plain",)).samples
    ]
    samples += [changed(sample, variant=long.replace("65536", "4096")) for sample in samples if sample.variant == long]
    text = shown(replace(make_run(rounds=1), samples=tuple(samples)))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" not in text
    assert text.count("exact") >= 15


def test_best_and_ties_are_marked_by_a_sign() -> None:
    text = shown(make_run(datasets=("eq",), tracks=("plain",)))
    table = text.split("tabular: eq")[1]
    assert line_of(table, "vortex").count("*") == 1
    assert "=" in line_of(table, "parquet")
    assert "*" not in line_of(table, "raw-io") + line_of(table, "xml")
    mapped = line_of(table, "feather[mapped=true]").removeprefix("feather[mapped=true]")
    assert "*" not in mapped
    assert "=" not in mapped


def test_long_times_are_in_seconds_and_labels_break_between_words() -> None:
    """Times from Feather's milliseconds to Excel's minutes need wide columns, which leaves little width for
    the labels."""
    text = shown(make_run(datasets=("eq",), tracks=("plain",)))
    assert "80.4s" in line_of(text, "excel")
    assert folded("csv[keep_default_na=false]", 15).splitlines() == ["csv", " [keep_default_", " na=false]"]
    assert folded("csv[keep_default_na=false]", 18).splitlines() == ["csv", " [keep_default_na=", " false]"]
    assert folded("feather[codec=lz4]", 18) == "feather[codec=lz4]"
    assert folded("V1 (rows), footers parsed, groups of 550", 35) == "V1 (rows), footers parsed, groups\n of 550"


def test_under_five_rounds_only_sizes_have_marks_and_a_remark_says_so() -> None:
    text = shown(make_run(datasets=("eq",), tracks=("plain",), rounds=4))
    tables = text.split("Medians of n")[0]
    assert re.findall(r"\S*\*", tables) == ["31.0*"]
    assert "±" not in tables
    assert "under 5 rounds: spreads are minimum and maximum" in text


def test_a_quick_and_unfinished_run_says_so() -> None:
    text = shown(make_run(datasets=("eq",), rounds=1, info={"quick": True, "partial": True}))
    assert "warning: quick run: one round" in text
    assert "warning: the run did not finish; run the same command with --resume" in text


def test_a_format_without_figures_has_its_reason() -> None:
    text = shown(make_run(datasets=("core",), tracks=("plain",)))
    assert "FAILED" in line_of(text, "avro ")
    assert "avro: read mismatch: column 'c07': row 999,999 came back as None" in text
    assert "excel: refused: Excel holds at most 1,048,576 rows" in text


def test_a_consequence_is_not_repeated_next_to_its_cause() -> None:
    cause = Failure(kind="timeout", reason="stopped after 600 s")
    consequence = Failure(kind="skipped", reason="its save failed: stopped after 600 s")
    run = make_run(datasets=("eq",))
    samples = (
        make_sample(operation="save", variant="xml", figures={}, fidelity=None, failure=cause),
        make_sample(operation="read", variant="xml", figures={}, fidelity=None, failure=consequence),
    )
    text = shown(replace(run, samples=samples))
    assert "xml: save timeout: stopped after 600 s" in text
    assert "its save failed" not in text


def test_uncounted_samples_are_named_and_are_not_failures() -> None:
    samples = (
        make_sample(operation="save", fidelity=None),
        make_sample(unsettled=True),
        make_sample(variant="pickle[engine=pandas]"),
    )
    text = shown(replace(make_run(rounds=1), samples=samples))
    assert "FAILED" not in text
    reasons = "machine busy, page cache not warm, garbage collected, or the read failed its check"
    note = f"not counted ({reasons}): parquet (read, 1 of 1 rounds)"
    assert note in " ".join(text.split())


@pytest.mark.rule(6)
def test_losses_syncs_and_unranked_variants_are_named() -> None:
    text = shown(make_run(datasets=("eq",), tracks=("plain",)))
    assert "json is lossy here: float64 within 1e-10" in text
    assert "includes the sync: hdf5-table" in text
    assert "not ranked, because the result is a different kind of object: feather[mapped=true]" in text


@pytest.mark.rule(13)
def test_memory_below_the_probe_is_not_shown_as_a_figure() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), info={"probe": {"error_bytes": 25_000_000}})
    assert "<75.0=" in line_of(shown(run), "csv")


def test_a_peak_that_counts_mapped_pages_is_marked() -> None:
    figures = {"wall_ns": 10**8, "peak_private_bytes": 10_000_000, "peak_rss_bytes": 200_000_000}
    run = replace(
        make_run(rounds=1), samples=tuple(make_sample(round=number, figures=figures) for number in range(1, 6))
    )
    assert "10.0~" in shown(run)


@pytest.mark.rule(10)
def test_other_conditions_have_separate_tables() -> None:
    samples = [
        make_sample(round=number, conditions=conditions)
        for number in range(1, 6)
        for conditions in (Conditions(), Conditions(threads="1"), Conditions(strings="object", work_dir="/mnt/disk"))
    ]
    text = " ".join(shown(replace(make_run(rounds=1), samples=tuple(samples))).split())
    assert text.count("tabular: eq") == 3
    assert "target pandas, 1 thread" in text
    assert "target pandas, strings as object, in /mnt/disk" in text


def test_several_machines_are_never_mixed() -> None:
    samples = [make_sample(round=number, machine=name) for number in range(1, 6) for name in ("one", "two")]
    text = shown(replace(make_run(rounds=1), samples=tuple(samples)))
    assert "machine one" in text
    assert "machine two" in text


def test_drift_of_raw_io_is_a_warning() -> None:
    assert "raw I/O became" in shown(make_run(drift=0.3))
    assert "raw I/O became" not in shown(make_run())


def test_an_old_run_with_little_information_is_shown() -> None:
    run = make_run(datasets=("eq",))
    assert "tabular: eq" in shown(replace(run, info=RunInfo()))


@pytest.mark.parametrize(
    ("odd", "field"),
    [
        ({"machine": None}, "machine"),
        ({"warnings": "no"}, "warnings"),
        ({"probe": 3}, "probe"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_invalid_facts_are_reported_with_file_and_field(odd: dict[str, object], field: str, tmp_path: Path) -> None:
    folder = write_run(make_run(datasets=("eq",), rounds=1), tmp_path / "run")
    shape = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**shape, **odd}))
    with pytest.raises(RecordError, match=rf"run\.json: .*{field}"):
        read_run(folder)


def test_an_empty_run_says_so() -> None:
    assert "no samples" in shown(replace(make_run(rounds=1), samples=()))


def test_the_overview_has_only_variants_that_all_data_sets_have() -> None:
    overview = shown(make_run(tracks=("plain",))).split("\neq, int, ")[1].split("cold start")[0]
    assert "pickle" in overview
    assert "avro" not in overview


def test_a_sample_says_of_how_many_rows_it_is() -> None:
    facts = {"rows": 1_000_000, "input_rows": 12_345_678, "sampled_rows": 1_000_000, "blocks": 16}
    run = make_run(datasets=("eq",), tracks=("plain",), info={"datasets": {"eq": {"digest": "d", **facts}}})
    assert "tabular: eq, a sample of 1,000,000 of 12,345,678 rows, track plain" in shown(run)
    whole = with_info(run, datasets={"eq": {**facts, "input_rows": 1_000_000}})
    assert "tabular: eq, 1,000,000 rows, track plain" in shown(whole)
