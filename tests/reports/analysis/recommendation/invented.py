"""Invented candidates of a recommendation, with given times and sizes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from bench_runner.conditions import Conditions
from bench_runner.results.information import MaturityInfo
from bench_runner.variants import operation_name_of, variant_of
from reports.analysis.recommendation.candidates import OPENING, Candidate

ROUNDS = range(1, 8)
FIT = frozenset({"types", "single-file"})


def candidate(
    variant: str,
    *,
    read: float = 10.0,
    save: float = 10.0,
    size: float = 10.0,
    noise: float = 0.0,
    rounds: range = ROUNDS,
    capabilities: frozenset[str] | None = FIT,
    losses: tuple[str, ...] = (),
    stage: str = "established",
    ours: bool = False,
    seed: int = 1,
    parts: Mapping[str, float] | None = None,
    opening: Mapping[str, float] | None = None,
    by: Mapping[str, str] | None = None,
) -> Candidate:
    """Make a candidate with these times in ms and this size in MB, with log-normal noise.

    `parts` are the times of other operations. `opening` is the time to open a copy for some of these operations. `by`
    is the fallback that replaces a missing call.
    """
    source = random.Random(f"{variant}/{seed}")

    def values(value: float) -> Mapping[int, float]:
        return {number: value * 1e6 * source.lognormvariate(0, noise) for number in rounds}

    size_values = dict.fromkeys(rounds, size * 1e6)
    memory = dict.fromkeys(rounds, 50e6)
    figures = {
        "read": values(read),
        "save": values(save),
        "size": size_values,
        "read_memory": memory,
        "save_memory": memory,
    }
    told: dict[str, Any] = {"failures": (), "figures": {}, "codec": None, "uncounted": 0}
    told |= {"cached": False, "fallback": "", "raw_io_multiple": None, "cores_used": None}
    more = {**(parts or {}), **{OPENING + name: value for name, value in (opening or {}).items()}}
    figures |= {name: values(value) for name, value in more.items()}
    cells: dict[str, Any] = {"read": SimpleNamespace(losses=losses, **told), "save": SimpleNamespace(**told)}
    for name in parts or {}:
        cells[name] = SimpleNamespace(**{**told, "fallback": (by or {}).get(name, "")})
    for name, cell in cells.items():
        cell.cell = SimpleNamespace(operation=operation_name_of(name), conditions=Conditions())
    maturity = MaturityInfo(stage=stage, reason="as declared", ours=ours)
    named = variant_of(variant)
    return Candidate(named, figures, cells, (), capabilities, named.format_name.upper(), maturity)


def names(found: Any) -> list[str]:
    return [each.candidate.variant for each in found.ranked]
