"""Facts that hold between runs are measured once, after the rounds, as far as the budget allows, and stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_runner.plan.chain import Chain
from bench_runner.registries import engine_of
from bench_runner.results.information import RunInfo, RunWarning
from bench_runner.run import preparation
from bench_runner.run.known import facts, facts_store
from bench_runner.run.known.facts_store import KeptFacts
from bench_runner.run.launcher import Outcome
from bench_runner.run.options import Options
from bench_runner.run.session import Session
from bench_runner.worker.messages import FidelityFound, Imported, KindOutcome
from tests.bench_runner.run import invented
from tests.bench_runner.run.invented import SECOND, chain

CHAINS = [chain("csv[engine=pandas]"), chain("pickle[engine=pandas]")]


VERDICT = KindOutcome(kind="int8", nulls=False, outcome="exact", how="", bound="", cause="", target_alone="")


class Clock:
    """A clock that advances only by the durations of simulated work."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ns(self) -> int:
        return int(self.seconds * SECOND)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(facts, "now_ns", clock.now_ns)
    return clock


@pytest.fixture
def asked(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(variant, target) of each round trip. Each round trip takes four seconds."""
    asked: list[tuple[str, str]] = []

    class Lanes:
        def __init__(self, *given: object) -> None: ...

        def __enter__(self) -> Lanes:
            return self

        def __exit__(self, *stopped_by: object) -> None: ...

        def outcomes(self, chains: Sequence[Chain]) -> Iterator[tuple[Chain, Outcome]]:
            for each in chains:
                clock.seconds += 4
                asked.append((each.variant.partition("[")[0], each.target.kind))
                yield each, Outcome(answers=[FidelityFound(VERDICT)])

    monkeypatch.setattr(facts, "_Lanes", Lanes)
    return asked


WRITTEN: list[Any] = []


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))
    WRITTEN.clear()


def taken(session: Session) -> facts.MachineFacts:
    preparation.describe_variants(session)
    return facts.taken(session)


def session(tmp_path: Path, *, warnings: Sequence[RunWarning] = (), **options: Any) -> Session:
    return invented.session(
        plan=SimpleNamespace(chains=CHAINS),
        options=Options(**options),
        folder=tmp_path,
        writer=SimpleNamespace(append=lambda *given: WRITTEN.extend(given)),
        info=RunInfo(warnings=list(warnings)),
        began_ns=0,
    )


EVERY = [("csv", "pandas"), ("csv", "arrow"), ("pickle", "pandas"), ("pickle", "arrow")]


@pytest.mark.parametrize(("quick", "option"), [(False, "--budget"), (True, "--quick")])
@pytest.mark.rule(15)
def test_losses_are_looked_for_until_the_budget_is_spent(
    quick: bool, option: str, tmp_path: Path, clock: Clock, asked: list[tuple[str, str]]
) -> None:
    run = session(tmp_path, budget_s=60.0, brief=True, quick=quick)
    known = taken(run)
    assert known.missing
    clock.seconds = 50
    facts.measure_missing(known)
    assert asked == EVERY[:3]
    (warning,) = run.info.warnings
    assert warning.text.startswith("fidelity of 1 variant left out to keep the budget")
    assert f"without {option}" in warning.remedy


@pytest.mark.parametrize("budget_s", [None, 600.0])
def test_all_losses_are_looked_for_where_time_allows_and_what_was_left_out_is_forgotten(
    budget_s: float | None, tmp_path: Path, clock: Clock, asked: list[tuple[str, str]]
) -> None:
    other = RunWarning(text="another run was measuring", remedy="measure again")
    run = session(tmp_path, budget_s=10.0, brief=True)
    clock.seconds = 10
    facts.measure_missing(taken(run))
    assert asked == []
    clock.seconds = 0
    resumed = session(tmp_path, budget_s=budget_s, brief=True, warnings=[other, *run.info.warnings])
    facts.measure_missing(taken(resumed))
    assert asked == EVERY
    assert resumed.info.warnings == [other]


@pytest.mark.parametrize(("budget_s", "share"), [(None, 1.0), (60.0, 0.75), (240.0, 0.75), (600.0, 0.9)])
def test_the_rounds_leave_of_a_budget_what_facts_need(
    budget_s: float | None, share: float, tmp_path: Path, clock: Clock, asked: list[tuple[str, str]]
) -> None:
    known = taken(session(tmp_path, budget_s=budget_s, brief=True))
    assert facts.share_of_rounds(known) == share
    facts.measure_missing(known)
    assert facts.share_of_rounds(taken(session(tmp_path, budget_s=budget_s, brief=True))) == 1.0


@pytest.mark.rule(15)
def test_what_was_found_is_taken_from_then_on_and_fresh_finds_it_again(
    tmp_path: Path, clock: Clock, asked: list[tuple[str, str]]
) -> None:
    first = session(tmp_path, brief=True)
    facts.measure_missing(taken(first))
    found = list(WRITTEN)
    assert (len(found), first.info.facts["fidelity"].new, first.info.facts["fidelity"].kept) == (4, 4, 0)
    WRITTEN.clear()
    second = session(tmp_path, brief=True)
    known = taken(second)
    assert not known.missing
    # They are recorded before the rounds, so that a stopped run has them.
    assert sorted(WRITTEN, key=repr) == sorted(found, key=repr)
    facts.measure_missing(known)
    assert asked == EVERY
    assert second.info.facts["fidelity"].kept == 4
    assert second.info.facts["fidelity"].key == first.info.facts["fidelity"].key
    facts.measure_missing(taken(session(tmp_path, brief=True, fresh=True)))
    assert asked == EVERY + EVERY


@pytest.mark.parametrize("change", ["libraries", "machine", "sources"])
@pytest.mark.rule(15)
def test_another_machine_version_or_source_finds_it_again(
    change: str, tmp_path: Path, clock: Clock, asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    other = session(tmp_path, brief=True)
    if change == "libraries":
        other.info.libraries = {"pandas": "9.9"}
    elif change == "machine":
        other.info.machine.cores = 99
    else:
        monkeypatch.setattr(facts_store, "source_digest", lambda: "another")
    facts.measure_missing(taken(other))
    assert asked == EVERY + EVERY


@pytest.mark.rule(15)
def test_only_the_libraries_that_an_engine_needs_make_its_facts_out_of_date(
    tmp_path: Path, clock: Clock, asked: list[tuple[str, str]]
) -> None:
    """Another run may measure other formats, and then records other libraries."""
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    other = session(tmp_path, brief=True)
    other.info.libraries = {"fastavro": "9.9"}
    assert not taken(other).missing
    (avro, pandas) = chain("avro[engine=fastavro]"), chain("csv[engine=pandas]")
    assert (facts._libraries(other, avro), facts._libraries(other, pandas)) == ({"fastavro": "9.9"}, {})


@pytest.mark.rule(15)
def test_what_a_third_party_s_adapter_does_is_not_kept(
    tmp_path: Path, clock: Clock, asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_store, "SOURCES", ("adapters",))
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    assert asked == EVERY + EVERY


def test_an_undeclared_change_is_looked_at_again(
    tmp_path: Path, clock: Clock, asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An undeclared change fails the run. It may be fixed, or not recur, in the next run, so it is tested again."""
    news = replace(VERDICT, outcome="error")
    monkeypatch.setattr(f"{__name__}.VERDICT", news)
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    assert {record.outcome for record in WRITTEN} == {"error"}
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    assert asked == EVERY + EVERY
    monkeypatch.setattr(f"{__name__}.VERDICT", replace(news, cause="call"))
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    facts.measure_missing(taken(session(tmp_path, brief=True)))
    assert asked == EVERY + EVERY + EVERY


def test_a_cache_that_cannot_be_written_costs_only_a_warning(
    tmp_path: Path, clock: Clock, asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    run = session(tmp_path, brief=True)
    facts.measure_missing(taken(run))
    assert (asked, len(WRITTEN)) == (EVERY, 4)
    (warning,) = run.info.warnings
    assert "could not be kept" in warning.text


def test_imports_are_not_timed_when_the_budget_is_spent(tmp_path: Path, clock: Clock) -> None:
    run = session(tmp_path, budget_s=30.0, fidelity=False)
    known = taken(run)
    clock.seconds = 30
    facts.measure_missing(known)
    assert set(run.info.variants) == {each.variant for each in CHAINS}
    told = {name: about.maturity.stage for name, about in run.info.variants.items() if about.maturity}
    assert told == {"csv[engine=pandas]": "established", "pickle[engine=pandas]": "young"}
    (warning,) = run.info.warnings
    assert warning.text.startswith("imports of 2 variants left out")


def test_a_run_records_what_its_variants_read_in_part_by_themselves() -> None:
    """Parquet reads whole row groups for a take."""
    variants = ("lance[engine=pylance]", "parquet[engine=pyarrow]", "csv[engine=pandas]", "png[engine=pillow]")
    found = [preparation.declared(*engine_of(variant)).partial_reads for variant in variants]
    assert found == [("take", "scan"), ("scan",), (), ()]


# --- files in the cache ----------------------------------------------------------------------------------------


def test_a_fact_that_is_broken_or_another_s_is_none(tmp_path: Path) -> None:
    store = KeptFacts(tmp_path, {"machine": "lab"})
    store.put(["imports", "csv"], Imported(import_ns=1, import_rss_bytes=2))
    found = store.get(["imports", "csv"], Imported)
    assert found is not None
    assert found.value == Imported(import_ns=1, import_rss_bytes=2)
    assert store.get(["imports", "orc"], Imported) is None
    assert store.get(["imports", "csv"], tuple[str, ...]) is None
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for broken in (b"", whole[:-5], whole.replace(b"lab", b"lob"), b"[" * 100_000, b"\xff" + whole, b" " * 5_000_000):
        path.write_bytes(broken)
        assert store.get(["imports", "csv"], Imported) is None
    path.unlink()
    assert store.get(["imports", "csv"], Imported) is None


def test_a_fact_of_another_version_is_none(tmp_path: Path) -> None:
    store = KeptFacts(tmp_path, {"libraries": {"pandas": "3.1"}})
    store.put(["imports"], Imported(import_ns=1, import_rss_bytes=2), {"lxml": "6.0"})
    assert store.get(["imports"], Imported, {"lxml": "6.0", "pandas": "3.1"}) is not None
    assert store.get(["imports"], Imported, {"lxml": "6.1"}) is None
    assert store.get(["imports"], Imported) is None


def test_sources_are_known_by_name_and_content(tmp_path: Path) -> None:
    (tmp_path / "formats").mkdir()
    place = tmp_path / "formats" / "csv.py"
    digests = set()
    for name, content in (("csv.py", "a"), ("csv.py", "b"), ("tsv.py", "b")):
        place.unlink(missing_ok=True)
        place = place.with_name(name)
        place.write_text(content)
        facts_store.source_digest.cache_clear()
        digests.add(facts_store.source_digest(tmp_path, ("formats",)))
    facts_store.source_digest.cache_clear()
    assert len(digests) == 3
    (tmp_path / "formats" / "tests").mkdir()
    for name in ("about.md", "tests/test_csv.py"):
        (tmp_path / "formats" / name).write_text("of no account")
    assert facts_store.source_digest(tmp_path, ("formats",)) in digests
