"""The bound of a loss distinguishes a float from its neighbours, as far as its format does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from adapters.contract import TabularFormat
from bench_runner.operations.targets import Target
from bench_runner.worker import verify
from formats.registry import FORMATS

ARROW = Target("arrow")
ENGINES = {f"{name}[{engine.engine}]": engine for name in FORMATS for engine in FORMATS.engines(name)}
SINGLES = np.array([0.1, -3.3, 7.7e12], np.float32)
DOUBLES = np.array([-3.3e6, 7.7e12])
PAIRS = [
    *((pa.array([value]), float(np.nextafter(value, np.float32(np.inf)))) for value in SINGLES),
    # Excel keeps 16 digits.
    *((pa.array([value]), float(value * (1 + 1e-13))) for value in DOUBLES),
]
"""A stored float, and a different one close to it."""


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_float_beside_the_stored_one_is_no_declared_loss(engine: type[TabularFormat]) -> None:
    losses = engine().losses
    for stored, other in PAIRS:
        comparison = verify.compare(pa.table({"f": stored}), pa.table({"f": [other]}), ARROW, losses)
        assert comparison.problems, (stored, other, comparison.losses)
