"""The fidelity matrix, on the terminal and as Markdown."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from bench_runner.results.records import changed
from reports.analysis.fidelity import matrices
from reports.text.fidelity import fidelity_markdown, show_fidelity
from tests.reports.factory import make_run


def _shown(run: object) -> str:
    stream = io.StringIO()
    show_fidelity(run, Console(file=stream, width=80))  # type: ignore[arg-type]
    return stream.getvalue()


def test_each_target_has_a_matrix_of_pairs_without_and_with_nulls() -> None:
    pandas, arrow = matrices(make_run())
    assert (pandas.title, arrow.title) == ("target pandas, strings as str", "target arrow")
    assert pandas.symbols("csv[engine=pandas]", "string") == "~~"
    assert pandas.symbols("csv[engine=pandas]", "list") == "xx"
    assert pandas.symbols("hdf5-fixed[engine=pandas,format=fixed]", "duration") == "!!"
    assert pandas.symbols("parquet[engine=pyarrow,codec=none]", "list") == "++"
    assert pandas.symbols("parquet[engine=pyarrow,codec=none]", "unheard of") == "  "
    assert "raw-io" not in pandas.labels


def test_inexact_results_are_described_once_with_bound_and_cause() -> None:
    details = matrices(make_run())[0].details("json[engine=pandas]")
    assert details == {"lossy: digits are cut, within 1e-10, by the default of the call": ("float64",)}


def test_a_loss_only_with_nulls_says_so() -> None:
    run = make_run()
    verdicts = [
        changed(verdict, outcome="exact")
        if (verdict.variant, verdict.kind, verdict.nulls) == ("json[engine=pandas]", "float64", False)
        else verdict
        for verdict in run.fidelity
    ]
    matrix = matrices(replace(run, fidelity=tuple(verdicts)))[0]
    assert matrix.symbols("json[engine=pandas]", "float64") == "+~"
    assert list(matrix.details("json[engine=pandas]").values()) == [("float64 with nulls",)]


def test_a_kind_that_has_no_value_has_one_verdict() -> None:
    run = make_run()
    json, csv = (
        next(each for each in run.fidelity if each.variant == f"{name}[engine=pandas]") for name in ("json", "csv")
    )
    lossy = changed(json, kind="string-null", nulls=True, outcome="lossy", how="no type")
    exact = changed(csv, kind="string-null", nulls=True)
    matrix = matrices(replace(run, fidelity=(*run.fidelity, lossy, exact)))[0]
    assert (matrix.symbols(json.variant, "string-null"), matrix.symbols(csv.variant, "string-null")) == (" ~", " +")
    assert ("string-null",) in matrix.details(json.variant).values()
    assert "string-null" not in str(matrix.details(csv.variant))


def test_the_terminal_spells_letters_out_and_names_what_the_target_loses() -> None:
    text = _shown(make_run())
    assert "b  csv" in text
    assert "string: lossy: 'NA', 'null' and '' become missing" in text
    assert "list, struct, map: refused" not in text, "their errors differ"
    assert "target itself, int64: int64 with nulls becomes float64" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


def test_markdown_has_a_column_for_each_variant_and_no_stray_pipes() -> None:
    run = make_run()
    verdict = changed(run.fidelity[0], kind="a|b", outcome="refused", how="no")
    text = fidelity_markdown(replace(run, fidelity=(*run.fidelity, verdict)))
    table = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.replace("\\|", "").count("|") for line in table}
    assert widths == {18}
    assert "### Target pandas, strings as str" in text


def test_a_run_without_verdicts_says_so() -> None:
    assert "no fidelity results" in _shown(replace(make_run(datasets=("eq",), rounds=1), fidelity=()))
