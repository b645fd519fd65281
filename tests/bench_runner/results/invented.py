"""Invented samples for the tests of results, independent of reports."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from bench_runner.results.records import Conditions, Sample, changed

MACHINE = "lab-1"
ROUNDS = 7


def make_sample(**fields: Any) -> Sample:
    """Return one plausible sample of reading `eq` with Parquet. Every field can be overridden."""
    usual: dict[str, Any] = {
        "suite": "tabular",
        "operation": "read",
        "dataset": "eq",
        "dataset_digest": "9f2c",
        "rows": 1_000_000,
        "variant": "parquet[engine=pyarrow,codec=none]",
        "library": "pyarrow 26.0.0",
        "conditions": Conditions(),
        "machine": MACHINE,
        "round": 1,
        "position": 10,
        "figures": {"wall_ns": 64_000_000, "cpu_ns": 96_000_000},
        "fidelity": "exact",
        "saw_all": True,
    }
    return Sample(**{**usual, **fields})


def make_save(**fields: Any) -> Sample:
    """Return the sample of the save in the same chain, not verified yet."""
    return make_sample(**{"operation": "save", "fidelity": None, "saw_all": False, **fields})


def make_rounds(
    variants: Sequence[str], datasets: Sequence[str] = ("eq",), *, drift: float = 0.0, late: float = 0.0
) -> list[Sample]:
    """Return seven rounds of saves and reads, shuffled and with seeded noise.

    The machine slows down by `drift` from the first to the last round, and by `late` within each round."""
    source = random.Random(1)
    samples: list[Sample] = []
    for number in range(1, ROUNDS + 1):
        slower = 1 + drift * (number - 1) / (ROUNDS - 1)
        chains = [(variant, dataset) for variant in variants for dataset in datasets]
        source.shuffle(chains)
        for place, (variant, dataset) in enumerate(chains):
            later = 1 + late * place / len(chains)
            for made in (make_save, make_sample):
                wall_ns = int(50_000_000 * slower * later * source.uniform(0.98, 1.02))
                sample = made(variant=variant, dataset=dataset, round=number, figures={"wall_ns": wall_ns})
                samples.append(changed(sample, position=len(samples)))
    return samples
