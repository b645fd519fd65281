"""What stored runs answer, those of earlier versions and those made for a decision, beside what the user has now."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench_runner.results.information import RequestInfo
from bench_runner.results.records import Run, changed, read_run
from bench_runner.run.choosing import SIFTING, SMALLER
from format_bench import cli, recommend
from reports.analysis.recommendation.race import contending
from reports.text.recommendation import show
from tests.reports.factory import make_run, write_run

CSV, PICKLE, XML = "csv[engine=pandas]", "pickle[engine=pandas]", "xml[engine=pandas,parser=lxml]"


def made(**request: Any) -> Run:
    """Of one table, asked for like this."""
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=7)
    return replace(run, info=changed(run.info, request=RequestInfo(**request)))


def of_variants(run: Run, *variants: str) -> Run:
    return replace(run, samples=tuple(sample for sample in run.samples if sample.variant in variants))


def test_what_earlier_runs_do_not_tell_is_what_the_formats_say_today(tmp_path: Path) -> None:
    told = made()
    silent = {name: changed(about, maturity=None) for name, about in told.info.variants.items()}
    run = replace(told, info=changed(told.info, variants=silent))
    answer = recommend(stored=write_run(run, tmp_path / "run"))
    everything = (*answer.found.ranked, *answer.found.not_accepted)
    stages = {each.candidate.variant: each.candidate.stage for each in everything}
    assert stages[PICKLE] == "young"
    assert stages["parquet[engine=pyarrow,codec=none]"] == "established"
    assert answer.found.ranked[0].candidate.stage == "established"
    stored = recommend(stored=told)
    assert [each.candidate.variant for each in answer.found.ranked] == [
        each.candidate.variant for each in stored.found.ranked
    ]


def test_of_a_format_that_is_not_installed_here_nothing_is_claimed(tmp_path: Path) -> None:
    run = of_variants(made(), PICKLE)
    renamed = tuple(changed(sample, variant="elsewhere[engine=x]") for sample in run.samples)
    answer = recommend(stored=replace(run, samples=renamed))
    assert answer.found.ranked == ()
    assert [each.candidate.stage for each in answer.found.not_accepted] == ["young"]


def test_more_is_accepted_when_the_user_says_so() -> None:
    assert recommend(stored=made()).found.ranked[0].candidate.stage == "established"
    young = recommend(stored=made(), accept="young")
    assert {each.candidate.stage for each in young.found.ranked} == {"established", "young"}
    first = recommend(stored=of_variants(made(), PICKLE, CSV), accept="young")
    assert first.found.ranked[0].candidate.variant == PICKLE
    assert first.cautions[0] == "young: one implementation"


def test_csv_stands_for_what_the_user_has_where_nobody_knows() -> None:
    answer = recommend(stored=made())
    assert answer.found.baseline is not None
    assert (answer.found.baseline.candidate.variant, answer.yours) == (CSV, False)
    assert recommend(stored=of_variants(made(), PICKLE)).found.baseline is None


def test_the_users_own_format_is_told_by_the_run() -> None:
    answer = recommend(stored=made(baseline=XML, data="/home/me/sales.xml"))
    assert answer.found.baseline is not None
    assert (answer.found.baseline.candidate.variant, answer.yours) == (XML, True)
    assert answer.about == "eq", "a data set of ours has its own name"


def test_a_baseline_that_the_patterns_leave_out_is_compared_and_not_recommended() -> None:
    run = of_variants(made(baseline=CSV, formats=("^xml",)), CSV, XML)
    answer = recommend(stored=run)
    assert [each.candidate.variant for each in answer.found.ranked] == [XML]
    assert CSV not in [variant for variant, _ in answer.found.dropped]
    assert answer.found.baseline is not None
    assert answer.found.baseline.ratios["read"].ratio < 1
    assert recommend(stored=of_variants(made(baseline=CSV), CSV, XML)).found.ranked[0].candidate.variant == CSV


def test_needs_do_not_drop_what_the_user_has_now() -> None:
    answer = recommend(stored=made(baseline=CSV), needs=["types"])
    assert answer.found.ranked == ()
    assert answer.found.baseline is not None
    assert answer.found.baseline.values


def decision(folder: Path) -> Path:
    """A run of `recommend` on a sample: two sizes of it, and in it the run that sifted."""
    first = made(baseline=CSV, data="/home/me/sales.csv")
    table = {"digest": "1", "rows": 1_000_000, "size_bytes": 60_000_000, "title": "table", "input_rows": 9_000_000}
    samples = [changed(sample, dataset="table") for sample in first.samples]
    smaller = [changed(sample, dataset=SMALLER, rows=250_000) for sample in first.samples]
    about = {"table": table, SMALLER: {**table, "rows": 250_000}}
    second = [sample for sample in (*samples, *smaller) if not sample.variant.startswith(("xml", "json"))]
    info = {**first.info.shape(), "datasets": about}
    run = read_run(write_run(replace(first, samples=tuple(second)), folder))
    (folder / "run.json").write_text(json.dumps({**info, "schema": 2}))
    few = replace(first, samples=tuple(changed(sample, rows=20_000) for sample in samples))
    write_run(few, folder / SIFTING)
    return run.folder


def test_a_run_that_was_made_for_a_decision_answers_as_it_did_then(tmp_path: Path) -> None:
    answer = recommend(stored=decision(tmp_path / "run"))
    assert (answer.question.dataset, answer.question.rows, answer.about) == ("table", 1_000_000, "sales.csv")
    assert "projected to all 9,000,000 rows" in answer.remarks[0]
    left_out = dict(answer.found.dropped)
    assert left_out[XML].startswith("behind: at 20,000 rows its score was ")
    assert answer.found.baseline is not None


def test_what_was_too_dear_for_all_rows_is_compared_on_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = made(baseline=XML)
    few = replace(first, samples=tuple(changed(sample, rows=20_000) for sample in first.samples))
    # CSV is there, and is not what the user has.
    folder = write_run(of_variants(made(), CSV, "parquet[engine=pyarrow,codec=none]"), tmp_path / "run")
    write_run(few, folder / SIFTING)
    answer = recommend(stored=folder)
    now = answer.found.baseline
    assert now is not None
    assert (now.candidate.variant, now.rows, now.values, answer.yours) == (XML, 20_000, {}, True)
    assert now.ratios["read"].ratio > 100
    show(answer, Console(width=100))
    out = capsys.readouterr().out
    assert "your xml now, at 20,000 rows: reads " in out
    assert not any(line.startswith("your xml now") for line in out.splitlines()), "no row among others of more rows"


def test_the_command_that_is_offered_gives_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = decision(tmp_path / "my run")
    answer = recommend(
        stored=folder, weights={"read": 1, "size": 0.5}, bandwidth_bytes_per_s=2e8, max_memory_bytes=9 * 10**9
    )
    assert answer.again == (
        "recommend --from 'my run' --prefer read=1,size=0.5 --max-memory 9000000000 --bandwidth 200000000"
    )
    words = ["recommend", "--from", "my run", "--prefer", "read=1,size=0.5"]
    with pytest.raises(SystemExit):
        cli.main([*words, "--max-memory", "9000000000", "--bandwidth", "200000000", "--json"])
    shape = json.loads(capsys.readouterr().out)
    assert shape["recommended"] == answer.found.ranked[0].candidate.variant
    assert shape["folder"] == "my run"
    assert os.fspath(tmp_path) not in answer.again


def test_a_race_that_goes_on_for_what_is_not_accepted_ends() -> None:
    """Seven rounds of everything: nobody who may not be recommended gets more of them."""
    found = recommend(stored=made(baseline=CSV)).found
    assert set(contending(found)) <= {each.candidate.variant for each in found.ranked}
