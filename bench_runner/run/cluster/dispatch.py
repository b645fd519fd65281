"""Divide a run over the hosts of a cluster, follow their parts, and fetch the results as they come.

Hosts of different kinds measure everything, so that they can be shown side by side. Hosts of one kind share the groups
of chains between them. Each host's part is an ordinary result folder below the run's folder, named after the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench_runner.clock import now_ns, pause
from bench_runner.plan.chain import Plan
from bench_runner.results.records import Sample
from bench_runner.run.cluster import agent
from bench_runner.run.cluster.hosts import Cluster, Host, HostLost
from bench_runner.run.cluster.messages import Group, HostTask, Progress
from bench_runner.run.cluster.part import NOT_MEASURED, group_of
from bench_runner.run.interruption import StopRequest
from bench_runner.run.watcher import Watcher

LOOK_S = 5.0
"""Interval at which each host is asked for new results. An answer takes some milliseconds of a host's processor."""
WAIT_S = 30.0
"""How long a host without workers may come back before its part goes to another host of its kind."""


@dataclass
class Part:
    """A host's part of the run."""

    host: Host
    groups: list[Group]
    folder: Path
    known: dict[str, int] = field(default_factory=dict)
    """Bytes of each file that the client has."""
    running: bool = False
    ended: int | None = None
    lost_ns: int | None = None
    """Since when the host has had no worker."""
    why: str = ""


def divided(groups: Sequence[Group], costs: Mapping[Group, float], hosts: Sequence[Host]) -> list[list[Group]]:
    """Return the groups of each host. All groups go to each kind of host. Within a kind, the most expensive group goes
    next to the host that has the least to do."""
    parts: list[list[Group]] = [[] for _ in hosts]
    kinds = dict.fromkeys(host.facts.kind for host in hosts)
    for kind in kinds:
        members = [number for number, host in enumerate(hosts) if host.facts.kind == kind]
        spent = dict.fromkeys(members, 0.0)
        for group in sorted(groups, key=lambda each: -costs[each]):
            least = min(members, key=lambda number: spent[number])
            parts[least].append(group)
            spent[least] += costs[group]
    return parts


def groups_of(plan: Plan) -> dict[Group, float]:
    """Return the groups of a plan with a rough cost: the rows of all operations of their chains."""
    found: dict[Group, float] = {}
    for chain in plan.chains:
        group = group_of(chain)
        found[group] = found.get(group, 0.0) + plan.datasets[chain.dataset].rows * len(chain.operations)
    return found


class Dispatch:
    """The parts of a run, until all have ended or are given up."""

    def __init__(
        self, cluster: Cluster, task: HostTask, parts: Sequence[Part], watcher: Watcher, stop: StopRequest
    ) -> None:
        self._cluster, self._task, self.parts = cluster, task, list(parts)
        self._watcher, self._stop = watcher, stop

    def finish(self) -> None:
        """Measure everything. After Ctrl-C or SIGTERM the hosts' parts are stopped and fetched. Raises
        KeyboardInterrupt."""
        try:
            while any(not self._has_ended(part) for part in self.parts):
                for part in self.parts:
                    self._stop.check()
                    self._look(part)
                self._reassign()
                pause(LOOK_S if all(part.running or self._has_ended(part) for part in self.parts) else 0.2)
        except BaseException:
            self._stop_all()
            raise
        for part in self.parts:
            if part.ended is not None and part.ended != NOT_MEASURED:
                self._quietly(part, agent.forget, self._task.run_id)

    def _has_ended(self, part: Part) -> bool:
        return part.ended is not None or bool(part.why) or not part.groups

    def _look(self, part: Part) -> None:
        """Start the part if it is not running, and fetch what is new."""
        if self._has_ended(part):
            return
        try:
            if not part.running:
                self._cluster.refresh([part.host])
                task = msgspec.structs.replace(self._task, groups=tuple(part.groups), machine=part.host.label)
                self._cluster.call(part.host, agent.start, msgspec.msgpack.encode(task, enc_hook=str))
                part.running, part.lost_ns = True, None
            self._fetch(part)
        except HostLost:
            part.running = False
            part.lost_ns = part.lost_ns or now_ns()
        except TimeoutError:
            # The host is slow to answer, but its worker is connected.
            return

    def _fetch(self, part: Part) -> None:
        answer = self._cluster.call(part.host, agent.progress, self._task.run_id, dict(part.known))
        found = msgspec.msgpack.decode(answer, type=Progress)
        for piece in found.pieces:
            with (part.folder / piece.name).open("ab") as file:
                file.write(piece.content)
            part.known[piece.name] = piece.start + len(piece.content)
            if piece.name == "samples.jsonl":
                lines = piece.content.splitlines()
                self._watcher.measured([msgspec.json.decode(line, type=Sample) for line in lines])
        if found.info:
            (part.folder / "run.json.making").write_bytes(found.info)
            (part.folder / "run.json.making").replace(part.folder / "run.json")
        if found.ended == NOT_MEASURED:
            part.why = found.last_words or "its part ended without a message"
        elif found.ended is not None and found.ended not in (0, 1):
            # The process was killed, so continue its folder.
            part.running = False
        else:
            part.ended = found.ended

    def _reassign(self) -> None:
        """Give the groups of a lost host to another one of its kind that has ended its part."""
        for part in self.parts:
            if part.lost_ns is None or self._has_ended(part) or now_ns() - part.lost_ns < WAIT_S * 1e9:
                continue
            others = [each for each in self.parts if each is not part and each.host.facts.kind == part.host.facts.kind]
            free = next((each for each in others if each.ended is not None), None)
            if free is not None:
                free.groups += [group for group in part.groups if group not in free.groups]
                free.ended, free.running = None, False
                part.why = f"the host was lost; its part was given to {free.host.label}"
            elif all(each.why for each in others):
                part.why = "the host was lost, and no other of its kind is left"

    def _stop_all(self) -> None:
        for part in self.parts:
            if part.running and not self._has_ended(part):
                self._quietly(part, agent.stop, self._task.run_id)
                self._quietly_fetched(part)

    def _quietly(self, part: Part, function: object, *given: object) -> None:
        try:
            self._cluster.call(part.host, function, *given, limit_s=agent.END_S + 5)  # type: ignore[arg-type]
        except (HostLost, TimeoutError, OSError) as error:
            self._watcher.note(f"{part.host.label}: {type(error).__name__}: {error}")

    def _quietly_fetched(self, part: Part) -> None:
        try:
            self._fetch(part)
        except (HostLost, TimeoutError, OSError) as error:
            self._watcher.note(f"{part.host.label}: its last results could not be fetched ({error})")
