"""The pilot round measures every chain (a save and the operations on the saved copy) on few rows. It finds problems
early and predicts the time and memory of each chain at full size (rule 15)."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from bench_runner.conditions import Conditions
from bench_runner.errors import Failure
from bench_runner.machine import environment
from bench_runner.plan.chain import Chain
from bench_runner.results.records import Sample
from bench_runner.run.prediction import CHAIN_MEMORY_SHARE, Prediction, is_small, pilot_rows, predict, without_pilot
from bench_runner.run.resume import whole
from bench_runner.run.session import Session

DISK_SHARE = 0.9
"""A chain is not run if it is predicted to need more than this share of the free disk space (rule 5)."""


def pilot_round(session: Session) -> dict[Chain, Prediction]:
    """Execute round 0: every chain once on few rows, fast chains first. Return a prediction for each chain that may
    run.

    The times on the smallest data set decide the order of the chains on the other data sets. Small data sets have no
    pilot round, because their first counted round takes no longer than a pilot round. Times of chains on small data
    sets are known from earlier runs, or become known in the first counted round.
    """
    session.stage("pilot round")
    predictions: dict[Chain, Prediction] = {}
    known: dict[tuple[str, Conditions], Prediction] = {}
    for dataset in sorted(session.datasets.values(), key=lambda stored: stored.size_bytes):
        chains = [chain for chain in session.plan.chains if chain.dataset == dataset.name]
        took_ns = {variant: prediction.total_ns for (variant, _), prediction in known.items()}
        for chain in sorted(chains, key=lambda chain: took_ns.get(chain.variant, 0)):
            if is_small(dataset.rows, dataset.size_bytes, quick=session.options.quick):
                predictions[chain] = without_pilot(_known_ns(session, chain, dataset.rows), dataset.size_bytes)
                continue
            session.step(chain.label(), None)
            prediction = _predicted(session, chain)
            if prediction is None:
                continue
            known[chain.variant, chain.conditions] = prediction
            too_much = _too_much(session, chain, prediction)
            if too_much is None:
                predictions[chain] = prediction
            else:
                session.keep_reason(chain, too_much)
    return predictions


def _known_ns(session: Session, chain: Chain, rows: int) -> dict[str, int]:
    """Return the time of each operation of the chain in earlier runs, scaled to `rows`; 0 if unknown."""
    found = {operation: session.costs.expected(operation, chain, rows) for operation in chain.operations}
    return {operation: each.cost.timed_ns if each else 0 for operation, each in found.items()}


def _predicted(session: Session, chain: Chain) -> Prediction | None:
    """Return the prediction for those operations of the chain that pass on few rows. Return None if no operation
    passes."""
    dataset = session.datasets[chain.dataset]
    samples = _screened(session, chain)
    if samples:
        rows = samples[0].rows
    else:
        rows = pilot_rows(dataset.rows, dataset.size_bytes)
        samples = session.execution(chain, rows=rows, round_number=0, need_bytes=dataset.size_bytes // 10)
    prediction = _of_passed(chain, samples, dataset.rows)
    if prediction is None:
        return None
    if prediction.peak_bytes <= CHAIN_MEMORY_SHARE * environment.usable_memory_bytes() or dataset.rows <= 10 * rows:
        return prediction
    # Scaling to all rows multiplies fixed costs too, so the predicted memory may be too high. Ten times the rows give a
    # better prediction.
    need_bytes = prediction.peak_bytes // 5
    samples = session.execution(chain, rows=10 * rows, round_number=0, need_bytes=need_bytes)
    return _of_passed(chain, samples, dataset.rows)


def _of_passed(chain: Chain, samples: Sequence[Sample], rows: int) -> Prediction | None:
    """Return the prediction from the operations that passed, or None if no operation of the chain passed."""
    passed = [sample for sample in samples if sample.failure is None]
    return predict(passed, rows) if any(sample.operation in chain.operations for sample in passed) else None


def _screened(session: Session, chain: Chain) -> list[Sample]:
    """Return the samples of the chain from the screening, a run that measured the chain on few rows of the same data.
    Return an empty list if there was no screening."""
    if session.race is None or session.race.screening is None:
        return []
    identity = chain.variant, session.public(chain.conditions)
    executions: dict[int, list[Sample]] = {}
    for sample in session.race.screening.samples:
        if (sample.variant, sample.conditions) == identity and sample.failure is None:
            executions.setdefault(sample.round, []).append(sample)
    complete = [samples for samples in executions.values() if whole(samples).issuperset(chain.operations)]
    return complete[-1] if complete else []


def _too_much(session: Session, chain: Chain, prediction: Prediction) -> Failure | None:
    """Return the failure to record for a chain that would exceed the machine's memory, disk or time limit (rule 5).
    Return None if the chain can be run."""
    available = environment.usable_memory_bytes()
    # The table itself is needed in addition to the peak, as input of a save or as result of a read.
    need_bytes = prediction.peak_bytes + session.datasets[chain.dataset].size_bytes
    if need_bytes > CHAIN_MEMORY_SHARE * available:
        return Failure(
            kind="memory",
            reason=f"needs about {need_bytes / 1e9:.1f} GB of memory, but only {available / 1e9:.1f} GB are free",
        )
    free = shutil.disk_usage(session.bench(chain).folder).free
    if prediction.size_bytes > DISK_SHARE * free:
        reason = f"needs about {prediction.size_bytes / 1e9:.1f} GB of disk, but only {free / 1e9:.1f} GB are free"
        return Failure(kind="disk", reason=reason)
    longest = session.options.timeout_s
    if prediction.slowest_ns > 2 * longest * 1e9:
        minutes = prediction.slowest_ns / 60e9
        reason = f"would take about {minutes:.0f} minutes, over the limit of {longest / 60:.0f}; --timeout allows more"
        return Failure(kind="timeout", reason=reason)
    return None
