"""Both memory probes measure known allocations of a real worker (rule 13)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench_runner.run import probe_check
from bench_runner.run.launcher import Launcher
from bench_runner.worker.memory_probe import SIZES_BYTES

ROOT = Path(__file__).parents[3]
ENDS = (min(SIZES_BYTES), max(SIZES_BYTES))
ASKED = tuple((how, size) for how, size in probe_check.LONG if how == "numpy" or size in ENDS)
"""All sizes for one kind of allocation, and the smallest and largest size for the other kinds."""
TOLERANCE = {"numpy": 0.05, "four threads": 0.05, "arrow": 0.15, "small objects": 0.10}


@pytest.mark.slow
@pytest.mark.parametrize(("isolate", "asked"), [("forkserver", ASKED), ("spawn", probe_check.SHORT)])
@pytest.mark.rule(3, 13, 18)
def test_known_allocations_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolate: str, asked: Sequence[tuple[str, int]]
) -> None:
    # Replace the path of the plugin at_rest, which makes workers skip the allocation of 500 MB before known
    # allocations.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    launcher = Launcher(isolate=isolate, threads=None, preload=[])
    try:
        answers = list(probe_check.known_answers(launcher, tmp_path, lambda text, left: None, asked))
    finally:
        launcher.close()
    assert len(answers) == len(asked)
    for answer in answers:
        # Arrow's pool allocates whole segments. At 1 MB, its rounding is as large as the request.
        slack = 1.3e6 if answer.how == "arrow" and answer.size_bytes <= 1e6 else 0.3e6
        allowed = TOLERANCE[answer.how] * answer.size_bytes + slack
        assert abs(answer.peak_private_bytes - answer.size_bytes) <= allowed, answer
        assert abs(answer.peak_rss_bytes - answer.size_bytes) <= allowed, answer
    assert probe_check.error_bytes(answers) < 1e6


@pytest.mark.rule(13)
def test_the_error_is_the_largest_deviation_of_exact_allocations() -> None:
    answers = [
        probe_check.KnownAnswer("numpy", 100, 90, 0),
        probe_check.KnownAnswer("four threads", 100, 103, 0),
        probe_check.KnownAnswer("arrow", 100, 500, 0),
    ]
    assert probe_check.error_bytes(answers) == 10
