"""The time per day of uses: known answers from made-up figures, also for variants without a call for a use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from reports.analysis.recommendation.candidates import Candidate
from reports.analysis.recommendation.daily_time import read_whole, time_a_day, use_a_day
from reports.analysis.recommendation.eligibility import eligible
from reports.analysis.recommendation.needs import MEASURED, MOST_OF_ALL, judged
from reports.analysis.recommendation.preferences import USE, Preferences, Use
from reports.analysis.recommendation.recommend import MOST_OF_TIED, recommend, weighed, weights
from tests.reports.analysis.recommendation.invented import candidate, names

TAKE, APPEND = "take[rows=100,handle=kept]", "append[rows=1000]"
OFTEN = Use(TAKE, "take 100 rows", 1000)
ONCE = Use("read", "read", 1)


def by_use(*uses: Use, **told: float) -> Preferences:
    return Preferences(weights={USE: 1.0, **told}, uses=uses, titles={use.operation: use.title for use in uses})


def test_the_times_of_a_day_add_up_round_by_round() -> None:
    figures = {TAKE: {1: 2e6, 2: 3e6, 3: 5e6}, "open " + TAKE: {1: 7e6, 2: 9e6}, "read": {1: 10e6, 2: 30e6}}
    assert use_a_day(figures, OFTEN) == {1: 2007e6, 2: 3009e6, 3: 5000e6}
    # The third round has no read, so it has no time per day.
    assert time_a_day(figures, (OFTEN, ONCE)) == {1: 2017e6, 2: 3039e6}
    assert time_a_day(figures, (Use("read", "read", 1 / 7),)) == pytest.approx({1: 10e6 / 7, 2: 30e6 / 7})


def test_a_file_is_opened_once_a_day_at_most_and_not_more_often_than_it_is_used() -> None:
    figures = {TAKE: {1: 5e6}, "open " + TAKE: {1: 50e6}}
    assert use_a_day(figures, replace(OFTEN, per_day=1 / 7)) == pytest.approx({1: 55e6 / 7})
    assert use_a_day(figures, replace(OFTEN, per_day=1)) == {1: 55e6}
    assert use_a_day(figures, replace(OFTEN, per_day=10)) == {1: 100e6}


def test_frequent_uses_decide() -> None:
    """Reading all takes 100 ms with the one candidate and 10 ms with the other. Taking rows takes 1 ms and 5 ms."""
    takes = candidate("takes", read=100, parts={TAKE: 1}, opening={TAKE: 50})
    reads = candidate("reads", read=10, parts={TAKE: 5})
    often, seldom = by_use(OFTEN, ONCE), by_use(replace(OFTEN, per_day=30), ONCE)
    assert names(recommend([takes, reads], (), often)) == ["takes", "reads"]
    # The one takes 100 + 50 + 30 ms per day, the other 10 + 150 ms.
    found = recommend([takes, reads], (), seldom)
    assert names(found) == ["reads", "takes"]
    assert found.ranked[0].values == {USE: pytest.approx(160e6)}
    assert found.ranked[1].score == pytest.approx(180 / 160)
    assert found.break_evens == (), "reads for each save say nothing of such a day"


def test_the_size_can_be_weighed_with_the_time_per_day() -> None:
    fast = candidate("fast", size=40, parts={TAKE: 1})
    small = candidate("small", size=10, parts={TAKE: 2})
    assert names(recommend([fast, small], (), by_use(OFTEN)))[0] == "fast"
    found = recommend([fast, small], (), by_use(OFTEN, size=1.0))
    assert names(found)[0] == "small"
    assert weights(found.preferences) == {USE: 0.5, "size": 0.5}


def test_operations_are_weighed_like_reads() -> None:
    preferences = Preferences(weights={"read": 1, TAKE: 3, "size": 1}, titles={TAKE: "take 100 rows"})
    one = candidate("one", read=20, size=10, parts={TAKE: 1})
    assert set(weighed(one, preferences)) == {"read", TAKE, "size"}
    found = recommend([one, candidate("two", read=10, size=10, parts={TAKE: 2})], (), preferences)
    # The one reads in twice the time, but takes rows in half the time. Takes have three times the weight of reads.
    assert names(found) == ["one", "two"]
    assert found.ranked[1].score == pytest.approx(2 ** (3 / 5) / 2 ** (1 / 5))


def test_a_variant_without_a_call_takes_part_with_reading_everything() -> None:
    whole = candidate("whole", read=5, parts={TAKE: 6}, by={TAKE: "read-all"})
    own = candidate("own", read=50, parts={TAKE: 1})
    found = recommend([whole, own], (), by_use(OFTEN))
    assert names(found) == ["own", "whole"]
    assert found.ranked[1].score == pytest.approx(6)
    assert read_whole(whole, found.preferences) == ["take 100 rows"]
    assert read_whole(own, found.preferences) == []


def test_a_variant_without_a_time_of_a_use_drops_out_with_the_reason() -> None:
    own, lacks = candidate("own", parts={TAKE: 1}), candidate("lacks")
    cached = candidate("cached", parts={TAKE: 0.1})
    cached.cells[TAKE].cached = True  # type: ignore[index,misc]
    failed = SimpleNamespace(kind="refused", reason="no rows")
    fails = candidate("fails", parts={TAKE: 1})
    fails = replace(fails, figures={name: v for name, v in fails.figures.items() if name != TAKE})
    fails.cells[TAKE].failures = (failed,)  # type: ignore[index,misc]
    kept, dropped = eligible([own, lacks, cached, fails], by_use(OFTEN), 0)
    assert [each.variant for each in kept] == ["own"]
    told = dict(dropped)
    assert told["lacks"] == "no figure of take 100 rows: not measured"
    assert told["fails"] == "no figure of take 100 rows: refused: no rows"
    assert "from its own cache" in told["cached"]
    assert [each.variant for each in eligible([own, lacks, cached, fails], Preferences(), 0)[0]] == [
        *("own", "lacks", "cached", "fails")
    ], "saving and reading everything loses none of them"


def test_ties_are_found_for_the_time_per_day() -> None:
    """The faster of the two variants changes from round to round."""
    noisy = [candidate(name, read=10, noise=0.3, parts={TAKE: 1.0}, seed=3) for name in ("a", "b")]
    found = recommend([*noisy, candidate("far", parts={TAKE: 50})], (), by_use(OFTEN))
    assert {each.candidate.variant for each in found.tied} == {"a", "b"}


# --- needs -----------------------------------------------------------------------------------------------------------


def needing(
    need: str, candidates: Iterable[Candidate], *, on_all_rows: bool = True
) -> tuple[list[str], dict[str, str]]:
    kept, dropped = eligible(candidates, Preferences(needs=(need,)), 0, on_all_rows=on_all_rows)
    return [each.variant for each in kept], dict(dropped)


@pytest.mark.parametrize("need", MEASURED)
def test_a_need_is_met_by_a_part_of_the_time_of_the_whole(need: str) -> None:
    operation, whole = MEASURED[need].operation, {MEASURED[need].whole: 100.0}
    declares = frozenset({need})
    labels = candidate("labels", **whole, parts={operation: 95}, capabilities=declares)
    costs = candidate("costs", **whole, parts={operation: 100 * MOST_OF_ALL - 1}, capabilities=frozenset())
    beyond = candidate("beyond", **whole, parts={operation: 100 * MOST_OF_ALL + 1}, capabilities=declares)
    has = candidate("has", **whole, parts={operation: 2}, capabilities=None)
    instead = candidate("instead", **whole, parts={operation: 2}, by={operation: "read-all"}, capabilities=declares)
    kept, dropped = needing(need, [labels, costs, beyond, has, instead])
    assert kept == ["costs", "has"], "what is measured counts, not what is declared"
    assert f"lacks {need}: {operation} takes 0.950 of " in dropped["labels"]
    assert dropped["instead"] == f"lacks {need}: {operation} by read-all"
    assert judged(has, need).told.startswith(f"{need} ({operation} takes 0.020 of ")


def test_on_few_rows_and_without_a_time_declarations_decide() -> None:
    need, operation = "random-access", MEASURED["random-access"].operation
    slow = candidate("slow", read=10, parts={operation: 9}, capabilities=frozenset({need}))
    assert needing(need, [slow], on_all_rows=False)[0] == ["slow"]
    declared = candidate("declared", capabilities=frozenset({need}))
    silent = candidate("silent", capabilities=frozenset({"types"}))
    kept, dropped = needing(need, [declared, silent, candidate("unknown", capabilities=None)])
    assert kept == ["declared"]
    assert dropped == {"silent": f"cannot: {need}", "unknown": "the run did not record its abilities"}
    assert judged(declared, need).told == f"{need} (declared, not measured here)"


def test_another_point_of_the_same_operation_counts() -> None:
    other = "take[rows=1000,handle=kept]"
    one = candidate("one", read=100, parts={other: 90}, capabilities=frozenset({"random-access"}))
    assert "take[rows=1000,handle=kept] takes 0.900" in needing("random-access", [one])[1]["one"]
    both = candidate("both", read=100, parts={other: 90, TAKE: 3}, capabilities=frozenset())
    assert needing("random-access", [both])[0] == ["both"]


# --- how sure --------------------------------------------------------------------------------------------------------


def test_the_probability_of_a_tied_variant_is_limited_for_the_time_per_day() -> None:
    """In one of five rounds the order is reversed. The interval of the ratio then contains 1, whatever the bootstrap
    draws."""
    slower = candidate("b", read=10.5, rounds=range(1, 6))
    values = {number: value * (0.9 if number == 3 else 1) for number, value in slower.figures["read"].items()}
    slower = replace(slower, figures={**slower.figures, "read": values})
    found = recommend([candidate("a", rounds=range(1, 6)), slower], (), Preferences(weights={"read": 1}))
    assert [each.candidate.variant for each in found.tied] == ["a", "b"]
    first = found.ranked[0].probability
    assert first is not None
    assert 0.9 < first <= MOST_OF_TIED
    clear = recommend([candidate("a"), candidate("b", read=20)], (), Preferences(weights={"read": 1}))
    assert (clear.ranked[0].probability, len(clear.tied)) == (1, 1)
