"""The result of a sampler: the measurement, and the answers to verify."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench_runner.worker.messages import Measured


@dataclass(frozen=True)
class Sampled:
    """A sample whose answers are not yet verified."""

    measured: Measured
    asked: Any
    """The input of the operation, or of each call."""
    given: Any
    """The answers, or None if another operation verifies the result."""
