"""The bytes on the wire show whether a client answered from its own memory."""

from __future__ import annotations

import pytest

from bench_runner.run.services.monitor import is_fetched_anew


@pytest.mark.parametrize(
    ("figures", "held_bytes", "anew"),
    [
        ({"wire_bytes": 160}, 30, True),
        ({"wire_bytes": 3}, 30, False),
        ({"wire_bytes": 30}, 30, False),
        # Without a service there are no bytes on the wire, even if closing freed less memory than was allocated
        # meanwhile.
        ({}, -1, False),
        ({}, 30, False),
    ],
)
def test_a_call_that_moves_more_than_its_client_holds_did_not_answer_from_that(
    figures: dict[str, int], held_bytes: int, anew: bool
) -> None:
    assert is_fetched_anew(figures, held_bytes) == anew
