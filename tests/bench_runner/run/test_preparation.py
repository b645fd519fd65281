"""What comes before the rounds yields to them when there is a budget, and says what it left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench_runner.operations.targets import Target
from bench_runner.plan.chain import Chain
from bench_runner.results.information import RunInfo, RunWarning
from bench_runner.results.records import Conditions
from bench_runner.run import preparation
from bench_runner.run.launcher import Outcome
from bench_runner.run.resume import Earlier
from bench_runner.run.session import Options, Session

SECOND = 10**9


def chain(name: str) -> Chain:
    target = Target("pandas", "str", "masked")
    return Chain("tabular", "eq", name, name, "x 1", ".x", False, None, target, Conditions(), ("save", "read"))


CHAINS = [chain("csv[engine=pandas]"), chain("pickle[engine=pandas]")]


class Clock:
    """A clock that stands still, and goes on by what is done."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ns(self) -> int:
        return int(self.seconds * SECOND)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(preparation, "now_ns", clock.now_ns)
    return clock


@pytest.fixture
def asked(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(variant, target) of each round trip that was made; each takes four seconds."""
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
                yield each, Outcome()

    monkeypatch.setattr(preparation, "_Lanes", Lanes)
    return asked


def session(tmp_path: Path, *, warnings: Sequence[RunWarning] = (), **options: Any) -> Session:
    nobody: Any = SimpleNamespace(stage=lambda *given: None, step=lambda *given: None)
    return Session(
        plan=SimpleNamespace(chains=CHAINS),  # type: ignore[arg-type]
        options=Options(**options),
        folder=tmp_path,
        writer=SimpleNamespace(append=lambda *given: None),  # type: ignore[arg-type]
        watcher=nobody,
        info=RunInfo(warnings=list(warnings)),
        machine="lab",
        datasets={},
        benches={},
        earlier=Earlier(),
        position=0,
        began_ns=0,
    )


EVERY = [("csv", "pandas"), ("csv", "arrow"), ("pickle", "pandas"), ("pickle", "arrow")]


def test_losses_are_looked_for_in_a_third_of_the_budget(
    tmp_path: Path, clock: Clock, asked: list[tuple[str, str]]
) -> None:
    run = session(tmp_path, budget_s=60.0)
    clock.seconds = 10
    preparation.find_losses(run)
    assert asked == EVERY[:3]
    (warning,) = run.info.warnings
    assert warning.text.startswith("fidelity of 1 variant left out to keep the budget")
    assert "without --budget" in warning.remedy


@pytest.mark.parametrize("budget_s", [None, 600.0])
def test_all_losses_are_looked_for_where_time_allows_and_what_was_left_out_is_forgotten(
    budget_s: float | None, tmp_path: Path, clock: Clock, asked: list[tuple[str, str]]
) -> None:
    kept = RunWarning(text="another run was measuring", remedy="measure again")
    run = session(tmp_path, budget_s=10.0)
    clock.seconds = 10
    preparation.find_losses(run)
    assert asked == []
    clock.seconds = 0
    resumed = session(tmp_path, budget_s=budget_s, warnings=[kept, *run.info.warnings])
    preparation.find_losses(resumed)
    assert asked == EVERY
    assert resumed.info.warnings == [kept]


def test_imports_are_not_timed_when_their_share_is_spent(tmp_path: Path, clock: Clock) -> None:
    run = session(tmp_path, budget_s=30.0)
    clock.seconds = 10
    preparation.time_imports(run)
    assert set(run.info.variants) == {each.variant for each in CHAINS}
    told = {name: about.maturity.stage for name, about in run.info.variants.items() if about.maturity}
    assert told == {"csv[engine=pandas]": "established", "pickle[engine=pandas]": "young"}
    (warning,) = run.info.warnings
    assert warning.text.startswith("imports of 2 variants left out")
