"""One run, from its plan to its result folder: data, pilot round, counted rounds, and what is not known yet.

Each sample is written the moment its chain ends, so a run that is stopped, killed or out of disk keeps all that it has,
and `--resume` measures the rest. The parts are bench_runner.run.preparation and bench_runner.run.rounds; what they
share is bench_runner.run.session.
"""

from __future__ import annotations

import platform
import random
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

import data_generator.cache as data_cache
from bench_runner.clock import now_ns, pause, utc_now
from bench_runner.errors import RunError
from bench_runner.machine import environment, linux
from bench_runner.operations import SAVE, Operation, operation_of
from bench_runner.plan.chain import Plan
from bench_runner.request import Request
from bench_runner.results.information import MachineInfo, OperationInfo, SettlingInfo, information
from bench_runner.results.records import Cell, Run, RunInfo, Sample, SampleWriter, changed, read_run, write_run_info
from bench_runner.run import device_probe, pilot, preparation, rounds
from bench_runner.run.chains import Bench
from bench_runner.run.known import costs, facts
from bench_runner.run.launcher import Launcher
from bench_runner.run.resume import Earlier, earlier_part, refuse_other_data
from bench_runner.run.session import Options, Race, Session, Watcher
from bench_runner.run.work_folder import open_locked, work_folders
from bench_runner.worker import settle
from bench_runner.worker.settle import Settler

PROJECT_ROOT = Path(__file__).resolve().parents[2]
LEFT_ALONE_S = 3.0
"""After so long a host that takes memory back has done it (rule 1)."""


class Stopped(KeyboardInterrupt):
    """The run was asked to end by a signal other than Ctrl-C."""


def measure(
    plan: Plan,
    request: Request,
    options: Options,
    folder: Path,
    command: Sequence[str],
    watcher: Watcher,
    race: Race | None = None,
) -> tuple[Run, bool]:
    """Do the whole run in `folder`; returns it as read back from its files, and whether some cells failed. With `race`
    it goes on for as long as more than one may win.

    Raises RunError when a resumed run does not fit, DataError when a data set cannot be made, KeyboardInterrupt after
    Ctrl-C (with everything measured kept).
    """
    began_ns = now_ns() if options.began_ns is None else options.began_ns
    folder = folder.resolve()
    linux.check_probes()
    with _alone_in(folder):
        machine = machine_name(options)
        info, earlier = _begin(plan, request, options, folder, command, machine)
        heeding = Heeding(watcher)
        with (
            _others_named(info),
            signals_stop(heeding),
            work_folders(info.id, folder, request.work_dirs) as work,
            _launchers(plan, options) as launchers,
        ):
            session = Session(
                plan=plan,
                options=options,
                folder=folder,
                writer=SampleWriter(folder),
                watcher=heeding,
                info=info,
                machine=machine,
                datasets={},
                benches=_benches(plan, options, work, launchers, machine),
                earlier=earlier,
                position=earlier.next_position,
                race=race,
                costs=costs.known(info.machine),
                began_ns=began_ns,
            )
            try:
                preparation.look_at_work_folders(session, work)
                preparation.make_datasets(session)
                refuse_other_data(earlier, {name: stored.digest for name, stored in session.datasets.items()})
                session.save_info()
                session.tell_plan()
                preparation.record_excluded(session)
                preparation.describe_variants(session)
                preparation.calibrate_networks(session)
                known = facts.taken(session)
                preparation.warn_of_failed_loading(session, launchers)
                predictions = pilot.pilot_round(session)
                device_probe.look(session, device_probe.BEFORE)
                rounds.count_rounds(session, predictions, facts.share_of_rounds(known))
                device_probe.look(session, device_probe.AFTER)
                facts.measure_missing(known)
                _keep_costs(session)
                info.partial = False
            finally:
                session.stage("end")
                info.finished = utc_now().isoformat(timespec="seconds")
                info.load_after = environment.load()
                info.settling = _settling(session)
                session.save_info()
        run = read_run(folder)
        failed = any(sample.failure is not None and sample.failure.is_failure for sample in run.samples)
        return run, failed or any(record.outcome == "error" and not record.cause for record in run.fidelity)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Raises RunError when another run writes there."""
    with open_locked(folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another run is writing here\n  wait for it, or name another folder by --out")
        yield


def machine_name(options: Options) -> str:
    """The name that records carry: the host's, or the one that the user gave instead."""
    return options.machine or platform.node() or "unnamed"


def new_folder(results: Path, machine: str) -> Path:
    """`<time>-<machine>` below `results`, with a number behind it when two runs start in one second."""
    stem = f"{utc_now():%Y%m%dT%H%M%SZ}-{machine}"
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        folder = results / (stem + suffix)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise RunError(f"{results}: a hundred runs were started within this second; look what starts them")


def _begin(
    plan: Plan, request: Request, options: Options, folder: Path, command: Sequence[str], machine: str
) -> tuple[RunInfo, Earlier]:
    if request.data_title is not None:
        # The path is that of a file which is gone after the run.
        request = changed(request, data=None)
    # Those that nothing could do are told with their reason, under their title.
    planned = (*plan.chains, *(each.chain for each in plan.excluded))
    operations = dict.fromkeys(name for chain in planned for name in chain.operations)
    info = RunInfo(
        id=folder.name,
        command=tuple(command),
        started=utc_now().isoformat(timespec="seconds"),
        partial=True,
        seed=options.seed if options.seed is not None else random.SystemRandom().randrange(2**32),
        quick=options.quick,
        rounds_asked=options.rounds_asked,
        budget_s=options.budget_s,
        timeout_s=options.timeout_s,
        isolate=options.isolate,
        request=request,
        machine=msgspec.convert(environment.machine_facts(options.machine), MachineInfo),
        libraries=environment.library_versions(),
        load_before=environment.load(),
        suites={suite.name: suite.question for suite in plan.suites},
        operations={name: _described(operation_of(name)) for name in operations},
        **environment.repository_state(PROJECT_ROOT),
    )
    earlier = Earlier()
    if options.resume:
        earlier = earlier_part(folder, information(environment.replace_host(info.shape(), options.machine)))
        assert earlier.run is not None
        stored = earlier.run.info
        resumed = (*stored.resumed, utc_now().isoformat(timespec="seconds"))
        kept = ("id", "seed", "started", "variants", "warnings", "stages_ns", "datasets", "probe", "facts", "rooflines")
        info = changed(info, resumed=resumed, **{name: getattr(stored, name) for name in kept})
    write_run_info(folder, environment.replace_host(info.shape(), options.machine))
    return info, earlier


def _keep_costs(session: Session) -> None:
    """For saying how long later runs will take."""
    try:
        costs.add(session.info.machine, read_run(session.folder).samples)
    except OSError as error:
        session.warn(
            f"what this run took cannot be kept for later ones ({error.strerror or error})",
            "look at the cache folder, which FORMAT_BENCH_CACHE may name",
        )


def _settling(session: Session) -> SettlingInfo:
    """What was chosen in the end; of several working folders the one that touches."""
    chosen = [bench.settler.readiness for bench in session.benches.values()]
    last = next((each for each in chosen if each.touches), chosen[0])
    return SettlingInfo(touches=last.touches, why=last.why, ready_bytes=last.most_bytes)


def _described(operation: Operation) -> OperationInfo:
    return OperationInfo(title=operation.title, writes=operation.spelled == SAVE, meaning=operation.meaning)


@contextmanager
def _others_named(info: RunInfo) -> Iterator[None]:
    """Warn when another run measures on this machine at the same time."""
    with open_locked(data_cache.default_folder()) as alone:
        if not alone:
            info.warn("another run of Format Bench was measuring on this machine", "measure again when it has ended")
        yield


class Heeding:
    """A watcher that stops the run at its next step when a signal's exception was lost: Python drops those that are
    raised in a destructor or a callback."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.heard = ""

    def stage(self, text: str) -> None:
        """A new part of the run begins; also its end, which is not to be stopped."""
        self._watcher.stage(text)

    def planned(self, cells: Mapping[str, Sequence[Cell]], info: RunInfo) -> None:
        """What is to be measured."""
        self._watcher.planned(cells, info)

    def measured(self, samples: Sequence[Sample]) -> None:
        """These samples are stored."""
        self._watcher.measured(samples)

    def step(self, text: str, seconds_left: float | None) -> None:
        """One thing is about to be done. Raises Stopped when it is not to be."""
        if self.heard:
            raise Stopped(self.heard)
        self._watcher.step(text, seconds_left)

    def note(self, text: str) -> None:
        """Something to be said once."""
        self._watcher.note(text)

    def part_done(self, folder: Path) -> None:
        """What is measured can be shown."""
        self._watcher.part_done(folder)


@contextmanager
def signals_stop(watcher: Heeding) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal end the run: orderly."""

    def stop(number: int, frame: object) -> None:
        watcher.heard = signal.Signals(number).name
        raise Stopped(watcher.heard)

    # Under nohup SIGHUP is ignored, and stays so.
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [number for number in asked if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _launchers(plan: Plan, options: Options) -> Iterator[Mapping[str, Launcher]]:
    conditions = {chain.conditions.threads: chain.conditions.strings for chain in plan.chains}
    launchers = {
        threads: Launcher(
            isolate=options.isolate,
            threads=1 if threads == "1" else None,
            preload=list(plan.variants),
            strings=strings,
        )
        for threads, strings in conditions.items()
    }
    try:
        yield launchers
    finally:
        for launcher in launchers.values():
            launcher.close()


def _load_libraries(launchers: Iterable[Launcher]) -> None:
    """Start the forkservers, and let some seconds pass in all."""
    started = now_ns()
    for launcher in launchers:
        launcher.load()
    pause(max(LEFT_ALONE_S - (now_ns() - started) / 1e9, 0))


def _benches(
    plan: Plan, options: Options, work: Mapping[str, Path], launchers: Mapping[str, Launcher], machine: str
) -> dict[tuple[str, str], Bench]:
    readiness = settle.examine(lambda: _load_libraries(launchers.values()), environment.usable_memory_bytes())
    settlers = {label: Settler(folder, readiness=readiness) for label, folder in work.items()}
    for settler in settlers.values():
        settler.calibrate()
    return {
        (label, threads): Bench(launcher, settlers[label], work[label], options.timeout_s, machine)
        for label in work
        for threads, launcher in launchers.items()
    }
