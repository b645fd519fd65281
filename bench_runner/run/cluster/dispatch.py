"""Follow a run over a cluster: start the part of each host, fetch new results, and replace hosts that are lost.

The results of each part are copied to an ordinary result folder, which is inside the run's folder and named after the
host.
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
"""Interval in seconds at which hosts are asked for new results. An answer takes some milliseconds of CPU time on the
host."""
LOST_S = 30.0
"""Seconds to wait for a lost host to come back. After this time, another host of the same kind measures the groups of
the lost host. A group has all chains of a suite on a data set."""
SCHEDULER_S = 120.0
"""Seconds to wait for a lost scheduler to come back. After this time, the run ends with an error."""
END_S = 40.0
"""Longest wait, in seconds, until stopped parts have ended."""
MOST_KILLED = 3
"""A part is given up if its process is killed this many times in a row without measuring anything."""


@dataclass
class Part:
    """The part of the run that one host measures."""

    host: Host
    groups: tuple[Group, ...]
    folder: Path
    finished: bool = False
    reason: str = ""
    """The reason why the part was given up, or '' if it was not given up."""
    started: bool = False
    lost_ns: int | None = None
    """Time in ns when the host lost its last worker, or None while the host has workers."""
    killed: int = 0
    """How many times in a row the process of the part was killed without measuring anything."""
    samples: int = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing more will be measured for this part: it is finished, given up or empty."""
        return self.finished or bool(self.reason) or not self.groups

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of the client's copy of each file of the part. Files that were not copied yet are
        omitted."""
        names = agent.APPENDED
        return {name: (self.folder / name).stat().st_size for name in names if (self.folder / name).exists()}


class Dispatch:
    """Executes the parts of a run on their hosts until all parts are finished or given up."""

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
        """`changed` is called whenever a part is finished or given up. A part is also given up if another host takes
        over its groups. The time budget of `task` starts at `began_ns`."""
        self._cluster, self._task, self._parts = cluster, task, parts
        self._watcher, self._stop, self._changed, self._began_ns = watcher, stop, changed, began_ns

    def finish(self) -> None:
        """Measure all parts. After Ctrl-C or SIGTERM, stop the parts, fetch their results and raise KeyboardInterrupt.
        Raises RunError if a lost scheduler does not come back."""
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
        """Return the id of the part's run on its host, which is also the name of the part's folder there. The id
        contains the host's label, because the home folders of several hosts may be on one network drive."""
        return f"{self._task.run_id}-{part.host.label}"

    def _status(self) -> str:
        return ", ".join(f"{part.host.label}: {part.samples:,} samples" for part in self._parts if part.groups)

    def _advance(self, part: Part) -> None:
        """Start the part if it is not running, and fetch its new results. Raises SchedulerLost if the scheduler does
        not answer."""
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
        """Send the host the files of the part that are missing or shorter there than on the client, and start the
        part."""
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
                raise RunError(
                    f"{part.host.label} sent a piece of {piece.name!r} that cannot be appended to "
                    "what was received before."
                )
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
        """Give up the parts of hosts that were lost for LOST_S seconds. If another host of the same kind has finished
        its own part, that other host measures the groups of the lost host."""
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
        """Connect again to a lost scheduler. Raises RunError if the scheduler does not come back within SCHEDULER_S."""
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
                        "The results received so far are kept. Restart the scheduler and its workers, then continue "
                        "with `resume`.",
                        parameter="cluster",
                    ) from None
            pause(1.0)

    def _stop_parts(self) -> None:
        """Stop all running parts, and fetch the results that they have measured."""
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
        """Call a function of the agent on the part's host. If the host does not answer, show the user `otherwise`,
        which says what was not done."""
        try:
            if not part.host.addresses:
                self._cluster.look_for(part.host)
            self._cluster.call(part.host, function, self._id(part))
        except (HostLost, SlowHost, SchedulerLost, OSError):
            self._watcher.note(f"{part.host.label} does not answer: {otherwise}")
