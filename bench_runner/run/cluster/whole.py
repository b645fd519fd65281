"""Execute one run over a cluster, from its plan to its result folder. The result folder contains an ordinary result
folder for each host."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import data_generator.cache as data_cache
from bench_runner.clock import now_ns
from bench_runner.errors import RunError
from bench_runner.plan.chain import Plan
from bench_runner.request import Request
from bench_runner.results.records import Run, read_run
from bench_runner.run.cluster import agent
from bench_runner.run.cluster.dispatch import Dispatch, Part
from bench_runner.run.cluster.division import (
    Division,
    StoredPart,
    divided,
    groups_of,
    host_folders,
    incomplete,
    label_hosts,
    store,
    stored,
)
from bench_runner.run.cluster.hosts import Host, SchedulerLost, connected, refuse_differences
from bench_runner.run.cluster.messages import HostFacts, HostTask
from bench_runner.run.interruption import stopped_by_signals
from bench_runner.run.measuring import has_failures
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher
from bench_runner.worker.messages import decode


@dataclass(frozen=True)
class Measured:
    """The result of a run over a cluster."""

    runs: Sequence[Run]
    """The runs of all hosts that have measured something."""
    incomplete: dict[str, str]
    """Maps the label of each host whose part is incomplete to the reason."""

    @property
    def failed(self) -> bool:
        """Whether some cells failed or a part is incomplete."""
        return bool(self.incomplete) or any(map(has_failures, self.runs))


def measure_over(
    where: str,
    plan: Plan,
    request: Request,
    options: Options,
    folder: Path,
    command: Sequence[str],
    watcher: Watcher,
    *,
    insecure: bool = False,
) -> Measured:
    """Measure a plan on the hosts of the cluster at `where`.

    Raises RunError if the cluster cannot be reached or if versions on the cluster's hosts differ, DataError if a data
    set cannot be made, and KeyboardInterrupt after Ctrl-C. All samples that the hosts have sent are kept.
    """
    began_ns = now_ns() if options.began_ns is None else options.began_ns
    earlier = stored(folder) if options.resume else _new(folder, options)
    request = _with_absolute_paths(request)
    with stopped_by_signals() as stop, connected(where, insecure=insecure) as cluster:
        watcher.stage("hosts")
        try:
            hosts = cluster.hosts()
        except SchedulerLost as error:
            raise RunError(f"The scheduler at {where} has ended ({error}).", parameter="cluster") from None
        label_hosts(hosts, earlier.parts)
        refuse_differences(decode(agent.facts(), HostFacts).versions, hosts)
        costs = groups_of(plan)
        parts = [
            Part(host, groups, folder / host.label, _is_finished(earlier.parts.get(host.label), groups))
            for host, groups in zip(hosts, divided(costs, hosts, earlier.parts), strict=True)
        ]
        for note in _notes(parts, len(costs)):
            watcher.note(note)
        for part in parts:
            part.folder.mkdir(exist_ok=True)
        watcher.stage("data")
        digests = {}
        for name, dataset in plan.datasets.items():
            watcher.step(name, None)
            digests[name] = data_cache.prepare(dataset, data_cache.default_folder()).digest
        task = HostTask(
            run_id=earlier.run_id,
            suites=tuple(suite.name for suite in plan.suites),
            request=request,
            groups=(),
            machine="",
            command=tuple(command),
            digests=digests,
            seed=earlier.seed,
            rounds=options.rounds,
            quick=options.quick,
            budget_s=options.budget_s,
            timeout_s=options.timeout_s,
            isolate=options.isolate,
            fidelity=options.fidelity,
            fresh=options.fresh,
        )

        def keep() -> None:
            now = {
                part.host.label: StoredPart(
                    identity=part.host.facts.identity,
                    kind=part.host.facts.kind,
                    groups=part.groups,
                    finished=part.finished,
                    reason=part.reason,
                )
                for part in parts
            }
            store(folder, msgspec.structs.replace(earlier, parts={**earlier.parts, **now}))

        keep()
        watcher.stage("measuring")
        Dispatch(cluster, task, parts, watcher, stop, changed=keep, began_ns=began_ns).finish()
    return Measured([read_run(each) for each in host_folders(folder)], incomplete(stored(folder)))


def _new(folder: Path, options: Options) -> Division:
    drawn = random.SystemRandom().randrange(2**32)
    seed = drawn if options.seed is None else options.seed
    return Division(run_id=f"{folder.resolve().name}-{drawn:08x}", seed=seed, parts={})


def _with_absolute_paths(request: Request) -> Request:
    """Return the request with absolute paths, because hosts have other current folders."""
    return msgspec.structs.replace(
        request,
        data=request.data and request.data.absolute(),
        webface=request.webface and request.webface.absolute(),
        work_dirs=tuple(each if each == "default" else str(Path(each).absolute()) for each in request.work_dirs),
    )


def _is_finished(part: StoredPart | None, groups: Sequence[object]) -> bool:
    return part is not None and part.finished and set(part.groups) == set(groups)


def _notes(parts: Sequence[Part], groups: int) -> list[str]:
    hosts = [part.host for part in parts]
    kinds = {host.facts.kind for host in hosts}
    found = [f"{_counted(len(hosts), 'host')}: {', '.join(_described(host) for host in hosts)}"]
    if len(hosts) == 1 and len(hosts[0].addresses) > 1:
        found.append("all workers are on one machine, so one chain is measured at a time")
    if len(kinds) > 1:
        found.append(f"{len(kinds)} kinds of machine: each kind measures everything")
    if idle := [part.host.label for part in parts if not part.groups]:
        what = _counted(groups, "data set")
        found.append(f"nothing to do for {', '.join(idle)}: {what} cannot be divided between more hosts")
    return found


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _described(host: Host) -> str:
    return f"{host.label} ({host.facts.kind}, {_counted(len(host.addresses), 'worker')})"
