"""Recommendations from stored runs: of earlier versions, and of `recommend`, with the baseline."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from bench_runner.errors import PlanError, RunError
from bench_runner.request import Request
from bench_runner.results.records import Run, Sample, changed, read_run
from bench_runner.run.choosing import SCREENING, SMALLER
from bench_runner.variants import variant_of
from format_bench import cli, recommend
from format_bench.api import stored
from format_bench.api.ranking import uncounted
from format_bench.errors import RequestError
from reports.analysis.recommendation.candidates import summary_of
from reports.analysis.recommendation.preferences import Preferences, Use
from reports.analysis.recommendation.race import contending
from reports.text.recommendation import show
from reports.text.recommendation_json import as_json
from tests.reports.factory import make_run, with_info, write_run

CSV, PICKLE, XML = "csv[engine=pandas]", "pickle[engine=pandas]", "xml[engine=pandas,parser=lxml]"


def made(**request: Any) -> Run:
    """A run of one table with this request."""
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=7)
    return replace(run, info=changed(run.info, request=Request(**request)))


def of_variants(run: Run, *variants: str) -> Run:
    return replace(run, samples=tuple(sample for sample in run.samples if sample.variant in variants))


def test_of_many_runs_a_few_data_sets_of_each_suite_are_named() -> None:
    with pytest.raises(
        RequestError, match=r"eq, int, float and \d+ more \(tabular\); .*cifar-like \(image\)"
    ) as raised:
        recommend(stored="reference")
    assert len(str(raised.value)) < 1000


def test_missing_declarations_of_earlier_runs_are_those_of_today(tmp_path: Path) -> None:
    told = made()
    silent = {name: changed(about, maturity=None, partial_reads=None) for name, about in told.info.variants.items()}
    run = replace(told, info=changed(told.info, variants=silent))
    answer = recommend(stored=write_run(run, tmp_path / "run"))
    everything = (*answer.found.ranked, *answer.found.not_accepted)
    stages = {each.candidate.variant: each.candidate.stage for each in everything}
    assert stages[PICKLE] == "young"
    assert stages["parquet[engine=pyarrow,codec=none]"] == "established"
    assert answer.found.ranked[0].candidate.stage == "established"
    assert [each.candidate.variant for each in answer.found.ranked] == [
        each.candidate.variant for each in recommend(stored=told).found.ranked
    ]


def test_adapters_are_not_asked_about_a_run_that_recorded_what_they_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lance takes rows by number today; it did not in the version that measured the second run."""
    lance, told = "lance[engine=pylance]", made()

    def left(need: str, **recorded: Any) -> list[str]:
        about = {name: changed(each, capabilities=("append",), **recorded) for name, each in told.info.variants.items()}
        run = of_variants(replace(told, info=changed(told.info, variants=about)), lance)
        found = recommend(stored=run, needs=[need], accept="experimental").found
        return [each.candidate.variant for each in found.ranked]

    assert left("random-access") == [lance]
    monkeypatch.setattr(stored, "engine_of", None)
    assert left("random-access", partial_reads=("scan",)) == []
    assert left("pushdown", partial_reads=("scan",)) == [lance]


def test_sizes_answer_from_one_round_also_where_the_machine_was_not_at_rest() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=1)
    busy = replace(run, samples=tuple(changed(sample, unsettled=True) for sample in run.samples))
    busy = replace(busy, info=changed(busy.info, request=Request()))
    found = recommend(stored=busy, weights={"size": 1}).found
    sizes = [each.values["size"] for each in found.ranked]
    assert len(sizes) > 3
    assert sizes == sorted(sizes)
    assert found.ranked[0].probability == 1
    assert found.ranked[1].against_first is not None
    assert found.ranked[1].against_first.tied is False
    console = Console(file=io.StringIO(), width=100)
    show(recommend(stored=busy, weights={"size": 1}), console)
    assert "at rest" not in console.file.getvalue()  # type: ignore[attr-defined]
    assert not recommend(stored=busy).found.ranked


def test_a_format_that_is_not_installed_has_no_declarations(tmp_path: Path) -> None:
    run = of_variants(made(), PICKLE)
    renamed = tuple(changed(sample, variant="elsewhere[engine=x]") for sample in run.samples)
    answer = recommend(stored=replace(run, samples=renamed))
    assert answer.found.ranked == ()
    assert [each.candidate.stage for each in answer.found.not_accepted] == ["young"]


def test_accept_allows_more_formats() -> None:
    assert recommend(stored=made()).found.ranked[0].candidate.stage == "established"
    young = recommend(stored=made(), accept="young")
    assert {each.candidate.stage for each in young.found.ranked} == {"established", "young"}
    first = recommend(stored=of_variants(made(), PICKLE, CSV), accept="young")
    assert first.found.ranked[0].candidate.variant == PICKLE
    assert first.cautions[0] == "this format is young: one implementation"


def test_csv_is_the_baseline_if_the_users_format_is_unknown() -> None:
    answer = recommend(stored=made())
    assert answer.found.baseline is not None
    assert (answer.found.baseline.candidate.variant, answer.yours) == (CSV, False)
    assert recommend(stored=of_variants(made(), PICKLE)).found.baseline is None


def test_the_run_records_the_users_own_format() -> None:
    answer = recommend(stored=made(baseline=XML, data=Path("/home/me/sales.xml")))
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


def test_needs_do_not_drop_the_baseline() -> None:
    answer = recommend(stored=made(baseline=CSV), needs=["types"])
    assert answer.found.ranked == ()
    assert answer.found.baseline is not None
    assert answer.found.baseline.values


def decision(folder: Path) -> Path:
    """A run of `recommend` on a sample: two sizes of it, and in it the screening."""
    first = made(baseline=CSV, data=Path("/home/me/sales.csv"))
    table = {"digest": "1", "rows": 1_000_000, "size_bytes": 60_000_000, "title": "table", "input_rows": 9_000_000}
    samples = [changed(sample, dataset="table") for sample in first.samples]
    smaller = [changed(sample, dataset=SMALLER, rows=250_000) for sample in first.samples]
    about = {"table": table, SMALLER: {**table, "rows": 250_000}}
    second = [sample for sample in (*samples, *smaller) if not sample.variant.startswith(("xml", "json"))]
    info = {**first.info.shape(), "datasets": about}
    run = read_run(write_run(replace(first, samples=tuple(second)), folder))
    (folder / "run.json").write_text(json.dumps({**info, "schema": 2}))
    few = replace(first, samples=tuple(changed(sample, rows=20_000) for sample in samples))
    write_run(few, folder / SCREENING)
    return run.folder


def test_a_run_that_was_made_for_a_decision_answers_as_it_did_then(tmp_path: Path) -> None:
    answer = recommend(stored=decision(tmp_path / "run"))
    assert (answer.question.dataset, answer.question.rows, answer.about) == ("table", 1_000_000, "sales.csv")
    assert "projected to all 9,000,000 rows" in answer.remarks[0]
    left_out = dict(answer.found.dropped)
    assert re.match(r"behind: score \d+\.\d times the best's at 20,000 rows", left_out[XML])
    assert answer.found.baseline is not None


def test_the_memory_limit_counts_the_data_of_all_rows(tmp_path: Path) -> None:
    """The sample of 1,000,000 rows takes 60 MB in memory, so the whole table of 9,000,000 rows takes 540 MB."""
    folder = decision(tmp_path / "run")
    (first, *_) = recommend(stored=folder).found.ranked
    peaks = {name: max(first.candidate.figures[name].values()) for name in ("read_memory", "save_memory")}
    needed = max(peaks["save_memory"] + 540_000_000, peaks["read_memory"])
    assert needed > peaks["read_memory"], "the save decides"
    for limit, kept in ((needed + 1e6, True), (needed - 1e6, False)):
        found = recommend(stored=folder, max_memory_bytes=int(limit)).found
        assert (first.candidate.variant in {each.candidate.variant for each in found.ranked}) == kept
    assert f"memory: needs {needed / 1e9:.2f} GB" in dict(found.dropped)[first.candidate.variant]


@pytest.mark.parametrize("cache", ["cold", "cold (guest)"])
def test_a_bandwidth_is_refused_for_cold_reads(cache: str) -> None:
    """Their times already include the device."""
    run = made()
    assert recommend(stored=run, bandwidth_bytes_per_s=1e8).found.ranked
    cold = tuple(changed(each, conditions=changed(each.conditions, cache=cache)) for each in run.samples)
    run = replace(run, samples=cold)
    assert recommend(stored=run).found.ranked
    with pytest.raises(RequestError, match="bandwidth_bytes_per_s cannot be combined with cold reads") as refused:
        recommend(stored=run, bandwidth_bytes_per_s=1e8)
    assert refused.value.parameter == "bandwidth_bytes_per_s"


VORTEX, HDF5, LANCE = "vortex[engine=vortex-data]", "hdf5-table[engine=pandas,format=table]", "lance[engine=pylance]"


def test_variants_that_were_only_screened_have_the_true_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The race measures two variants of a maturity that is not accepted. Four young ones are fast in the screening."""
    save = {PICKLE: 100, VORTEX: 110, LANCE: 120, HDF5: 9_000_000, FEATHER: 150, PARQUET: 160, CSV: 9_000}
    run = of_variants(made(baseline=CSV), *save, "raw-io")

    def timed(each: Sample) -> Sample:
        wall_ns = save.get(each.variant, 1) * 1_000_000 + each.round
        return changed(each, rows=20_000, unsettled=False, figures={**each.figures, "wall_ns": wall_ns})

    folder = write_run(of_variants(run, PICKLE, VORTEX, FEATHER, PARQUET, CSV, "raw-io"), tmp_path / "run")
    write_run(replace(run, samples=tuple(map(timed, run.samples))), folder / SCREENING)
    answer = recommend(stored=folder, weights={"save": 1})
    left_out = dict(answer.found.dropped)
    assert set(left_out) == {LANCE, HDF5}
    assert left_out[LANCE] == (
        "not accepted: young, score 0.8 times the best's at 20,000 rows; of each maturity that is not accepted, at "
        "most 2 variants are measured on more rows"
    )
    assert re.match(r"behind: score \d+\.\d times the best's at 20,000 rows", left_out[HDF5])
    show(answer, Console(width=100))
    text = " ".join(capsys.readouterr().out.split())
    assert "lance (maturity not accepted, only the best 2 measured on more rows); hdf5-table (worse on" in text
    # The same run, asked with preferences that the race was not made for.
    young = recommend(stored=folder, weights={"save": 1}, accept="young")
    assert dict(young.found.dropped)[LANCE] == (
        "only screened: score 1.2 times the best's at 20,000 rows; the run did not measure it on more rows"
    )


def test_a_baseline_too_slow_for_all_rows_uses_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = made(baseline=XML)
    few = replace(first, samples=tuple(changed(sample, rows=20_000) for sample in first.samples))
    # CSV is there, and is not what the user has.
    folder = write_run(of_variants(made(), CSV, "parquet[engine=pyarrow,codec=none]"), tmp_path / "run")
    write_run(few, folder / SCREENING)
    answer = recommend(stored=folder)
    now = answer.found.baseline
    assert now is not None
    assert (now.candidate.variant, now.rows, now.values, answer.yours) == (XML, 20_000, {}, True)
    assert now.ratios["read"].ratio > 100
    show(answer, Console(width=100))
    out = capsys.readouterr().out
    assert "your xml (at 20,000 rows), compared with it: " in out
    assert not any(line.startswith("your xml") for line in out.splitlines()), "no row among others of more rows"


def test_the_command_that_is_offered_gives_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = decision(tmp_path / "my run")
    answer = recommend(
        stored=folder, weights={"read": 1, "size": 0.5}, bandwidth_bytes_per_s=2e8, max_memory_bytes=9 * 10**9
    )
    assert answer.again == (
        "format-bench recommend --from 'my run' --prefer read=1,size=0.5 --max-memory 9000000000 --bandwidth 200000000"
    )
    words = ["recommend", "--from", "my run", "--prefer", "read=1,size=0.5"]
    with pytest.raises(SystemExit):
        cli.main([*words, "--max-memory", "9000000000", "--bandwidth", "200000000", "--json"])
    shape = json.loads(capsys.readouterr().out)
    assert shape["recommended"] == answer.found.ranked[0].candidate.variant
    assert shape["folder"] == "my run"
    assert os.fspath(tmp_path) not in answer.again


def test_patterns_also_select_among_screened_variants(tmp_path: Path) -> None:
    """Variants that they exclude are not reported as behind on few rows."""
    folder = write_run(of_variants(made(), PARQUET, FEATHER, "raw-io"), tmp_path / "run")
    write_run(made(), folder / SCREENING)
    told = {variant for variant, _ in recommend(stored=folder).found.dropped}
    chosen = {variant for variant, _ in recommend(stored=folder, formats=("parquet", "orc")).found.dropped}
    assert {"orc[engine=pyarrow,codec=none]", "avro[engine=fastavro,codec=none]"} <= told
    assert {variant_of(variant).format_name for variant in chosen} <= {"parquet", "orc", "csv"}


# --- by use --------------------------------------------------------------------------------------------------------

TAKE = "take[rows=100,handle=kept]"
PARQUET, FEATHER = "parquet[engine=pyarrow,codec=none]", "feather[engine=pyarrow,codec=none]"


def with_takes(run: Run, **takes_ms: tuple[float, str]) -> Run:
    """The run with takes added: (ms, fallback or '') for each format."""
    more = []
    for sample in run.samples:
        name = variant_of(sample.variant).format_name.replace("-", "_")
        if sample.operation == "read" and name in takes_ms and sample.failure is None:
            ms, fallback = takes_ms[name]
            wall_ns = int(ms * 1e6 * (1 + sample.round / 100))
            figures = {"wall_ns": wall_ns, "open_ns": 3_000_000}
            more.append(changed(sample, operation=TAKE, figures=figures, fallback=fallback, saw_all=False))
    operations = {
        TAKE: {"title": "take 100 rows"},
        "read": {"title": "read"},
        "save": {"title": "save", "writes": True},
    }
    return with_info(replace(run, samples=(*run.samples, *more)), operations=operations)


def takes() -> Run:
    return with_takes(made(), parquet=(2, ""), orc=(1, ""), csv=(1500, "read-all"), feather=(40, ""))


def test_a_stored_run_answers_by_use(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = recommend(stored=takes(), uses={"take": 1000, "read": 1})
    ranked = {each.candidate.variant: each for each in often.found.ranked}
    assert next(iter(ranked)) == "orc[engine=pyarrow,codec=none]"
    orc = ranked["orc[engine=pyarrow,codec=none]"]
    # 1,000 ms of takes, 3 ms to open the file once, and 580 ms to read all.
    assert orc.values["use"] / 1e6 == pytest.approx(1000 + 3 + 580, rel=0.06)
    assert recommend(stored=takes(), uses={"take": 10, "read": 1}).found.ranked[0].candidate.variant == PARQUET
    show(often, Console(width=100), explain=True)
    out = " ".join(capsys.readouterr().out.split())
    assert "time per day of: take 100 rows 1,000 times a day; read all once a day" in out
    assert "csv[keep_default" not in out
    assert "take 100 rows by read-all 1," in out
    assert "(no call to take 100 rows)" in out
    assert "# take 100 rows (rows: a list of row numbers" in out
    assert "s a day" in out
    shape = json.loads(as_json(often))
    first = shape["ranked"][0]
    assert [each["operation"] for each in first["uses"]] == [TAKE, "read"]
    assert first["uses"][0]["ns_a_day"]["low"] < first["uses"][0]["ns_a_day"]["median"] < 1.1e9
    assert first["reads_whole_for"] == []
    assert "take 100 rows" in next(iter(shape["python"]["uses"]))
    csv = next(each for each in shape["ranked"] if each["variant"] == CSV)
    assert csv["reads_whole_for"] == ["take 100 rows"]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"df": pd.DataFrame({"a": range(9), "b": range(9)}), "columns": ["a", "b"], "rows": [7, 1]}
    exec("\n".join([*often.imports, often.save, *(text for _, text in often.parts)]), names)
    assert names["df"].to_dict("list") == {"a": [7, 1], "b": [7, 1]}


def test_operations_are_weighed_and_the_command_that_is_offered_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(takes(), tmp_path / "run")
    answer = recommend(stored=folder, weights={"take": 3, "size": 1})
    assert "--prefer 'take[rows=100,handle=kept]=3,size=1'" in answer.again
    for asked in (answer, recommend(stored=folder, uses={"take": 1000, "read": 2 / 7})):
        program, *words = shlex.split(asked.again)
        assert program == cli.PROGRAM
        with pytest.raises(SystemExit):
            cli.main([*words, "--json"])
        shape = json.loads(capsys.readouterr().out)
        assert shape["recommended"] == asked.found.ranked[0].candidate.variant
        assert shape["ranked"][0]["score"] == 1
        assert [each["score"] for each in shape["ranked"]] == [each.score for each in asked.found.ranked]


def test_missing_figures_are_named_with_the_command_that_measures_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunError) as refused:
        recommend(stored=takes(), datasets="eq", uses={TAKE: 5, "scan": 1, "append": 1})
    first, second = str(refused.value).splitlines()
    assert "has no figure of: scan 1% by range, append 1,000 rows" in first
    assert "run access datasets='eq' operations='read|take[rows=100,handle=kept]|scan[" in second
    own = takes()
    request = changed(own.info.request, data=Path("my file.csv"), key="id")
    with pytest.raises(RunError, match=r"run access data='my file\.csv' key='id' operations="):
        recommend(stored=replace(own, info=changed(own.info, request=request)), uses={"scan": 1})
    other = make_run(datasets=("int",), tracks=("plain",), rounds=5)
    both = replace(takes(), samples=(*takes().samples, *other.samples))
    assert recommend(stored=both, uses={TAKE: 5}).question.dataset == "eq", "the only one that has it"
    with pytest.raises(RunError, match="has no figure of: take 100 rows"):
        recommend(stored=both, datasets="int", uses={TAKE: 5})
    with pytest.raises(RunError, match=r"has no figures for datasets=\('nosuch',\)\.\n  Choose one by datasets:\n  eq"):
        recommend(stored=takes(), datasets="nosuch")
    with pytest.raises(SystemExit) as ended:
        cli.main(["recommend", "--from", "reference", "--datasets", "eq", "--use", "take 7 rows"])
    assert ended.value.code != 0
    shown = capsys.readouterr().err
    assert "has no figure of: take 7 rows" in shown
    assert "run access --datasets eq --operations 'read|take[rows=7" in shown


def test_needs_of_a_stored_run_are_measured_where_it_has_figures() -> None:
    told = takes()
    able = {name: changed(about, capabilities=("projection",)) for name, about in told.info.variants.items()}
    run = replace(told, info=changed(told.info, variants=able))
    answer = recommend(stored=run, needs=["random-access"], accept="young")
    ranked = [each.candidate.variant for each in answer.found.ranked]
    # Feather's take is 40 ms of a read of 42. Lance was not asked for rows, and declares that it gives some.
    assert "orc[engine=pyarrow,codec=none]" in ranked
    assert FEATHER not in ranked
    assert "lance[engine=pylance]" in ranked
    dropped = dict(answer.found.dropped)
    assert dropped[FEATHER].startswith(f"lacks random-access: {TAKE} takes 1.00 of reading all, 0.9")
    assert dropped[CSV] == f"lacks random-access: {TAKE} by read-all"
    assert dropped["pickle[engine=pandas]"] == "cannot: random-access"


def test_formats_choose_among_the_variants_of_a_stored_run(tmp_path: Path) -> None:
    run = read_run(write_run(made(), tmp_path / "run"))
    answer = recommend(stored=run, formats="parquet|orc", formats_not="orc")
    assert [each.candidate.variant for each in answer.found.ranked] == [PARQUET]
    assert answer.found.baseline is not None, "the baseline is compared, whatever is chosen"
    assert "--formats 'parquet|orc' --formats-not orc" in answer.again
    without = recommend(stored=run, formats_not="parquet")
    assert PARQUET not in [each.candidate.variant for each in without.found.ranked]
    assert PARQUET in [each.candidate.variant for each in recommend(stored=run).found.ranked]
    with pytest.raises(RunError, match=r"leave no variant of .*\n?.*The formats of the run are avro, csv"):
        recommend(stored=run, formats="nosuch")
    with pytest.raises(PlanError, match="is not a regular expression"):
        recommend(stored=run, formats="(")


def test_a_variant_without_a_counted_use_stays_in_the_race() -> None:
    """The machine was busy, which says nothing about the variant."""
    told = takes()
    unsettled = tuple(
        changed(sample, unsettled=sample.operation == TAKE and sample.variant == PARQUET) for sample in told.samples
    )
    run = replace(told, samples=unsettled)
    preferences = Preferences(
        weights={"use": 1.0}, uses=(Use(TAKE, "take 100 rows", 10),), titles={TAKE: "take 100 rows"}
    )
    (candidates,) = summary_of(run).questions.values()
    assert PARQUET in list(uncounted(candidates, preferences))
    assert FEATHER not in list(uncounted(candidates, preferences))


def test_a_race_does_not_continue_for_variants_that_are_not_accepted() -> None:
    """After seven rounds of everything, variants that are not accepted get no more."""
    found = recommend(stored=made(baseline=CSV)).found
    assert set(contending(found)) <= {each.candidate.variant for each in found.ranked}
