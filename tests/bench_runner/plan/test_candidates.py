"""The variants that take part: those of a suite, those that a user names, and those of third-party packages."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.errors import AdapterError, RefusedSetting
from bench_runner.errors import PlanError
from bench_runner.plan import candidates
from bench_runner.plan.chain import Plan
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.suites import SUITES
from bench_runner.suites.rules import WithCodecs
from bench_runner.variants import variant_of
from format_bench.commands import listings
from format_bench.commands.listings import LISTINGS
from formats.registry import FORMATS

EXAMPLE = Path(__file__).parents[2] / "contracts" / "example"
SPELLED = "parquet[engine=polars,codec=zstd,level=9]"
OF_TABLES = [name for name, suite in SUITES.items() if suite.kind.has_columns]


def plan(suite: str, **request: object) -> Plan:
    return make_plan([SUITES[suite]], Request(**{"rows": 1000, "datasets": ("^eq$",), **request}))  # type: ignore[arg-type]


def tracks(made: Plan) -> dict[str, str]:
    """Return variant -> track, without raw I/O."""
    return {chain.variant: chain.conditions.track for chain in made.chains if not chain.is_raw_io}


# --- the baseline --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wishes", [{"formats": ("pickle",)}, {"formats_not": ("csv", "excel", "xml")}])
def test_the_baseline_takes_part_whatever_the_patterns_say(wishes: dict[str, tuple[str, ...]]) -> None:
    without = tracks(plan("choice", **wishes))
    # The first baseline is listed by the suite, the second one is not.
    for plain in ("csv[engine=pandas]", "parquet[engine=pandas,codec=snappy]"):
        assert plain not in without
        assert tracks(plan("choice", baseline=plain, **wishes)) == {**without, plain: "choice"}


def test_the_baseline_alone_is_nothing_to_measure() -> None:
    with pytest.raises(PlanError, match="No variant matches"):
        plan("choice", formats=("pickle",), formats_not=("pickle",), baseline="csv[engine=pandas]")


# --- spelled variants ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suite", "track"),
    [("tabular", "spelled"), ("engines", "spelled"), ("choice", "choice"), ("compression", "codecs")],
)
def test_a_spelling_gives_exactly_that_variant_in_every_suite_of_tables(suite: str, track: str) -> None:
    made = plan(suite, formats=(SPELLED,))
    assert tracks(made) == {SPELLED: track}
    assert {chain.conditions.threads for chain in made.chains if not chain.is_raw_io} == set(SUITES[suite].threads)


@pytest.mark.parametrize(
    ("suite", "listed", "track"),
    [
        ("tabular", "parquet[engine=pyarrow,codec=none]", "plain"),
        ("tabular", "parquet[engine=pyarrow,codec=snappy]", "default"),
        ("engines", "parquet[engine=polars,codec=none]", "plain"),
    ],
)
def test_a_spelling_that_the_suite_lists_is_on_the_suites_track(suite: str, listed: str, track: str) -> None:
    assert tracks(plan(suite, formats=(listed,))) == {listed: track}


def test_a_spelling_is_added_to_other_patterns() -> None:
    assert tracks(plan("tabular", formats=(f"{SPELLED}|pickle", "xml"), tracks=("plain",))) == {
        SPELLED: "spelled",
        "pickle[engine=pandas]": "plain",
        "xml[engine=pandas]": "plain",
    }


def test_a_spelling_takes_in_what_a_suite_leaves_out() -> None:
    assert tracks(plan("engines", formats=("lance[engine=pylance]",))) == {"lance[engine=pylance]": "spelled"}


def test_of_a_spelling_that_is_dropped_nothing_is_left() -> None:
    with pytest.raises(PlanError, match="No variant matches"):
        plan("tabular", formats=(SPELLED,), formats_not=("polars",))


@pytest.mark.parametrize("suite", OF_TABLES)
@pytest.mark.parametrize(
    ("spelled", "words"),
    [
        ("parquet[engine=polars,codec=zstd,level=99]", r"level=99 is not possible \(allowed: 1 to 22\)"),
        ("parquet[engine=polras]", r"engine=polras is not possible \(allowed: pyarrow, pandas, polars"),
        ("parquet[codec=zstandart]", r"codec=zstandart is not possible \(allowed: none"),
        ("parquet[codex=zstd]", r"no setting is called 'codex' \(known: engine, codec, level"),
        ("parquet[codec=none,level=3]", "parquet.*level"),
    ],
)
def test_a_wrong_setting_of_a_spelling_is_named(suite: str, spelled: str, words: str) -> None:
    with pytest.raises(RefusedSetting, match=words):
        plan(suite, formats=(spelled,))


def test_a_spelling_of_a_name_that_nothing_has_names_the_nearest() -> None:
    with pytest.raises(PlanError, match=r"'parquett\[codec=zstd\]' matches no variant \(did you mean 'parquet'\?\)"):
        plan("tabular", formats=("parquett[codec=zstd]",))


# --- formats left out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", OF_TABLES)
def test_every_format_takes_part_or_is_left_out_with_a_reason(suite: str) -> None:
    present = {variant_of(chain.variant).format_name for chain in plan(suite).chains}
    reasons = candidates.names_left_out(SUITES[suite])
    assert present & set(reasons) == set()
    without = set(FORMATS) - present - set(reasons)
    # A format takes part in a suite of codecs if it supports at least one of the suite's codecs.
    rule = SUITES[suite].variants
    wanted = set(rule.codecs) if isinstance(rule, WithCodecs) else set()
    assert all(
        wanted.isdisjoint({*map(str, engine.settings["codec"].allowed), *engine.codec_names})
        for name in without
        for engine in FORMATS.engines(name)[:1]
        if "codec" in engine.settings
    )
    assert without == set() or wanted


@pytest.mark.parametrize("suite", OF_TABLES)
def test_what_is_left_out_exists(suite: str) -> None:
    assert set(candidates.names_left_out(SUITES[suite])) <= set(FORMATS)


@pytest.mark.parametrize("asked", ["lance", "csv|lance"])
def test_a_format_that_a_suite_leaves_out_is_refused_with_reason_and_remedy(asked: str) -> None:
    with pytest.raises(PlanError) as raised:
        plan("engines", formats=(asked,))
    assert "the suite engines leaves 'lance' out: have fewer than 2 calls" in str(raised.value)
    assert "formats='lance[engine=pylance]'" in str(raised.value)


def test_what_one_suite_leaves_out_may_be_in_another_of_the_same_run() -> None:
    made = make_plan([SUITES["tabular"], SUITES["engines"]], Request(rows=1000, datasets=("^eq$",), formats=("lance",)))
    assert {chain.suite for chain in made.chains if not chain.is_raw_io} == {"tabular"}


def test_the_codecs_that_are_asked_for_take_in_what_the_suite_leaves_out() -> None:
    assert "csv[engine=pandas,codec=zstd,level=1]" not in tracks(plan("compression"))
    assert "csv[engine=pandas,codec=zstd,level=1]" in tracks(plan("compression", codecs=("zstd",)))


def test_a_format_that_has_none_of_the_codecs_is_not_told_as_being_there() -> None:
    with pytest.raises(PlanError, match="'excel' matches no variant") as raised:
        plan("compression", formats=("excel",))
    assert "excel" not in str(raised.value).partition("There are ")[2]


def test_the_list_of_suites_shows_every_reason_for_leaving_out() -> None:
    shown = " ".join(" ".join(LISTINGS["suites"]()).split())
    for suite in SUITES.values():
        for names, reason in suite.variants.left_out.items():
            assert f"without {names}: {reason}" in shown
    few = [name for name, reason in candidates.names_left_out(SUITES["engines"]).items() if "calls" in reason]
    assert {"f3", "lance", "vortex"} <= set(few)
    assert f"without {', '.join(few)}: have fewer than 2 calls" in shown


def test_the_list_of_cells_holds_every_suite_although_they_differ_in_rows() -> None:
    """`eq` has a million rows in the suite compression and other numbers of rows in other suites."""
    cells = list(LISTINGS["cells"]())
    assert {cell.partition("/")[0] for cell in cells} == set(SUITES)
    assert "compression/save/webface/parquet[engine=pyarrow,codec=none]" in cells


def test_the_list_of_cells_needs_no_suite_to_agree_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: replace(SUITES["tabular"], name=name, rows=rows) for name, rows in (("a", 10), ("b", 20))}
    monkeypatch.setattr(listings, "SUITES", few)
    assert {cell.partition("/")[0] for cell in LISTINGS["cells"]()} == {"a", "b"}


# --- third parties -------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Act as if a package were installed, so that Python finds modules and entry points in its folder."""

    def install(folder: Path) -> None:
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        FORMATS.__dict__.pop("entries", None)

    yield install
    monkeypatch.undo()
    FORMATS.__dict__.pop("entries", None)


TWO_CALLS = """
from example_format import ArrowStream

class First(ArrowStream):
    format = "two-calls"

class Second(First):
    engine = "other"

ENGINES = (First, Second)
"""


@pytest.fixture
def two_calls(installed: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "two_calls.py").write_text(TWO_CALLS)
    about = tmp_path / "two_calls-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: two-calls\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[format_bench.formats]\ntwo-calls = two_calls:ENGINES\n")
    installed(EXAMPLE)
    installed(tmp_path)


@pytest.mark.parametrize(("suite", "track"), [("tabular", "plain"), ("choice", "choice")])
def test_a_third_partys_format_takes_part(installed: Callable[[Path], None], suite: str, track: str) -> None:
    installed(EXAMPLE)
    assert tracks(plan(suite))["arrow-stream[engine=pyarrow]"] == track


def test_a_third_partys_format_with_one_call_is_not_in_the_suite_of_engines(installed: Callable[[Path], None]) -> None:
    installed(EXAMPLE)
    assert not any(variant.startswith("arrow-stream") for variant in tracks(plan("engines")))
    with pytest.raises(PlanError, match="the suite engines leaves 'arrow-stream' out: have fewer than 2 calls"):
        plan("engines", formats=("arrow-stream",))
    spelled = "arrow-stream[engine=pyarrow,batch_rows=500]"
    assert tracks(plan("engines", formats=(spelled,))) == {spelled: "spelled"}


def test_a_third_partys_calls_are_compared(two_calls: None) -> None:
    both = {f"two-calls[engine={engine}]" for engine in ("pyarrow", "other")}
    assert {variant for variant in tracks(plan("engines")) if variant.startswith("two-calls")} == both
    assert {variant for variant in tracks(plan("choice")) if variant.startswith("two-calls")} == {
        "two-calls[engine=pyarrow]"
    }


def test_a_third_partys_format_is_found_by_its_name_and_guessed_at(installed: Callable[[Path], None]) -> None:
    installed(EXAMPLE)
    assert {variant_of(variant).format_name for variant in tracks(plan("tabular", formats=("arrow-stream",)))} == {
        "arrow-stream"
    }
    with pytest.raises((PlanError, AdapterError), match="did you mean 'arrow-stream'"):
        plan("tabular", formats=("arow-stream",))
