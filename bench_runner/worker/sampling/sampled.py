"""The result of taking a sample: the measurement, and the results of the calls, which must be verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench_runner.worker.messages import Measured


@dataclass(frozen=True)
class Sampled:
    """A sample whose results are not yet verified."""

    measured: Measured
    asked: Any
    """The input of the operation, or a list with the input of each call."""
    given: Any
    """The results of the calls. None means that there is nothing to verify now, because another operation verifies the
    stored data."""
