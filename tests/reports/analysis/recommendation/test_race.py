"""Which variants are measured further: acceptable variants come first, other variants run until they can be
compared."""

from __future__ import annotations

import pytest

from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.race import contending, may_win
from reports.analysis.recommendation.recommend import recommend
from tests.reports.analysis.recommendation.invented import candidate

READ = Preferences(weights={"read": 1})
THREE = range(1, 4)


def test_a_variant_shown_to_be_worse_leaves_the_race() -> None:
    kept = [
        candidate("a", noise=0.02),
        candidate("b", read=10.05, noise=0.02),
        candidate("c", read=15, noise=0.02),
        candidate("d", read=15, noise=0.02, rounds=THREE),
    ]
    assert set(contending(recommend(kept, (), READ))) == {"a", "b", "d"}, "three rounds show nothing"


def test_the_screening_keeps_near_variants() -> None:
    kept = [candidate(f"v{number:02d}", read=1.3**number) for number in range(20)]
    assert may_win(recommend(kept, (), READ)) == [f"v{number:02d}" for number in range(5)]
    even = [candidate(f"v{number:02d}") for number in range(20)]
    assert len(may_win(recommend(even, (), READ))) == 10


def test_the_screening_keeps_few_variants_that_are_not_accepted() -> None:
    kept = [candidate(f"v{number:02d}", read=10 + number) for number in range(8)]
    young = [candidate(f"y{number}", read=1 + number, stage="young") for number in range(5)]
    far = [candidate(f"e{number}", read=100 + number, stage="experimental") for number in range(5)]
    assert may_win(recommend([*far, *young, *kept], (), READ)) == [each.variant for each in kept] + ["y0", "y1"]


@pytest.mark.rule(15)
def test_accepted_variants_contend_first_and_others_until_they_have_enough_rounds() -> None:
    kept = [
        candidate("young", read=1, stage="young", rounds=THREE),
        candidate("known", read=1, stage="young"),
        candidate("b", read=10.05, noise=0.02),
        candidate("a", noise=0.02),
    ]
    now = candidate("now", read=90, rounds=THREE)
    assert contending(recommend(kept, (), READ, now)) == ["b", "a", "young", "now"]
    assert contending(recommend(kept, (), READ, candidate("now", read=90))) == ["b", "a", "young"]
    assert contending(recommend(kept, (), READ, candidate("now", rounds=range(0)))) == ["b", "a", "young"]
    assert contending(recommend(kept, (), READ, kept[-1])) == ["b", "a", "young"], "each once"
