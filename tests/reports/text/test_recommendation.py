"""How a recommendation is shown: the answer on one screen, its sources below, and everything as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from bench_runner.results.records import Conditions
from bench_runner.results.statistics import Ratio
from bench_runner.variants import Variant, variant_of
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.candidates import Candidate, Question, summary_of
from reports.analysis.recommendation.eligibility import eligible
from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.recommend import recommend
from reports.text.recommendation import _compared, show
from reports.text.recommendation_json import as_json
from tests.reports.analysis.recommendation.invented import candidate
from tests.reports.factory import make_run

LINES, COLUMNS = 24, 100
"""Size of a usual terminal."""
SALES = (
    candidate("parquet[engine=pyarrow,codec=zstd,level=1]", read=10, save=14, size=2.2, noise=0.05),
    candidate("feather[engine=pyarrow,codec=zstd,level=1]", read=9, save=12, size=3.4, noise=0.05),
    candidate("parquet[engine=polars,codec=zstd,level=1]", read=11, save=13, size=2.2, noise=0.05),
    candidate("feather[engine=pyarrow,codec=lz4]", read=8, save=9, size=6, noise=0.05),
    candidate("parquet[engine=pyarrow,codec=snappy]", read=10, save=16, size=3, noise=0.05),
    candidate("orc[engine=pyarrow,codec=zstd]", read=15, save=30, size=2, noise=0.05),
    candidate("parquet[engine=duckdb,codec=zstd]", read=45, save=80, size=2, noise=0.05),
    candidate("json[engine=pandas,double_precision=15,codec=zstd,level=1]", read=300, save=200, size=3, noise=0.05),
    candidate("f3[codec=none]", read=6, save=12, size=2, stage="experimental", ours=True, rounds=range(1, 6)),
    candidate("pickle[engine=pandas,codec=zstd,level=1]", read=6, save=9, size=3.5, stage="young", rounds=range(1, 6)),
)
CSV = candidate("csv[engine=pandas]", read=90, save=130, size=12, losses=("dates become text",), rounds=range(1, 6))
PYTHON = ("import pyarrow as pa", "import pyarrow.parquet as pq"), "pq.write_table(df)", "df = pq.read_table()"


def _dropped(*told: tuple[str, str]) -> tuple[tuple[Variant, str], ...]:
    return tuple((variant_of(variant), reason) for variant, reason in told)


def answered(
    kept: Sequence[Candidate] = SALES, preferences: Preferences | None = None, now: Candidate | None = CSV, **told: Any
) -> Answer:
    dropped = _dropped(("xml[engine=pandas]", "changes this data: dates become text"), ("lance", "cannot: append"))
    found = recommend(kept, dropped, preferences or Preferences(), now)
    question = Question("table", 150_000, "lab-1", Conditions(track=""))
    lines = PYTHON if found.ranked else ((), "", "")
    again = {
        "about": "sales.csv",
        "yours": True,
        "folder": "results/mine",
        "again": "format-bench recommend --from results/mine",
    }
    return Answer(question, found, ("warning: the disk is busy",), *lines, **{**again, **told})


def printed(answer: Answer, capsys: pytest.CaptureFixture[str], *, explain: bool = False) -> list[str]:
    show(answer, Console(width=COLUMNS), explain=explain)
    return capsys.readouterr().out.splitlines()


def first_screen(lines: Sequence[str]) -> list[str]:
    """Return the lines up to the empty line after the grid."""
    header = next(number for number, line in enumerate(lines) if line.startswith("variant"))
    end = next((number for number in range(header, len(lines)) if not lines[number]), len(lines))
    return list(lines[:end])


def test_the_answer_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    lines = first_screen(printed(answered(), capsys))
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].startswith("sales.csv, 150,000 rows, measured on lab-1")
    assert lines[2].startswith("recommended: ")
    text = "\n".join(lines)
    about = ("your CSV, compared with it: ", "how sure: ", "of the established formats", "read time 50%")
    for told in (*about, *PYTHON[0]):
        assert told in text, told
    assert "--accept experimental" in lines[-1]


def test_more_to_say_leaves_fewer_variants(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("from pathlib import Path", "from bench_runner.registries import build_loaded", "import pyarrow as pa")
    long = f'build_loaded("{SALES[0].variant}").save(pa.Table.from_pandas(df, preserve_index=False), Path("data"))'
    more = replace(answered(), imports=lines, save=long, read=long, cautions=("other languages do not read them",))
    screen = first_screen(printed(more, capsys))
    assert long in screen, "lines to paste are not wrapped"
    assert sum(-(-max(len(line), 1) // COLUMNS) for line in screen) <= LINES + 3
    assert sum("your CSV" not in line and line.split()[-1] in ("5", "7") for line in screen if line) == 5


def test_lines_of_parts_without_room_follow_below_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    short = replace(answered(), parts=(("take 10 rows (rows: a list)", "df = taken(rows)"),))
    assert "df = taken(rows)  # take 10 rows (rows: a list)" in first_screen(printed(short, capsys))
    parts = tuple((f"use {number}", "opened = one(path)\ndf = opened.two()") for number in range(3))
    lines = printed(replace(answered(), parts=parts), capsys)
    screen = first_screen(lines)
    assert len(screen) <= LINES
    assert "opened = one(path)" not in screen
    assert lines[len(screen) + 1 : len(screen) + 4] == ["# use 0", "opened = one(path)", "df = opened.two()"]


def test_a_variant_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = first_screen(printed(answered(), capsys))
    header = next(number for number, line in enumerate(lines) if line.startswith("variant"))
    rows = [line for line in lines[header + 1 :] if "--accept" not in line]
    beside = ["f3 (experimental, ours)", "pickle[codec=zstd] (young)", "your CSV"]
    assert [line.split("  ")[0] for line in rows[-3:]] == beside
    assert len(rows) == 7
    assert all(line.split()[-1] in ("5", "7") for line in rows), "each ends with its rounds"


def test_too_few_rounds_are_reported_with_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    few = [replace(each, figures={name: {1: by[1]} for name, by in each.figures.items()}) for each in SALES]
    answer = answered(few)
    text = "\n".join(printed(answer, capsys))
    assert "how sure: unknown, too few rounds; a longer measurement (--budget) gives more\n" in text
    assert "P(best)" not in text
    lost = replace(answer, found=replace(answer.found, dropped=_dropped(("orc", "no round was counted"))))
    assert "(1 variants have no counted round)\n" in "\n".join(printed(lost, capsys))
    busy = {"read": SimpleNamespace(**{**vars(few[0].cells["read"]), "uncounted": 2})}
    restless = answered([replace(each, cells={**each.cells, **busy}) for each in few])
    assert "too few rounds, as the machine was busy ('doctor'" in "\n".join(printed(restless, capsys))


def test_a_call_that_is_younger_than_its_format_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    retired = candidate("parquet[engine=fastparquet,codec=zstd]", stage="young")
    text = "\n".join(printed(answered([*SALES, retired]), capsys, explain=True))
    assert "parquet[engine=fastparquet,codec=zstd] is young: as declared" in text
    assert "pickle is young: as declared" in text
    assert "parquet is young" not in text


def test_data_that_do_not_allow_an_operation_are_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "no figure of scan 1% by range: refused: no shuffled column takes a condition of the kind range"
    found = recommend((), _dropped(("a", reason), ("b", reason), ("c", "cannot: nested")), Preferences())
    lines = printed(replace(answered(), found=found), capsys)
    assert "no measured variant satisfies the needs" in lines
    assert " ".join(" ".join(lines).split()).count(reason) == 1


@pytest.mark.parametrize("reason", ["no round was counted", "no figure of query 1%: no round was counted"])
def test_a_run_of_which_no_round_counts_blames_the_machine_and_not_the_needs(
    reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    none = recommend((), _dropped(("a", reason), ("b", reason)), Preferences())
    text = " ".join(" ".join(printed(replace(answered(), found=none), capsys)).split())
    assert "no round was counted, as the machine was busy" in text
    assert "satisfies the needs" not in text
    some = recommend((), _dropped(("a", reason), ("b", "cannot: nested")), Preferences())
    text = " ".join(" ".join(printed(replace(answered(), found=some), capsys)).split())
    assert "1 of 2 variants have no counted round, as the machine was busy" in text


def test_ties_show_the_probability_of_a_clear_winner(capsys: pytest.CaptureFixture[str]) -> None:
    even = [candidate("one", noise=0.1), candidate("two", noise=0.1)]
    text = "\n".join(printed(answered(even), capsys))
    assert "tied with it (=): " in text
    assert "0.975" in text
    clear = "\n".join(printed(answered([candidate("one"), candidate("two", read=90)]), capsys))
    assert "tied" not in clear


def test_ties_are_named_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    even = [candidate(f"format{number}[codec=zstd]", noise=0.1) for number in range(20)]
    (told,) = [line for line in printed(answered(even), capsys) if "tied with it" in line]
    assert len(told) <= COLUMNS
    assert " more" in told


def test_five_weights_fit_a_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    weights = dict.fromkeys(("read", "save", "size", "read_memory", "save_memory"), 1.0)
    lines = first_screen(printed(answered(preferences=Preferences(weights=weights)), capsys))
    assert max(map(len, lines)) <= COLUMNS
    assert "your CSV" in "\n".join(lines)
    assert len(lines) <= LINES + 3


@pytest.mark.parametrize(
    ("name", "ratio", "told"),
    [
        ("read", 9.04, "9 times the read time"),
        ("read", 0.5, "0.5 times the read time"),
        ("save", 2.96, "3 times the save time"),
        ("save", 12.4, "12 times the save time"),
        ("read", 1.02, "the same read time"),
        ("size", 11.2, "11 times the size"),
        ("size", 0.087, "0.087 times the size"),
        ("size", 1.0, "the same size"),
        ("read_memory", 3.5, "3.5 times the read peak memory"),
        ("save_memory", 1.01, "the same save peak memory"),
        ("use", 3.0, "3 times the time a day"),
        ("take[rows=1]", 0.5, "0.5 times the time to take 1 row"),
    ],
)
def test_the_baseline_is_compared_in_words(name: str, ratio: float, told: str) -> None:
    wished = Preferences(titles={"take[rows=1]": "take 1 row"})
    assert _compared(name, Ratio(ratio, None, None, 1, None), wished.title(name)) == told


def test_a_difference_that_may_be_chance_has_a_perhaps() -> None:
    assert _compared("read", Ratio(1.62, 0.9, 1.8, 7, True), "read time") == "perhaps 1.6 times the read time"
    assert _compared("read", Ratio(1.02, 0.9, 1.8, 7, True), "read time") == "the same read time"


def test_the_baseline_is_shown_with_its_changes(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(printed(answered(), capsys))
    assert "your CSV changes this data: dates become text" in text
    lossy_too = tuple(replace(each, cells=CSV.cells) for each in SALES)
    assert "your CSV changes" not in "\n".join(printed(answered(lossy_too), capsys))
    first = answered().found.ranked[0].candidate
    assert "nothing to change" in "\n".join(printed(answered(now=first), capsys))
    assert "(yours now)" in "\n".join(printed(answered(now=SALES[4]), capsys))
    nothing = printed(answered(now=candidate("json[engine=pandas]", rounds=range(0))), capsys)
    assert "  your JSON has no figures to compare: no round was counted" in nothing
    by_us = printed(answered(yours=False), capsys)
    assert any(line.startswith("  plain CSV, compared with it: 9") for line in by_us)
    assert not any("compared with it" in line for line in printed(answered(now=None), capsys))


def test_the_gain_of_accepting_more_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    told = [line for line in printed(answered(), capsys) if "--accept" in line]
    assert re.match(r"f3\[codec=none\] \(experimental, ours\) scores 1\.\d times better; ", told[-1])
    assert "--accept experimental" in told[-1]
    worse = [*SALES[:5], candidate("e", read=90, save=90, size=90, stage="experimental")]
    assert "no young or experimental format is clearly better" in "\n".join(printed(answered(worse), capsys))
    everything = Preferences(accept="experimental")
    text = "\n".join(printed(answered(preferences=everything, cautions=("experimental, ours: why",)), capsys))
    assert "recommended: f3[codec=none]" in text
    assert "  experimental, ours: why" in text
    assert "established formats" not in text
    assert "--accept" not in text


def test_a_hint_where_only_younger_formats_satisfy(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(printed(answered(SALES[-2:], Preferences(needs=("types",))), capsys))
    assert "no measured variant is established and satisfies the needs (types)" in text
    assert "--accept young would recommend pickle[engine=pandas,codec=zstd,level=1] (young)" in text
    assert "--accept experimental would recommend f3[codec=none] (experimental, ours)" in text
    assert "recommended:" not in text


def test_below_the_answer_everything_is_shortened_with_the_command_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(datasets=("eq",), rounds=7)
    ((question, candidates),) = summary_of(run).questions.items()
    kept, dropped = eligible(candidates, Preferences(), 60_000_000)
    answer = replace(answered(), question=question, found=recommend(kept, dropped, Preferences(), None))
    lines = printed(answer, capsys)
    below = lines[len(first_screen(lines)) :]
    assert len(below) <= 12
    text = "\n".join(below)
    assert "figures of the recommended variant: reads in" in text
    assert "left out: " in text
    assert "without measuring again: format-bench recommend --from results/mine --explain" in text
    assert below[-1].endswith("docs/limits.md")
    whole = "\n".join(printed(answer, capsys, explain=True))
    for each in answer.found.ranked:
        assert each.candidate.variant.partition("[")[0] in whole
    assert all(variant in whole for variant, _ in dropped)
    assert "all samples: results/mine" in whole
    assert "best in" in whole
    assert "is young: one implementation" in whole
    assert "Pareto" in whole
    assert max(map(len, whole.splitlines())) <= COLUMNS


def test_the_best_between_two_bandwidths_is_not_called_best_below_the_larger(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = [
        candidate("large", save=10, read=10, size=100),
        candidate("middle", save=20, read=20, size=50),
        candidate("small", save=60, read=60, size=20),
    ]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    answer = answered(kept)
    text = " ".join(" ".join(printed(replace(answer, found=found), capsys)).split())
    assert "by time alone, middle is best at a storage bandwidth of 750 to 5,000 MB/s (" in text
    text = " ".join(" ".join(printed(replace(answer, found=found), capsys, explain=True)).split())
    assert "small is best below a storage bandwidth of 750 MB/s (" in text
    assert "), from there to 5,000 MB/s middle" in text


def test_what_was_left_out_is_grouped_by_reason(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(printed(answered(), capsys))
    assert "left out: xml (would change this data); lance (cannot: append)" in text


def test_the_json_has_everything() -> None:
    answer = answered(preferences=Preferences(weights={"read": 1}), cautions=("a caution",))
    shape = json.loads(as_json(answer))
    first = shape["ranked"][0]
    assert shape["recommended"] == first["variant"]
    assert (first["score"], set(first["values"]), len(first["by_round"]["read"])) == (1, {"read"}, 7)
    assert first["maturity"] == {"stage": "established", "reason": "as declared", "ours": False}
    assert shape["preferences"]["accept"] == "established"
    assert {each["variant"] for each in shape["not_accepted"]} == {SALES[-1].variant, SALES[-2].variant}
    assert shape["baseline"]["variant"] == "csv[engine=pandas]"
    assert set(shape["baseline"]["times_the_recommended"]) == {"read", "save", "size"}
    assert (shape["about"], shape["cautions"], shape["folder"]) == ("sales.csv", ["a caution"], "results/mine")
    assert shape["python"] == {"imports": list(PYTHON[0]), "save": PYTHON[1], "read": PYTHON[2], "uses": {}}
    assert not any(math.isinf(value) for value in _numbers(shape))
    assert json.loads(as_json(answered(now=None)))["baseline"] is None


def _numbers(shape: Any) -> list[float]:
    if isinstance(shape, Mapping):
        return [number for value in shape.values() for number in _numbers(value)]
    if isinstance(shape, list):
        return [number for value in shape for number in _numbers(value)]
    return [shape] if isinstance(shape, float) else []
