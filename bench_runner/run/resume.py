"""Read the samples that a run measured before it was interrupted, and check that the run may be resumed.

A resumed run must have the same code, libraries, machine and data as before. This module reads the stored samples
and returns which of them need not be measured again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench_runner.conditions import Conditions
from bench_runner.errors import Failure, RunError
from bench_runner.operations import SAVE, VERIFYING
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Run, RunInfo, Sample, packed_files, read_run

_MUST_BE_EQUAL = ("commit", "dirty", "changes", "isolate")
_MACHINE_MUST_BE_EQUAL = ("name", "cpu", "cores", "memory_bytes", "kernel", "virtualisation", "python")


@dataclass(frozen=True)
class Earlier:
    """The part of a run before it was interrupted, or before its current turn (bench_runner.run.turns). For a new run,
    this object is empty."""

    run: Run | None = None
    by_execution: Mapping[tuple[object, int, int], Sequence[Sample]] = field(default_factory=dict)
    """The samples of each execution. The key consists of the chain, the round and the number of rows."""

    @property
    def next_position(self) -> int:
        """The position of the next sample. It continues the numbering of the samples in the earlier part."""
        return 1 + max((sample.position for sample in self.run.samples), default=-1) if self.run else 0

    @property
    def fidelity(self) -> set[tuple[str, str]]:
        """The pairs (variant, target) for which the earlier part has fidelity records."""
        return {(record.variant, record.target) for record in self.run.fidelity} if self.run else set()

    def has_reason(self, chain: Chain, conditions: Conditions, rows: int, failure: Failure) -> bool:
        """Return whether the reason why the chain is not run is already recorded. This is so if the earlier part has a
        failure of the same kind for each operation of the chain. The text of the reason may differ, e.g. in the amount
        of free memory."""
        recorded = {
            sample.operation
            for sample in (self.run.samples if self.run else ())
            if identity(sample) == _chain_identity(chain, conditions)
            and sample.failure is not None
            and (sample.failure.kind, sample.rows, sample.round) == (failure.kind, rows, 0)
        }
        return recorded.issuperset(chain.operations)

    def execution(self, chain: Chain, conditions: Conditions, round_number: int, rows: int) -> list[Sample]:
        """Return the samples of one execution of the chain on `rows` rows, or an empty list. If the execution was
        interrupted, some operations have no sample."""
        return list(self.by_execution.get((_chain_identity(chain, conditions), round_number, rows), ()))


def whole(execution: Sequence[Sample]) -> set[str]:
    """Return the operations of an execution that need not be measured again, because they have figures or a failure.
    Two kinds of operations must be measured again: operations that the user did not request, and a save that no read
    has verified."""
    there = {sample.operation for sample in execution if not sample.in_service}
    saves = [sample for sample in execution if sample.operation == SAVE and not sample.in_service]
    seen = any(sample.operation == VERIFYING for sample in execution)
    if not seen and all(sample.failure is None for sample in saves):
        there.discard(SAVE)
    return there


_NEW_RUN = "Start a new run, without `resume` and with another `out`."


def identity(sample: Sample) -> object:
    """Return a key that is equal for all samples of one chain."""
    return sample.suite, sample.dataset, sample.variant, sample.conditions


def _chain_identity(chain: Chain, conditions: Conditions) -> object:
    return chain.suite, chain.dataset, chain.variant, conditions


def earlier_part(folder: Path, info: RunInfo, needed: Mapping[str, Collection[str]]) -> Earlier:
    """Read and return the interrupted run in `folder`. `info` describes the run that continues the interrupted run, and
    `needed` has the names of the libraries that each of its variants needs.

    Raises RunError if the two runs have different code, libraries or machines, and RecordError if the folder cannot be
    read.
    """
    run = read_run(folder)
    if packed := packed_files(folder):
        raise RunError(
            f"{folder} cannot be resumed because its samples are packed.",
            f"Unpack them first: unxz {' '.join(map(str, packed))}",
            parameter="resume",
        )
    before, now = run.info, info
    changes = [_change(name, getattr(before, name), getattr(now, name)) for name in _MUST_BE_EQUAL]
    changes += [
        _change(name, getattr(before.machine, name), getattr(now.machine, name)) for name in _MACHINE_MUST_BE_EQUAL
    ]
    changes += [
        _change(name, before.libraries.get(name), now.libraries.get(name)) for name in _compared(run, now, needed)
    ]
    found = [change for change in changes if change]
    if found:
        raise RunError(f"{folder} cannot be resumed because {'; '.join(found[:4])}.", _NEW_RUN, parameter="resume")
    executions: dict[tuple[object, int, int], list[Sample]] = {}
    for sample in run.samples:
        executions.setdefault((identity(sample), sample.round, sample.rows), []).append(sample)
    # A record that only states why an operation was not run is not an execution.
    return Earlier(
        run,
        {
            key: samples
            for key, samples in executions.items()
            if samples[0].round > 0 or any(sample.figures for sample in samples)
        },
    )


def _compared(before: Run, now: RunInfo, needed: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names of the libraries whose versions must be equal, sorted.

    A run records only the libraries that its variants need. (Runs of earlier versions recorded the libraries of all
    formats.) If a run is resumed with other formats, each part therefore has libraries that the other part lacks. An
    absent library is only a change if a variant of both parts needs it.
    """
    variants = {*before.info.variants, *(sample.variant for sample in before.samples)}
    of_both = {name for variant, names in needed.items() if variant in variants for name in names}
    return sorted(of_both | (before.info.libraries.keys() & now.libraries.keys()))


def _change(name: str, before: object, now: object) -> str:
    if before == now:
        return ""
    if name == "changes":
        return "the uncommitted changes differ"
    return f"{name} was {'absent' if before is None else before} and is {'absent' if now is None else now}"


def refuse_other_data(earlier: Earlier, digests: Mapping[str, str]) -> None:
    """Raise RunError if a data set has a different digest than in the interrupted run."""
    for name, facts in (earlier.run.info.datasets if earlier.run else {}).items():
        if name in digests and digests[name] != facts.digest:
            raise RunError(
                f"The run cannot be resumed because the digest of the data set {name} has changed.",
                _NEW_RUN,
                parameter="resume",
            )
