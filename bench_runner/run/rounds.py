"""The loop over the rounds whose samples statistics use (rule 15 of docs/method.md). A `Rounds` object decides which
chains are executed in a round. A chain is one save followed by the operations that read the saved copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bench_runner.clock import now_ns
from bench_runner.plan.chain import Chain
from bench_runner.run.budget import BudgetRounds, Spending
from bench_runner.run.prediction import Prediction, used_bytes
from bench_runner.run.race import MOST_RACE_ROUNDS, RaceRounds
from bench_runner.run.schedule import Rounds, Schedule
from bench_runner.run.session import Session

OVERHEAD_S = 0.6
"""Estimated seconds that an execution of a chain takes in addition to its operations. The estimate is used for the
remaining time and the budget until the chain has been executed once."""


def count_rounds(session: Session, predictions: Mapping[Chain, Prediction], share: float = 1.0) -> None:
    """Execute rounds until no chain needs another round. With a budget, stop when the fraction `share` of the budget is
    spent."""
    asked = session.options.rounds_asked
    if session.race is not None and asked is None:
        asked = MOST_RACE_ROUNDS
    schedule = Schedule(predictions, seed=session.seed, rounds=asked)
    schedule.pause(session.paused)
    costs_s = {chain: OVERHEAD_S + prediction.total_ns / 1e9 for chain, prediction in predictions.items()}
    spending = Spending(session, schedule, costs_s, session.budget_ends_ns(share))
    used: Counter[Chain] = Counter()
    rounds = _rounds(session, schedule, spending)
    while due := rounds.next_round():
        session.stage(f"round {rounds.number}")
        for index, chain in enumerate(due):
            if not rounds.fits(chain):
                continue
            session.step(chain.label(), spending.seconds_left(due[index:]))
            began_ns = now_ns()
            dataset, predicted = session.datasets[chain.dataset], predictions[chain]
            # The memory needed is the peak of the call, plus the page cache for the file that the call writes.
            expected_bytes = max(predicted.peak_bytes, dataset.size_bytes) + predicted.size_bytes
            samples = session.execution(
                chain,
                rows=dataset.rows,
                round_number=rounds.number,
                # Do not ask for more. Twice the memory takes three times as long to make ready, without bringing the
                # machine closer to rest.
                need_bytes=used[chain] or expected_bytes,
                wanted=schedule.wanted(chain, rounds.number),
            )
            spending.learn(chain, began_ns, samples)
            schedule.learn(chain, samples)
            used[chain] = max(used[chain], used_bytes(samples))


def _rounds(session: Session, schedule: Schedule, spending: Spending) -> Rounds:
    if session.race is not None:
        return RaceRounds(session.race, schedule, spending, session.folder)
    if spending.deadline_ns is not None:
        return BudgetRounds(session, schedule, spending, spending.deadline_ns)
    return Rounds(schedule)
