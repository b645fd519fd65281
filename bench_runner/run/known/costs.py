"""Costs are durations of samples in earlier runs. They decide which variants come last, and predict how long a run will
take.

The costs of a machine are in the user's cache folder, and every run adds its own costs. Costs are never shown as
results, because they are scaled by rows and mix library versions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

import data_generator.cache as data_cache
from bench_runner.conditions import Conditions
from bench_runner.plan.chain import Chain
from bench_runner.results import reference
from bench_runner.results.information import MachineInfo
from bench_runner.results.records import Sample

MOST_SIZES = 4
"""For each operation and variant, costs are stored for at most this many different numbers of rows. If there are more,
the oldest cost is dropped."""
MOST_BYTES = 16 * 10**6
"""Largest size, in bytes, of a file with costs. A larger file is ignored."""
FAR = 10
"""Costs are scaled from the nearest number of rows that was measured. If the nearest number on this machine differs by
more than this factor from the number wanted, and another machine has a nearer number, the cost of the other machine is
used. Scaling by rows is inaccurate, because calls have fixed costs."""
MACHINE = ("name", "cpu", "cores", "memory_bytes", "virtualisation")


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Duration of one sample, in ns."""

    rows: int
    timed_ns: int
    """Duration of the call in ns. For a save, the sync after the call is included."""
    verified_ns: int
    """Duration of the verification in ns. It grows with the number of rows."""
    fixed_ns: int
    """Duration of the other steps in ns, such as starting the worker. This duration does not depend on the number of
    rows."""

    def at(self, rows: int) -> Cost:
        """Return the cost for `rows` rows. All durations except `fixed_ns` are scaled in proportion to the rows."""
        scale = rows / max(self.rows, 1)
        return Cost(rows, int(self.timed_ns * scale), int(self.verified_ns * scale), self.fixed_ns)

    @property
    def total_ns(self) -> int:
        """Total duration of a sample in ns, including starting the worker and verification."""
        return self.timed_ns + self.verified_ns + self.fixed_ns


class Costs(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """The costs of samples. A key of `cells` names an operation, a variant, conditions and a data set. The value of the
    key is a list with one cost for each number of rows, the most recent last."""

    cells: dict[str, list[Cost]] = {}

    def learn(self, samples: Iterable[Sample]) -> None:
        """Add the samples of a run."""
        found: dict[tuple[str, int], list[Cost]] = {}
        for sample in samples:
            if "wall_ns" in sample.figures:
                name = _name(sample.operation, sample.variant, sample.conditions, sample.dataset)
                found.setdefault((name, sample.rows), []).append(_cost(sample))
        for (name, rows), costs in found.items():
            others = [cost for cost in self.cells.get(name, []) if cost.rows != rows]
            self.cells[name] = [*others, _middle(costs)][-MOST_SIZES:]
        vars(self).pop("_by_all_but_the_dataset", None)

    def expected(self, operation: str, variant: str, how: Conditions, dataset: str, rows: int) -> Cost | None:
        """Return the expected cost of a sample on `rows` rows, from costs on the same data set with other numbers of
        rows. If the data set has no costs, use costs on other data sets. Return None if no data set has costs for this
        operation, variant and conditions."""
        known = self._known(operation, variant, how, dataset)
        if _name(operation, variant, how, dataset) in self.cells:
            return _between(sorted(known[0], key=lambda cost: cost.rows), rows)
        return _middle([_nearest(costs, rows).at(rows) for costs in known]) if known else None

    def how_far(self, operation: str, variant: str, how: Conditions, dataset: str, rows: int) -> float:
        """Return the factor between `rows` and the nearest number of rows that has a cost. Return infinity if there is
        no cost."""
        known = self._known(operation, variant, how, dataset)
        return min((_times(_nearest(costs, rows).rows, rows) for costs in known), default=float("inf"))

    def _known(self, operation: str, variant: str, how: Conditions, dataset: str) -> list[list[Cost]]:
        known = self.cells.get(_name(operation, variant, how, dataset))
        if known is not None:
            return [known]
        return self._by_all_but_the_dataset.get(_name(operation, variant, how, ""), [])

    @cached_property
    def _by_all_but_the_dataset(self) -> dict[str, list[list[Cost]]]:
        found: dict[str, list[list[Cost]]] = {}
        for name, costs in self.cells.items():
            # The name of a data set contains no blank.
            before, blank, _ = name.rpartition(" ")
            found.setdefault(before + blank, []).append(costs)
        return found


@dataclass(frozen=True)
class Expected:
    """The expected cost of a sample. `here` is True if the cost was measured on this machine."""

    cost: Cost
    here: bool


@dataclass(frozen=True)
class KnownCosts:
    """The costs from runs on this machine (`here`), and the costs from the reference run on other machines
    (`elsewhere`)."""

    here: Costs = field(default_factory=Costs)
    elsewhere: Costs = field(default_factory=Costs)

    def expected(self, operation: str, chain: Chain, rows: int) -> Expected | None:
        """Return the expected cost of an operation of the chain on `rows` rows. Costs of this machine are preferred,
        with the exception described at FAR. Return None if there is no cost."""
        asked = operation, chain.variant, chain.conditions, chain.dataset, rows
        far = self.here.how_far(*asked)
        cost = self.here.expected(*asked)
        if cost is not None and (far <= FAR or far <= self.elsewhere.how_far(*asked)):
            return Expected(cost, here=True)
        cost = self.elsewhere.expected(*asked)
        return None if cost is None else Expected(cost, here=False)


def known(machine: MachineInfo) -> KnownCosts:
    """Return the costs of earlier runs on `machine`, together with the costs of the reference run."""
    return KnownCosts(of_machine(machine), _read(reference.COSTS))


def _name(operation: str, variant: str, how: Conditions, dataset: str) -> str:
    # In records the cache condition is 'cold (guest)' where a plan has 'cold'.
    cache = how.cache.partition(" ")[0]
    between = f" {how.network} {how.service}" if how.network else ""
    return f"{operation} {variant} {cache} {how.threads} {how.target}{between} {dataset}"


def _cost(sample: Sample) -> Cost:
    figures = sample.figures
    return Cost(
        rows=sample.rows,
        timed_ns=sample.clocked_ns,
        verified_ns=figures.get("verify_ns", 0),
        fixed_ns=sum(figures.get(name, 0) for name in ("prepare_ns", "settle_ns", "harness_ns")),
    )


def _middle(costs: Iterable[Cost]) -> Cost:
    each = list(costs)
    return Cost(
        each[0].rows,
        int(median(cost.timed_ns for cost in each)),
        int(median(cost.verified_ns for cost in each)),
        int(median(cost.fixed_ns for cost in each)),
    )


def _nearest(costs: Iterable[Cost], rows: int) -> Cost:
    return min(costs, key=lambda cost: _times(cost.rows, rows))


def _times(some: int, other: int) -> float:
    return max(some, other) / max(min(some, other), 1)


def _between(costs: list[Cost], rows: int) -> Cost:
    """Return the cost for `rows` rows, interpolated between the costs for the nearest smaller and the nearest larger
    number of rows. If one of these two costs is missing, scale the other cost in proportion to the rows. `costs` are
    sorted by rows."""
    below = [cost for cost in costs if cost.rows <= rows]
    above = [cost for cost in costs if cost.rows > rows]
    if not below or not above:
        return _nearest(costs, rows).at(rows)
    low, high = below[-1], above[0]
    share = (rows - low.rows) / (high.rows - low.rows)

    def part(name: str) -> int:
        first, last = getattr(low, name), getattr(high, name)
        return int(first + share * (last - first))

    return Cost(rows, part("timed_ns"), part("verified_ns"), part("fixed_ns"))


# --- the costs of a machine --------------------------------------------------------------------------------------


def of_machine(machine: MachineInfo) -> Costs:
    """Return the costs that earlier runs on this machine have stored. Return empty Costs if there are none or if the
    file cannot be read."""
    return _read(_path(machine))


def _read(path: Path) -> Costs:
    try:
        if path.stat().st_size > MOST_BYTES:
            return Costs()
        return msgspec.json.decode(path.read_bytes(), type=Costs, strict=True)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Costs()


def add(machine: MachineInfo, samples: Iterable[Sample]) -> None:
    """Add the samples of a run to the stored costs of a machine. Raises OSError if the folder is not writable."""
    costs = of_machine(machine)
    costs.learn(samples)
    path = _path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    data_cache.remove_abandoned(path.parent)
    with data_cache.moved_into_place(path) as file:
        file.write(msgspec.json.encode(costs))


def _path(machine: MachineInfo) -> Path:
    about: Mapping[str, Any] = msgspec.to_builtins(machine)
    key = json.dumps({name: about.get(name) for name in MACHINE}, sort_keys=True)
    return data_cache.default_folder() / "facts" / f"costs-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
