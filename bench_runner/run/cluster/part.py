"""The process that measures a host's part of a run: `python -m bench_runner.run.cluster.part PARENT`, task on stdin."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from bench_runner.errors import BenchError, RunError
from bench_runner.machine import linux
from bench_runner.plan.chain import Chain, Plan
from bench_runner.plan.planning import make_plan
from bench_runner.results.records import Cell, RunInfo
from bench_runner.run.cluster.agent import folder_of
from bench_runner.run.cluster.messages import Group, HostTask
from bench_runner.run.measuring import measure
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher
from bench_runner.suites import SUITES

SOME_FAILED, NOT_MEASURED = 1, 2
"""Exit codes: some cells failed and all others were measured; the part was not measured."""


def only(plan: Plan, groups: tuple[Group, ...]) -> Plan:
    """Return the part of a plan that consists of these groups."""
    chains = tuple(chain for chain in plan.chains if group_of(chain) in groups)
    excluded = tuple(each for each in plan.excluded if group_of(each.chain) in groups)
    names = {chain.dataset for chain in (*chains, *(each.chain for each in excluded))}
    datasets = {name: dataset for name, dataset in plan.datasets.items() if name in names}
    return replace(plan, chains=chains, excluded=excluded, datasets=datasets)


def group_of(chain: Chain) -> Group:
    """Return the group of a chain."""
    return Group(chain.suite, chain.dataset, chain.conditions)


class _Checked(Watcher):
    """Stops the run before its first chain if the data differ from the client's."""

    def __init__(self, digests: dict[str, str]) -> None:
        self._digests = digests

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """Compare the digests, which are known now."""
        for name, about in info.datasets.items():
            if name in self._digests and about.digest != self._digests[name]:
                raise RunError(f"The data set {name} has another digest on this host than on the client.")


def main() -> int:
    """Measure the part. Return the exit code."""
    linux.die_with_parent(int(sys.argv[1]))
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=HostTask, strict=False)
    folder = folder_of(task.run_id)
    options = Options(
        rounds=task.rounds,
        quick=task.quick,
        budget_s=task.budget_s,
        timeout_s=task.timeout_s,
        seed=task.seed,
        isolate=task.isolate,
        resume=(folder / "run.json").exists(),
        machine=task.machine,
        fidelity=task.fidelity,
        fresh=task.fresh,
    )
    try:
        plan = only(make_plan([SUITES[name] for name in task.suites], task.request), task.groups)
        _, failed = measure(plan, task.request, options, folder, task.command, _Checked(task.digests))
    except KeyboardInterrupt:
        return NOT_MEASURED
    except BenchError as error:
        print(error.text)
        return NOT_MEASURED
    return SOME_FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main())
