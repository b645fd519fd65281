"""The process that measures a host's part of a run: `python -m bench_runner.run.cluster.part PARENT`. PARENT is the
process id of the dask worker. The process reads a HostTask from standard input."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from adapters.errors import UserError
from bench_runner.clock import now_ns, pause
from bench_runner.errors import RunError
from bench_runner.machine import linux
from bench_runner.plan.chain import Plan
from bench_runner.plan.planning import make_plan
from bench_runner.results.records import Cell, RunInfo
from bench_runner.run.cluster.agent import FINISHED, INFO, REFUSED, SOME_FAILED, STOPPED, folder_of
from bench_runner.run.cluster.division import group_of
from bench_runner.run.cluster.messages import Group, HostTask
from bench_runner.run.measuring import measure
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher
from bench_runner.run.work_folder import open_locked
from bench_runner.suites import SUITES
from bench_runner.worker.messages import decode

ALONE_S = 20.0
"""Longest wait, in seconds, until an earlier process of the same part has ended. The earlier process ends after the
dask worker that started it."""


def part_of(plan: Plan, groups: Collection[Group]) -> Plan:
    """Return the plan reduced to the chains of these groups."""
    chains = tuple(chain for chain in plan.chains if group_of(chain) in groups)
    excluded = tuple(each for each in plan.excluded if group_of(each.chain) in groups)
    names = {chain.dataset for chain in (*chains, *(each.chain for each in excluded))}
    datasets = {name: dataset for name, dataset in plan.datasets.items() if name in names}
    return replace(plan, chains=chains, excluded=excluded, datasets=datasets)


class _SameData(Watcher):
    """Watcher that raises RunError before the first chain if the host's data differ from the client's data."""

    def __init__(self, digests: Mapping[str, str]) -> None:
        self._digests = digests

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """Compare the digests of the data sets with the digests on the client. Raises RunError if a digest differs."""
        for name, dataset in info.datasets.items():
            if dataset.digest != self._digests.get(name):
                raise RunError(
                    f"The data set {name} differs between this host (digest {dataset.digest[:12]}) and the client "
                    f"(digest {self._digests.get(name, 'none')[:12]})."
                )


def main() -> int:
    """Measure the part. Return the exit code."""
    linux.die_with_parent(int(sys.argv[1]))
    task: HostTask = decode(sys.stdin.buffer.read(), HostTask)
    folder = folder_of(task.run_id)
    options = Options(
        rounds=task.rounds,
        quick=task.quick,
        budget_s=task.budget_s,
        timeout_s=task.timeout_s,
        seed=task.seed,
        isolate=task.isolate,
        resume=(folder / INFO).exists(),
        machine=task.machine,
        fidelity=task.fidelity,
        fresh=task.fresh,
    )
    try:
        _wait_for_earlier_process(task.run_id)
        plan = part_of(make_plan([SUITES[name] for name in task.suites], task.request), task.groups)
        _, failed = measure(plan, task.request, options, folder, task.command, _SameData(task.digests))
    except KeyboardInterrupt:
        return STOPPED
    except (UserError, OSError) as error:
        # The client shows one line.
        print(" ".join(str(error).split()), flush=True)
        return REFUSED
    return SOME_FAILED if failed else FINISHED


def _wait_for_earlier_process(run_id: str) -> None:
    until = now_ns() + ALONE_S * 1e9
    while now_ns() < until:
        with open_locked(folder_of(run_id)) as alone:
            if alone:
                return
        pause(0.2)


if __name__ == "__main__":
    sys.exit(main())
