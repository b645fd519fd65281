"""One run over a cluster: from its plan to a folder with an ordinary result folder for each host."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

import data_generator.cache as data_cache
from bench_runner.errors import RunError
from bench_runner.plan.chain import Plan
from bench_runner.request import Request
from bench_runner.results.records import Run, read_run
from bench_runner.run.cluster import agent
from bench_runner.run.cluster.dispatch import Dispatch, Part, divided, groups_of
from bench_runner.run.cluster.hosts import Host, connected, refuse_differences
from bench_runner.run.cluster.messages import HostFacts, HostTask
from bench_runner.run.interruption import stopped_by_signals
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher

SUMMARY = "cluster.json"
"""The file of the run's folder that names its hosts."""


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a run that `--resume` needs."""

    run_id: str
    seed: int
    hosts: dict[str, HostState]


class HostState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host's part of a stored run."""

    complete: bool
    why: str = ""
    """The reason why it is not complete."""


@dataclass(frozen=True)
class Measured:
    """The result of a run over a cluster: the run of each host, and the hosts whose part is incomplete with the
    reason."""

    folder: Path
    runs: Sequence[Run]
    incomplete: dict[str, str]

    @property
    def failed(self) -> bool:
        """Whether some cells failed or a part is incomplete."""
        failed = any(each.failure is not None and each.failure.is_failure for run in self.runs for each in run.samples)
        return failed or bool(self.incomplete)


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

    Raises RunError if the cluster cannot be reached or its hosts differ, DataError if a data set cannot be made, and
    KeyboardInterrupt after Ctrl-C. All samples that the hosts have sent are kept.
    """
    known = _known(folder) if options.resume else None
    run_id = known.run_id if known else f"{folder.name}-{random.SystemRandom().randrange(2**32):08x}"
    seed = known.seed if known else options.seed
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    with stopped_by_signals() as stop, connected(where, insecure=insecure) as cluster:
        watcher.stage("hosts")
        hosts = cluster.hosts()
        ours = msgspec.msgpack.decode(agent.facts(), type=HostFacts)
        refuse_differences(ours.versions, hosts)
        watcher.note(f"{len(hosts)} host{'s' * (len(hosts) != 1)}: {', '.join(_described(host) for host in hosts)}")
        digests = dict(_digests(plan, watcher))
        costs = groups_of(plan)
        parts = []
        for host, groups in zip(hosts, divided(list(costs), costs, hosts), strict=True):
            place = folder / host.label
            place.mkdir(exist_ok=True)
            sizes = {name: (place / name).stat().st_size for name in agent.APPENDED if (place / name).exists()}
            complete = bool(known and known.hosts.get(host.label, HostState(False)).complete)
            parts.append(Part(host, groups, place, known=sizes, ended=0 if complete else None))
        task = HostTask(
            run_id=run_id,
            suites=tuple(suite.name for suite in plan.suites),
            request=request,
            groups=(),
            machine="",
            command=tuple(command),
            digests=digests,
            seed=seed,
            rounds=options.rounds,
            quick=options.quick,
            budget_s=options.budget_s,
            timeout_s=options.timeout_s,
            isolate=options.isolate,
            fidelity=options.fidelity,
            fresh=options.fresh,
        )
        with _kept(folder, run_id, seed, parts):
            Dispatch(cluster, task, parts, watcher, stop).finish()
    incomplete = {part.host.label: part.why or "not finished" for part in parts if part.groups and part.ended is None}
    runs = [read_run(part.folder) for part in parts if (part.folder / "run.json").exists()]
    return Measured(folder, runs, incomplete)


@contextmanager
def _kept(folder: Path, run_id: str, seed: int, parts: Sequence[Part]) -> Iterator[None]:
    """Write the state of the run before it and after it, however it ends."""

    def write() -> None:
        hosts = {part.host.label: HostState(part.ended is not None, part.why) for part in parts}
        making = folder / f"{SUMMARY}.making"
        making.write_bytes(msgspec.json.format(msgspec.json.encode(Known(run_id, seed, hosts)), indent=1))
        making.replace(folder / SUMMARY)

    write()
    try:
        yield
    finally:
        write()


def _known(folder: Path) -> Known:
    try:
        return msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Known)
    except (OSError, msgspec.DecodeError):
        raise RunError(
            f"{folder} is not a run over a cluster, so it cannot be continued on one.",
            "Omit `resume`, or omit `cluster`.",
            parameter="resume",
            given=str(folder),
        ) from None


def _digests(plan: Plan, watcher: Watcher) -> Iterator[tuple[str, str]]:
    for name, dataset in plan.datasets.items():
        watcher.step(name, None)
        yield name, data_cache.prepare(dataset, data_cache.default_folder()).digest


def _described(host: Host) -> str:
    facts = host.facts
    return f"{host.label} ({facts.cores} cores, {facts.memory_bytes / 1e9:.0f} GB, {len(host.addresses)} workers)"


def hosts_in(folder: Path) -> list[Path]:
    """Return the result folders of the hosts of a run over a cluster; empty if `folder` holds no such run."""
    try:
        known = msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Known)
    except (OSError, msgspec.DecodeError):
        return []
    return [folder / label for label in known.hosts if (folder / label / "run.json").exists()]
