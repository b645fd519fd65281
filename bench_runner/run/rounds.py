"""The loop over the counted rounds (rule 15). A `Rounds` object decides which chains a round has."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping

from bench_runner.clock import now_ns
from bench_runner.plan.chain import Chain
from bench_runner.run.budget import BudgetRounds, Spending
from bench_runner.run.prediction import Prediction, used_bytes
from bench_runner.run.race import MOST_RACE_ROUNDS, RaceRounds
from bench_runner.run.schedule import Rounds, Schedule
from bench_runner.run.session import Session

PAUSED_VARIABLE = "FORMAT_BENCH_PAUSED"
"""Environment variable with a JSON list of [variant, operation] that need no further samples. `side-by-side` sets it
for the runs that it starts. An older version of Format Bench ignores it and measures more than is needed."""
OVERHEAD_S = 0.6
"""Assumed seconds of a chain in addition to its operations, used until the chain has run. It affects the time left and
the budget."""


def count_rounds(session: Session, predictions: Mapping[Chain, Prediction], share: float = 1.0) -> None:
    """Execute rounds until no chain needs another round, or until this share of the budget is spent."""
    asked = session.options.rounds_asked
    if session.race is not None and asked is None:
        asked = MOST_RACE_ROUNDS
    schedule = Schedule(predictions, seed=session.seed, rounds=asked)
    schedule.pause((variant, operation) for variant, operation in json.loads(os.environ.get(PAUSED_VARIABLE, "[]")))
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
            # Memory and page cache: the peak of the call plus the file that it writes.
            expected_bytes = max(predicted.peak_bytes, dataset.size_bytes) + predicted.size_bytes
            samples = session.execution(
                chain,
                rows=dataset.rows,
                round_number=rounds.number,
                # Do not ask for more: making twice the memory ready takes three times as long, and settles no better.
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
