"""The state that the parts of one run share: the plan, the result folder and the samples of an interrupted run.
`Session` also executes chains and stores samples.

bench_runner.run.preparation, pilot and rounds decide what is measured, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import data_generator.cache as data_cache
from adapters.spelling import parse
from bench_runner.clock import now_ns
from bench_runner.conditions import Conditions
from bench_runner.errors import Failure
from bench_runner.machine import environment
from bench_runner.operations import operation_of
from bench_runner.operations.documents.ask import Ask
from bench_runner.plan.chain import Chain, Plan
from bench_runner.results.information import DataSetInfo
from bench_runner.results.records import Cell, Run, RunInfo, Sample, SampleWriter, cell_of, changed, write_run_info
from bench_runner.run.chains import Bench, blank_sample, execute
from bench_runner.run.interruption import StopRequest
from bench_runner.run.known.costs import KnownCosts
from bench_runner.run.options import Options
from bench_runner.run.resume import Earlier, whole
from bench_runner.run.watcher import Watcher
from data_generator.catalogue import CATALOGUE
from data_generator.dataset import Dataset, columns_of

WAITING = "waiting"
"""The stage between two turns (bench_runner.run.turns)."""


@dataclass(frozen=True)
class Race:
    """A race is a run of `recommend`. It continues while more than one variant may be the best and the budget lasts."""

    contending: Callable[[Run], Sequence[str]]
    """Function that takes the run so far and returns the variants that may still win, best first. Other variants pause.
    A paused variant takes part again if a later call returns the variant."""
    screening: Run | None
    """An earlier run on few rows, or None. Its samples are used instead of a pilot round."""


@dataclass
class Session:
    """The state that the parts of one run share."""

    plan: Plan
    options: Options
    folder: Path
    writer: SampleWriter
    watcher: Watcher
    info: RunInfo
    machine: str
    datasets: dict[str, data_cache.StoredDataset]
    benches: dict[tuple[str, str], Bench]
    earlier: Earlier
    position: int
    race: Race | None = None
    paused: Sequence[tuple[str, str]] = ()
    """Pairs (variant, operation) that need no more samples. `side-by-side` decides this."""
    stop: StopRequest = field(default_factory=StopRequest)
    costs: KnownCosts = field(default_factory=KnownCosts)
    """Durations known from earlier runs, on this machine or on other machines."""
    began_ns: int = field(default_factory=now_ns)
    """Monotonic time at which the budget starts."""
    stage_began_ns: int = field(default_factory=now_ns)
    stage_name: str = "start"

    @property
    def seed(self) -> int:
        """The seed for shuffling the chains of each round."""
        assert self.info.seed is not None
        return self.info.seed

    def bench(self, chain: Chain) -> Bench:
        """Return the Bench (workers and working folder) that executes the chain."""
        return self.benches[chain.conditions.work_dir, chain.conditions.threads]

    def budget_ends_ns(self, share: float = 1.0) -> int | None:
        """Return the monotonic time at which this share of the budget is spent; None without a budget."""
        budget_s = self.options.budget_s
        return None if budget_s is None else self.began_ns + int(share * budget_s * 1e9)

    def stage(self, name: str) -> None:
        """Begin the next stage of the run, and record how long the previous stage took."""
        stages = self.info.stages_ns
        now = now_ns()
        # Time in which the other environment of `side-by-side` measures does not belong to this run.
        if self.stage_name != WAITING:
            stages[self.stage_name] = stages.get(self.stage_name, 0) + now - self.stage_began_ns
        self.stage_name, self.stage_began_ns = name, now
        self.watcher.stage(name)

    def public(self, conditions: Conditions) -> Conditions:
        """Return the conditions as they appear in records. If the user has named the machine, that name replaces the
        host's name in paths. On a virtual machine, the cache condition 'cold' becomes 'cold (guest)', because a guest
        cannot empty the cache of its host (rule 14)."""
        guest = self.info.machine.is_virtual
        return changed(
            conditions,
            cache="cold (guest)" if conditions.cache == "cold" and guest else conditions.cache,
            work_dir=environment.replace_host(conditions.work_dir, self.options.machine),
        )

    def step(self, text: str, seconds_left: float | None) -> None:
        """Notify the watcher of the next step. Raises Stopped if a signal asked the run to end."""
        self.stop.check()
        self.watcher.step(text, seconds_left)

    def show_plan(self) -> None:
        """Notify the watcher of the planned measurements, and of the samples of an interrupted run."""
        cells: dict[str, list[Cell]] = {}
        for chain in (*self.plan.chains, *(excluded.chain for excluded in self.plan.excluded)):
            rows, conditions = self.datasets[chain.dataset].rows, self.public(chain.conditions)
            cells.setdefault(chain.label(), []).extend(
                cell_of(chain.suite, operation, chain.dataset, rows, chain.variant, conditions, self.machine)
                for operation in chain.operations
            )
        self.watcher.planned(cells, self.info)
        if self.earlier.run is not None:
            self.watcher.measured(self.earlier.run.samples)

    def execution(
        self, chain: Chain, *, rows: int, round_number: int, need_bytes: int, wanted: Sequence[str] | None = None
    ) -> list[Sample]:
        """Execute the chain (a save and the operations on the saved copy) once, or only its operations in `wanted`.
        Store the new samples, and return the samples of this execution. Operations that were measured before the run
        was interrupted are not measured again."""
        known = self.earlier_execution(chain, round_number, rows)
        there = whole(known)
        asked = chain.operations if wanted is None else wanted
        missing = [operation for operation in asked if operation not in there]
        if not missing:
            return known
        samples = execute(
            self.bench(chain),
            chain,
            self.datasets[chain.dataset],
            rows=rows,
            round_number=round_number,
            position=self.position,
            need_bytes=need_bytes,
            wanted=missing,
        )
        self.keep(samples)
        again = {sample.operation for sample in samples if not sample.in_service}
        return [*(sample for sample in known if sample.operation in there - again), *samples]

    def earlier_execution(self, chain: Chain, round_number: int, rows: int | None = None) -> list[Sample]:
        """Return the samples of one execution of the chain before the run was interrupted, or an empty list. The
        default of `rows` is all rows of the data set."""
        rows = self.datasets[chain.dataset].rows if rows is None else rows
        return self.earlier.execution(chain, self.public(chain.conditions), round_number, rows)

    def keep(self, samples: Sequence[Sample]) -> None:
        """Write all samples of one execution together."""
        kept = [changed(sample, conditions=self.public(sample.conditions)) for sample in samples]
        self.writer.append(*kept)
        self.position += len(kept)
        self.watcher.measured(kept)

    def keep_reason(self, chain: Chain, failure: Failure) -> None:
        """Write a sample with the reason for each operation of a chain that is not run, so that reports can explain why
        the operation is missing."""
        dataset = self.datasets[chain.dataset]
        if self.earlier.has_reason(chain, self.public(chain.conditions), dataset.rows, failure):
            return
        blank = blank_sample(chain, dataset, self.machine, rows=dataset.rows, round_number=0, position=self.position)
        self.keep([changed(blank, operation=operation, failure=failure) for operation in chain.operations])

    def warn(self, text: str, remedy: str) -> None:
        """Store a warning with its remedy, unless the same warning is stored already."""
        self.info.warn(text, remedy)

    def save_info(self) -> None:
        """Write run.json with the current state."""
        for name, stored in self.datasets.items():
            self.info.datasets[name] = DataSetInfo(
                digest=stored.digest,
                rows=stored.rows,
                size_bytes=stored.size_bytes,
                title=CATALOGUE[parse(name)[0]].title,
                parameters=dict(self.plan.datasets[name].parameters),
                columns=columns_of(self.plan.datasets[name]),
                understood=dict(self.plan.datasets[name].understood),
                questions=self._questions(name),
                **_sample_facts(self.plan.datasets[name]),
            )
        write_run_info(self.folder, environment.replace_host(self.info.shape(), self.options.machine))

    def _questions(self, dataset: str) -> tuple[str, ...]:
        """Return descriptions of the queries that the plan's operations make on a data set of documents. The queries
        were derived from these documents."""
        stored = self.datasets[dataset]
        names = (name for chain in self.plan.chains if chain.dataset == dataset for name in chain.operations)
        asked = (operation for name in dict.fromkeys(names) if isinstance(operation := operation_of(name), Ask))
        return tuple(dict.fromkeys(words for each in asked for words in each.in_words(stored.path, stored.rows)))


def _sample_facts(dataset: Dataset) -> dict[str, int]:
    """Return a dict with the number of rows of the whole data, and the number of rows and blocks of the sample. The
    dict is empty if the data set is not a sample."""
    facts = ("input_rows", "sampled_rows", "blocks")
    return {key: int(dataset.source[key]) for key in facts if key in dataset.source}
