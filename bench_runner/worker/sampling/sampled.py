"""What a sampler hands on: what was measured, and what has to be verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench_runner.worker.messages import Measured


@dataclass(frozen=True)
class Sampled:
    """A sample whose answers nobody has verified yet."""

    measured: Measured
    asked: Any
    """What was asked for: the input of the operation, or of each call."""
    given: Any
    """What came back; None where another operation verifies what was done."""
