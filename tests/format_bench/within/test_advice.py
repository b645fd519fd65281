"""Which settings are advised: the default unless a change is clearly better, and of equal ones the simplest."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench_runner.results.records import read_run
from bench_runner.results.statistics import Ratio
from bench_runner.run import choosing
from bench_runner.run.watcher import Watcher
from bench_runner.variants import variant_of
from format_bench import cli, recommend
from format_bench.errors import RequestError
from format_bench.within import others
from format_bench.within.advice import written_lines
from format_bench.within.proposal import Proposal, Proposals, kept
from reports.analysis.recommendation.within import Change
from tests.reports.factory import make_run, make_sample, write_run

DEFAULT, SINGLE, COMBINED = (
    "parquet[engine=pyarrow,codec=snappy]",
    "parquet[engine=pyarrow,codec=zstd,level=1]",
    "parquet[engine=pyarrow,codec=zstd,level=1,page_version=2.0]",
)
PROPOSED = Proposals(
    "parquet",
    (
        Proposal(DEFAULT, "", 0, {"compression": "snappy"}),
        Proposal(SINGLE, "codec zstd at level 1", 1, {"compression": "zstd", "compression_level": 1}),
        Proposal(COMBINED, "codec zstd at level 1, page_version=2.0", 2, {"data_page_version": "2.0"}),
    ),
)


@pytest.fixture
def run_of(tmp_path: Path):
    def make(read_ms: Mapping[str, float], noise_share: float = 0.01) -> Path:
        """Return a stored run in which reading takes these times, with noise; saves and sizes are equal."""
        samples = []
        for number, (round_number, variant) in enumerate(itertools.product(range(1, 10), read_ms)):
            noise = 1 + noise_share * ((number * 7) % 5 - 2)
            memory = {"peak_private_bytes": 50_000_000}
            save = {"wall_ns": 100_000_000, "size_bytes": 1_000_000, **memory}
            read = {"wall_ns": int(read_ms[variant] * 1e6 * noise), **memory}
            about = {"variant": variant, "round": round_number}
            samples.append(make_sample(operation="save", figures=save, fidelity=None, position=2 * number, **about))
            samples.append(make_sample(operation="read", figures=read, position=2 * number + 1, **about))
        run = make_run(datasets=("eq",), tracks=("plain",), rounds=1)
        folder = write_run(replace(run, samples=tuple(samples), fidelity=()), tmp_path / "run")
        PROPOSED.keep(folder)
        return folder

    return make


def advised(folder: Path) -> str:
    answer = recommend(stored=folder, weights={"read": 1})
    assert answer.within is not None
    return str(answer.within.advised.change.variant)


@pytest.mark.parametrize(
    ("default_ms", "single_ms", "combined_ms", "right"),
    [
        (100, 100, 100, DEFAULT),
        (100, 97, 96, DEFAULT),
        (100, 80, 120, SINGLE),
        (100, 80, 60, COMBINED),
        (100, 60, 60.2, SINGLE),
        (100, 60.2, 60, SINGLE),
        (60, 100, 100, DEFAULT),
    ],
)
def test_the_simplest_of_the_clearly_better_is_advised(
    default_ms: float, single_ms: float, combined_ms: float, right: str, run_of
) -> None:
    assert advised(run_of({DEFAULT: default_ms, SINGLE: single_ms, COMBINED: combined_ms})) == right


def test_the_advice_shows_the_default_the_best_single_change_and_the_best_combination(run_of) -> None:
    folder = run_of({DEFAULT: 100, SINGLE: 80, COMBINED: 50})
    answer = recommend(stored=folder, weights={"read": 1})
    assert answer.within is not None
    assert [row.title for row in answer.within.rows] == ["default", "best single change", "best combination"]
    assert [round(row.ranked.score, 1) for row in answer.within.rows] == [1.0, 0.8, 0.5]
    ratio = answer.within.rows[2].ranked.against_first
    assert isinstance(ratio, Ratio)
    assert ratio.low is not None
    assert 0.45 < ratio.low < 0.5 < (ratio.high or 0) < 0.55
    assert answer.save == (
        'pq.write_table(\n    pa.Table.from_pandas(df, preserve_index=False),\n    "data.parquet",\n'
        "    data_page_version='2.0',\n)"
    )


def test_the_terminal_and_the_json_show_the_advice(run_of) -> None:
    folder = run_of({DEFAULT: 100, SINGLE: 80, COMBINED: 50})
    words = ["recommend", "--from", str(folder), "--prefer", "read=1"]
    shown = CliRunner().invoke(cli.cli, words)
    assert shown.exit_code == 0
    for said in (
        "settings of parquet: codec zstd at level 1, page_version=2.0",
        "compared with the default: 0.5",
        'as JSON: {"write_table": {"data_page_version": "2.0"}}',
        "best single change",
    ):
        assert said in shown.stdout
    shape = json.loads(CliRunner().invoke(cli.cli, [*words, "--json"]).stdout)["within"]
    assert shape["advised"] == COMBINED
    assert [row["variant"] for row in shape["rows"]] == [DEFAULT, SINGLE, COMBINED]


def test_a_default_that_is_kept_is_said_with_the_reason(run_of) -> None:
    folder = run_of({DEFAULT: 100, SINGLE: 99, COMBINED: 101})
    shown = CliRunner().invoke(cli.cli, ["recommend", "--from", str(folder), "--prefer", "read=1"]).stdout
    assert "keep the default settings of parquet" in shown
    assert "none of the 2 other variants measured is clearly better by at least 5%" in shown


def test_all_figures_come_below_the_advice_and_name_no_other_variant_as_recommended(run_of) -> None:
    folder = run_of({DEFAULT: 100, SINGLE: 99, COMBINED: 98})
    words = ["recommend", "--from", str(folder), "--prefer", "read=1", "--explain"]
    shown = CliRunner().invoke(cli.cli, words).stdout
    assert "keep the default settings of parquet" in shown
    assert "as multiples of the best" in shown
    assert "all samples:" in shown
    assert "recommended:" not in shown
    assert "without measuring again" not in shown


def test_a_gain_that_the_rounds_do_not_show_is_named_with_the_next_step(run_of) -> None:
    for combined_ms, noise_share, has_hint in ((98, 0.01, False), (80, 0.4, True)):
        folder = run_of({DEFAULT: 100, SINGLE: 99, COMBINED: combined_ms}, noise_share)
        shown = CliRunner().invoke(cli.cli, ["recommend", "--from", str(folder), "--prefer", "read=1"]).stdout
        assert "keep the default settings of parquet" in shown
        assert ("a longer measurement (--budget) tells" in " ".join(shown.split())) == has_hint
        shutil.rmtree(folder)


def test_a_damaged_file_of_proposals_is_an_error(run_of) -> None:
    folder = run_of({DEFAULT: 100, SINGLE: 80})
    (folder / "within.json").write_text("{}")
    result = CliRunner().invoke(cli.cli, ["recommend", "--from", str(folder)])
    assert result.exit_code == 2
    assert "within.json is not valid" in result.output


def test_lines_of_python_sort_if_the_rows_were_sorted() -> None:
    change = Change(variant_of(SINGLE), "", 1, {"compression": "zstd"}, "day")
    assert ".sort_by('day')" in written_lines(change, "pandas").save
    assert written_lines(change, "arrow").save.startswith("pq.write_table(\n    table.sort_by('day'),")


@pytest.mark.parametrize("name", others.CHANGES)
def test_changes_of_other_formats_are_settings_that_they_have(name: str) -> None:
    found = others.proposals(name)
    assert (found[0].change, found[0].parts) == ("", 0)
    assert len(found) == len({each.variant for each in found}) > 6


def test_proposals_are_kept(tmp_path: Path) -> None:
    assert kept(tmp_path) is None
    PROPOSED.keep(tmp_path)
    assert kept(tmp_path) == PROPOSED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"within": "csv"}, "within must be 'parquet', 'feather', 'orc' or 'lance'"),
        ({"within": "parquet", "formats": "zstd"}, "within and formats cannot be combined"),
        ({"within": "parquet", "stored": "reference"}, "within and stored cannot be combined"),
        ({"allow_reorder": True}, "allow_reorder needs within='parquet'"),
        ({"within": "orc", "allow_reorder": True}, "allow_reorder needs within='parquet' (got 'orc')"),
        ({"within": "parquet", "allow_reorder": True, "uses": {"take[rows=10]": 5}}, "cannot be combined with"),
    ],
)
def test_a_wrong_combination_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(RequestError) as raised:
        recommend(**{"datasets": "core", **given})  # type: ignore[arg-type]
    assert said in str(raised.value)


@pytest.mark.slow
@pytest.mark.usefixtures("runs_at_rest")
def test_settings_are_measured_and_advised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is seldom idle during tests, so no figures are required here."""
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(choosing, "LEAST_BUDGET_S", 2.0)
    monkeypatch.setattr(choosing, "PREPARATION_S", 2.0)
    watcher, notes = Watcher(), []
    monkeypatch.setattr(watcher, "note", notes.append)
    asked = {"within": "parquet", "allow_reorder": True, "budget_s": 6, "out": tmp_path / "out", "seed": 1}
    answer = recommend(datasets="core", rows=5_000, watcher=watcher, **asked)  # type: ignore[arg-type]
    assert notes[0] == "takes about 0.1 min (--budget): settings of one format on 5,000 rows"
    proposals = kept(tmp_path / "out")
    assert proposals is not None
    ran = {sample.variant for sample in read_run(tmp_path / "out").samples if not sample.variant.startswith("raw-io")}
    assert ran == {each.variant for each in proposals.proposals}
    assert answer.again.startswith("format-bench recommend --from")
