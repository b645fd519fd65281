"""Follow the parts of a run on their hosts, fetch the results as they come, and replace hosts that are lost.

Each host's part is an ordinary result folder below the run's folder, named after the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench_runner.clock import now_ns, pause
from bench_runner.errors import RunError
from bench_runner.results.records import Sample
from bench_runner.run.cluster import agent
from bench_runner.run.cluster.hosts import Cluster, Host, HostLost, SchedulerLost, SlowHost
from bench_runner.run.cluster.messages import Group, HostTask, Progress
from bench_runner.run.interruption import StopRequest
from bench_runner.run.watcher import Watcher
from bench_runner.worker.messages import decode, encode

LOOK_S = 2.0
"""Interval in seconds at which hosts are asked for new results. An answer takes some milliseconds of a processor."""
LOST_S = 30.0
"""Time in seconds in which a lost host may come back before another host of its kind gets its groups."""
SCHEDULER_S = 120.0
"""Time in seconds in which a lost scheduler may come back."""
END_S = 40.0
"""Longest wait, in seconds, for stopped parts to end."""
MOST_KILLED = 3
"""A part is given up if its process is killed this many times without having measured anything."""


@dataclass
class Part:
    """A host's part of the run."""

    host: Host
    groups: tuple[Group, ...]
    folder: Path
    finished: bool = False
    reason: str = ""
    """The reason why the part is given up, or ''."""
    started: bool = False
    lost_ns: int | None = None
    """Since when the host has had no worker."""
    killed: int = 0
    """How many times in a row the process was killed without having measured anything."""
    samples: int = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing more will be measured for this part."""
        return self.finished or bool(self.reason) or not self.groups

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file of which the client has a copy."""
        names = agent.APPENDED
        return {name: (self.folder / name).stat().st_size for name in names if (self.folder / name).exists()}


class Dispatch:
    """The parts of a run, until all are finished or given up."""

    def __init__(
        self,
        cluster: Cluster,
        task: HostTask,
        parts: Sequence[Part],
        watcher: Watcher,
        stop: StopRequest,
        *,
        changed: Callable[[], None],
        began_ns: int,
    ) -> None:
        """`changed` is called whenever a part is finished, given up, or gets other groups. The budget of `task` begins
        at `began_ns`."""
        self._cluster, self._task, self._parts = cluster, task, parts
        self._watcher, self._stop, self._changed, self._began_ns = watcher, stop, changed, began_ns

    def finish(self) -> None:
        """Measure everything. After Ctrl-C or SIGTERM, the parts are stopped and fetched. Raises KeyboardInterrupt, and
        RunError if the scheduler does not come back."""
        try:
            while not all(part.is_done for part in self._parts):
                self._stop.check()
                try:
                    self._cluster.keep_up()
                    for part in self._parts:
                        self._advance(part)
                except SchedulerLost:
                    self._find_scheduler()
                self._replace_lost()
                self._watcher.step(self._status(), None)
                pause(LOOK_S)
        except BaseException:
            self._stop_parts()
            raise
        for part in self._parts:
            if part.finished:
                self._try(part, agent.forget, "its copy of the results was not removed")

    def _id(self, part: Part) -> str:
        """Return the id of the host's run, which is the name of its folder there. It differs between hosts, because
        their home folders may be on one network drive."""
        return f"{self._task.run_id}-{part.host.label}"

    def _status(self) -> str:
        return ", ".join(f"{part.host.label}: {part.samples:,} samples" for part in self._parts if part.groups)

    def _advance(self, part: Part) -> None:
        """Start the part if it does not run, and fetch what is new. Raises SchedulerLost."""
        if part.is_done:
            return
        try:
            if not part.host.addresses:
                self._cluster.look_for(part.host)
            if not part.started:
                self._start(part)
            found = self._fetch(part)
            while any(len(piece.content) > agent.MOST_BYTES // 2 for piece in found.pieces):
                found = self._fetch(part)
            if part.lost_ns is not None:
                self._watcher.note(f"{part.host.label} has a worker again and continues")
                part.lost_ns = None
        except HostLost:
            part.started = False
            if part.lost_ns is None:
                self._watcher.note(f"{part.host.label} has no worker any more; waiting for it")
                part.lost_ns = now_ns()
        except SlowHost:
            # Ask again next time.
            return
        except (RunError, OSError) as error:
            self._give_up(part, " ".join(str(error).split()))

    def _start(self, part: Part) -> None:
        """Give the host what the client has and the host has not, and start the part there."""
        run_id = self._id(part)
        there = self._cluster.call(part.host, agent.sizes, run_id)
        for name, size in part.sizes().items():
            if there.get(name, 0) < size:
                self._cluster.call(part.host, agent.put, run_id, name, (part.folder / name).read_bytes())
        info = part.folder / agent.INFO
        if agent.INFO not in there and info.exists():
            self._cluster.call(part.host, agent.put, run_id, agent.INFO, info.read_bytes())
        budget_s = self._task.budget_s
        task = msgspec.structs.replace(
            self._task,
            run_id=run_id,
            groups=part.groups,
            machine=part.host.label,
            budget_s=None if budget_s is None else max(budget_s - (now_ns() - self._began_ns) / 1e9, 1.0),
        )
        self._cluster.call(part.host, agent.start, encode(task))
        part.started = True

    def _fetch(self, part: Part) -> Progress:
        answer = self._cluster.call(part.host, agent.progress, self._id(part), part.sizes())
        try:
            found: Progress = decode(answer, Progress)
            lines = [line for each in found.pieces if each.name == agent.SAMPLES for line in each.content.splitlines()]
            samples = [msgspec.json.decode(line, type=Sample) for line in lines]
        except msgspec.MsgspecError as error:
            raise RunError(f"{part.host.label} has given an invalid answer: {error}.") from None
        for piece in found.pieces:
            if piece.name not in agent.APPENDED or piece.start != part.sizes().get(piece.name, 0):
                raise RunError(f"{part.host.label} has answered with a piece of {piece.name!r} that does not fit.")
            with (part.folder / piece.name).open("ab") as file:
                file.write(piece.content)
        if samples:
            part.samples += len(samples)
            part.killed = 0
            self._watcher.measured(samples)
        if found.info:
            making = part.folder / f"{agent.INFO}.making"
            making.write_bytes(found.info)
            making.replace(part.folder / agent.INFO)
        if found.state == "refused":
            self._give_up(part, found.message or "its part ended without a message")
        elif found.state == "killed":
            part.started = False
            part.killed += 1
            if part.killed == MOST_KILLED:
                self._give_up(part, f"its process was killed {MOST_KILLED} times in a row {found.message}".strip())
        elif found.state == "finished":
            part.finished = True
            self._changed()
        return found

    def _give_up(self, part: Part, reason: str) -> None:
        part.reason = reason
        self._watcher.note(f"{part.host.label} is given up: {reason}")
        self._changed()

    def _replace_lost(self) -> None:
        """Give the groups of a host that is lost to another one of its kind that has finished its part."""
        for part in self._parts:
            if part.is_done or part.lost_ns is None or now_ns() - part.lost_ns < LOST_S * 1e9:
                continue
            others = [other for other in self._parts if other is not part]
            others = [other for other in others if other.host.facts.kind == part.host.facts.kind and not other.reason]
            free = next((other for other in others if other.is_done), None)
            if free is not None:
                missing = tuple(group for group in part.groups if group not in free.groups)
                free.groups, free.finished, free.started = (*free.groups, *missing), False, False
                self._give_up(part, f"the host was lost, so {free.host.label} measures its part")
            elif not others:
                self._give_up(part, "the host was lost, and no other of its kind is left")

    def _find_scheduler(self) -> None:
        """Connect to the scheduler again, after it was lost. Raises RunError."""
        self._watcher.note("the scheduler does not answer; waiting for it")
        until = now_ns() + SCHEDULER_S * 1e9
        while True:
            self._stop.check()
            try:
                self._cluster.reconnect()
                return
            except SchedulerLost as error:
                if now_ns() > until:
                    raise RunError(
                        f"The scheduler has not come back within {SCHEDULER_S:.0f} s ({error}).",
                        "All that was fetched is kept. Start it and its workers again, and continue with `resume`.",
                        parameter="cluster",
                    ) from None
            pause(1.0)

    def _stop_parts(self) -> None:
        """Stop all parts, and fetch what they have measured."""
        running = [part for part in self._parts if part.started and not part.is_done]
        for part in running:
            self._try(part, agent.stop, "it was not stopped")
        until = now_ns() + END_S * 1e9
        while running and now_ns() < until:
            running = [part for part in running if self._still_runs(part)]
            pause(0.2)
        for part in running:
            self._watcher.note(f"{part.host.label} has not ended; its last results are fetched by `resume`")

    def _still_runs(self, part: Part) -> bool:
        try:
            return self._fetch(part).state == "running"
        except (HostLost, SlowHost, SchedulerLost, RunError, OSError):
            self._watcher.note(f"{part.host.label} does not answer: its last results were not fetched")
            return False

    def _try(self, part: Part, function: Callable[[str], None], otherwise: str) -> None:
        """Call a function of the agent. If the host is gone, tell the user what has not been done."""
        try:
            if not part.host.addresses:
                self._cluster.look_for(part.host)
            self._cluster.call(part.host, function, self._id(part))
        except (HostLost, SlowHost, SchedulerLost, OSError):
            self._watcher.note(f"{part.host.label} does not answer: {otherwise}")
