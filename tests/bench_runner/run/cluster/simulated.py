"""Hosts of a cluster that measure nothing: their parts append invented samples to real files, and they have faults at
random. A part behaves like `bench_runner.run.cluster.part`: it continues its folder and writes whole lines."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench_runner.request import Request
from bench_runner.results.records import Sample
from bench_runner.run.cluster.dispatch import Part
from bench_runner.run.cluster.hosts import Host, HostLost, SchedulerLost, SlowHost
from bench_runner.run.cluster.messages import Group, HostFacts, HostTask, Piece, Progress, State
from bench_runner.run.watcher import Watcher
from bench_runner.worker.messages import decode, encode
from tests.bench_runner.results.invented import make_sample

CHAINS_OF_A_GROUP = 10


def group(number: int) -> Group:
    return Group("tabular", f"data-{number}")


def host(label: str, cpu: str = "cpu") -> Host:
    return Host(HostFacts(f"boot {label}", label, cpu, 2, 8_000_000_000, {"python": "3"}), label, [f"{label}:1"])


def part(tmp_path: Path, of: Host, *groups: Group) -> Part:
    folder = tmp_path / "run" / of.label
    folder.mkdir(parents=True, exist_ok=True)
    return Part(of, groups, folder)


TASK = HostTask(
    run_id="run",
    suites=("tabular",),
    request=Request(),
    groups=(),
    machine="",
    command=("run",),
    digests={},
    seed=1,
    rounds=1,
    quick=False,
    budget_s=None,
    timeout_s=1.0,
    isolate="forkserver",
    fidelity=False,
    fresh=False,
)


@dataclass
class SimulatedHost:
    """The files and the process of one host."""

    folder: Path
    task: HostTask | None = None
    running: bool = False
    measured_here: int = 0
    refusal: str = ""

    def executions(self) -> list[str]:
        assert self.task is not None
        return [f"{each.dataset} {number}" for each in self.task.groups for number in range(CHAINS_OF_A_GROUP)]

    def there(self) -> list[str]:
        file = self.folder / "samples.jsonl"
        lines = file.read_bytes().splitlines() if file.exists() else []
        return [msgspec.json.decode(line, type=Sample).variant for line in lines]

    def measure(self, most: int) -> None:
        """Execute some chains of the part, if its process runs."""
        if not self.running or self.task is None:
            return
        there = set(self.there())
        for name in [each for each in self.executions() if each not in there][:most]:
            sample = make_sample(variant=name, dataset=name.split()[0], machine=self.task.machine)
            with (self.folder / "samples.jsonl").open("ab") as file:
                file.write(msgspec.json.encode(sample) + b"\n")
            self.measured_here += 1
        (self.folder / "run.json").write_text("{}")


@dataclass
class SimulatedCluster:
    """Answers like `bench_runner.run.cluster.hosts.Cluster`, with faults drawn by `chance`."""

    hosts: dict[str, SimulatedHost]
    chance: random.Random
    fault_share: float = 0.0
    """Share of calls before which something fails."""
    gone: set[str] = field(default_factory=set)
    """Hosts that are gone now."""
    never_back: set[str] = field(default_factory=set)
    scheduler_down: int = 0
    """Number of further attempts to connect that fail."""

    def keep_up(self) -> None:
        """Nothing was started."""

    def reconnect(self) -> None:
        if self.scheduler_down:
            self.scheduler_down -= 1
            raise SchedulerLost("refused")

    def look_for(self, host: Host) -> None:
        if host.label in self.gone and host.label not in self.never_back and self.chance.random() < 0.3:
            self.gone.discard(host.label)
            # The worker's process has ended, and with it the part's.
            self.hosts[host.label].running = False
            if self.chance.random() < 0.3:
                for file in self.hosts[host.label].folder.iterdir():
                    file.unlink()
        if host.label not in self.gone:
            host.addresses = [f"{host.label}:1"]

    def call(self, host: Host, function: Callable[..., Any], *given: Any) -> Any:
        there = self.hosts[host.label]
        if self.scheduler_down:
            raise SchedulerLost("refused")
        if host.label in self.gone or not host.addresses:
            host.addresses = []
            raise HostLost(host.label)
        there.measure(self.chance.randrange(3))
        if self.chance.random() < self.fault_share:
            fault = self.chance.choice(("slow", "slow after", "killed", "gone", "gone after", "scheduler"))
            if fault == "slow":
                raise SlowHost(host.label)
            if fault == "killed":
                there.running = False
            if fault == "scheduler":
                self.scheduler_down = self.chance.randrange(1, 4)
                raise SchedulerLost("closed")
            if fault.endswith("after"):
                # The host does what was asked, but its answer is lost.
                getattr(self, "_" + function.__name__)(there, *given)
            if fault == "slow after":
                raise SlowHost(host.label)
            if fault.startswith("gone"):
                self.gone.add(host.label)
                host.addresses = []
                raise HostLost(host.label)
        return getattr(self, "_" + function.__name__)(there, *given)

    def _sizes(self, there: SimulatedHost, run_id: str) -> dict[str, int]:
        return {file.name: file.stat().st_size for file in there.folder.iterdir()}

    def _put(self, there: SimulatedHost, run_id: str, name: str, content: bytes) -> None:
        (there.folder / name).write_bytes(content)

    def _start(self, there: SimulatedHost, task: bytes) -> None:
        if not there.running:
            there.task, there.running = decode(task, HostTask), True

    def _progress(self, there: SimulatedHost, run_id: str, known: dict[str, int]) -> bytes:
        file = there.folder / "samples.jsonl"
        content = file.read_bytes()[known.get("samples.jsonl", 0) :] if file.exists() else b""
        pieces = (Piece("samples.jsonl", known.get("samples.jsonl", 0), content),) if content else ()
        state: State = "running" if there.running else "killed"
        if there.running and there.refusal:
            state = "refused"
        elif there.running and there.task is not None and set(there.executions()) <= set(there.there()):
            state, there.running = "finished", False
        return encode(Progress(pieces=pieces, info=b"{}", state=state, message=there.refusal))

    def _stop(self, there: SimulatedHost, run_id: str) -> None:
        there.running = False

    def _forget(self, there: SimulatedHost, run_id: str) -> None:
        for file in there.folder.iterdir():
            file.unlink()


class Notes(Watcher):
    """Keeps the notes of a run."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.samples: list[Sample] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def measured(self, samples: Any) -> None:
        self.samples += samples
