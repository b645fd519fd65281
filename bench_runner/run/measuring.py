"""Execute one run, from its plan to its result folder: generate data, execute the pilot round and the counted rounds,
and measure missing facts.

Samples are written as soon as their chain ends. A run that is stopped, is killed or fills the disk keeps all of its
samples, and `--resume` measures the rest. bench_runner.run.session holds the state that the parts of a run share.
"""

from __future__ import annotations

import platform
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

import data_generator.cache as data_cache
from bench_runner import registries
from bench_runner.clock import now_ns, utc_now
from bench_runner.errors import RunError
from bench_runner.machine import environment, linux
from bench_runner.operations import SAVE, Operation, operation_of
from bench_runner.plan.chain import Chain, Plan
from bench_runner.request import Request
from bench_runner.results.information import MachineInfo, OperationInfo, SettlingInfo, information
from bench_runner.results.records import Run, RunInfo, SampleWriter, changed, read_run, write_run_info
from bench_runner.run import device_probe, pilot, preparation, rounds, turns
from bench_runner.run.benches import made_benches, opened_launchers
from bench_runner.run.interruption import stopped_by_signals
from bench_runner.run.known import costs, facts
from bench_runner.run.launcher import Launcher
from bench_runner.run.options import Options
from bench_runner.run.resume import Earlier, earlier_part, refuse_other_data
from bench_runner.run.session import WAITING, Race, Session
from bench_runner.run.turns import Turn
from bench_runner.run.watcher import Watcher
from bench_runner.run.work_folder import open_locked, work_folders
from bench_runner.worker.settle import Readiness

PROJECT_ROOT = Path(__file__).resolve().parents[2]


def measure(
    plan: Plan,
    request: Request,
    options: Options,
    folder: Path,
    command: Sequence[str],
    watcher: Watcher,
    race: Race | None = None,
) -> tuple[Run, bool]:
    """Do the whole run in `folder`. Return the run, read back from its files, and whether any measurement failed. With
    `race`, rounds are added while more than one variant may be the best.

    Raises RunError if a resumed run does not match, DataError if a data set cannot be made, and KeyboardInterrupt after
    Ctrl-C. All samples are kept.
    """
    began_ns = now_ns() if options.began_ns is None else options.began_ns
    folder = folder.resolve()
    linux.check_probes()
    with _alone_in(folder):
        machine = machine_name(options)
        info, earlier = _begin(plan, request, options, folder, command)
        with (
            stopped_by_signals() as stop,
            work_folders(info.id, folder, request.work_dirs) as work,
            opened_launchers(plan, options) as launchers,
        ):
            session = Session(
                plan=plan,
                options=options,
                folder=folder,
                writer=SampleWriter(folder),
                watcher=watcher,
                stop=stop,
                info=info,
                machine=machine,
                datasets={},
                benches={},
                earlier=earlier,
                position=earlier.next_position,
                race=race,
                paused=turns.paused_at_first(),
                costs=costs.known(info.machine),
                began_ns=began_ns,
            )
            try:
                with _others_named(info):
                    session.benches = made_benches(options, work, launchers, machine, None)
                    preparation.look_at_work_folders(session, work)
                    preparation.make_datasets(session)
                    refuse_other_data(earlier, {name: stored.digest for name, stored in session.datasets.items()})
                    session.save_info()
                    session.show_plan()
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
                    _complete(session)
                for turn in _further_turns(session, launchers):
                    with _others_named(info):
                        _continue(session, turn, work, launchers)
                        rounds.count_rounds(session, predictions)
                        device_probe.look(session, device_probe.AFTER)
                        _complete(session)
            finally:
                if info.partial:
                    _save_end(session)
        run = read_run(folder)
        return run, has_failures(run)


def _complete(session: Session) -> None:
    """Record that everything that was asked for is measured."""
    _keep_costs(session)
    session.info.partial = False
    _save_end(session)


def _save_end(session: Session) -> None:
    """Record the state of the machine at the end of the run, or of a turn."""
    info = session.info
    session.stage("end")
    info.finished = utc_now().isoformat(timespec="seconds")
    info.load_after = environment.load()
    if session.benches:
        readiness = _readiness(session)
        info.settling = SettlingInfo(touches=readiness.touches, why=readiness.why, ready_bytes=readiness.most_bytes)
    session.save_info()


def _further_turns(session: Session, launchers: Mapping[str, Launcher]) -> Iterator[Turn]:
    """Wait for the next turn and yield it, as often as `side-by-side` asks for one (bench_runner.run.turns). No
    forkserver waits: it would hold memory that the other environment's samples need."""
    control = turns.control()
    if control is None:
        return
    with control:
        while True:
            for launcher in launchers.values():
                launcher.close()
            session.stage(WAITING)
            turn = turns.next_turn(control)
            if turn is None:
                return
            yield turn


def _continue(session: Session, turn: Turn, work: Mapping[str, Path], launchers: Mapping[str, Launcher]) -> None:
    """Prepare another turn. As in a resumed run, what is measured is not measured again, code and libraries must not
    have changed, and the forkservers and the controls are new. With one forkserver, all samples of an environment would
    have the same layout of memory, which alone can make calls slower or faster. Raises RunError."""
    info, options = session.info, replace(session.options, rounds=turn.rounds)
    now = changed(info, libraries=_versions(session.plan), **environment.repository_state(PROJECT_ROOT))
    session.earlier = earlier_part(
        session.folder, information(environment.replace_host(now.shape(), options.machine)), _needed(session.plan)
    )
    session.options, session.paused = options, turn.paused
    info.partial = True
    info.rounds_asked = turn.rounds
    place = info.command.index("--rounds") + 1
    info.command = (*info.command[:place], str(turn.rounds), *info.command[place + 1 :])
    info.resumed = (*info.resumed, utc_now().isoformat(timespec="seconds"))
    session.save_info()
    session.benches = made_benches(options, work, launchers, session.machine, _readiness(session))


def has_failures(run: Run) -> bool:
    """Return whether a measurement failed, or the fidelity probe (the test for changed values) found an error without a
    known cause."""
    failed = any(sample.failure is not None and sample.failure.is_failure for sample in run.samples)
    return failed or any(record.outcome == "error" and not record.cause for record in run.fidelity)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Raise RunError if another run writes to this folder."""
    with open_locked(folder) as alone:
        if not alone:
            raise RunError(
                f"Another run is writing to {folder}.",
                "Wait for it, or name another folder by `out`.",
                parameter="out",
                given=str(folder),
            )
        yield


def machine_name(options: Options) -> str:
    """Return the machine name for records: the name given by the user, or else the host's name."""
    return options.machine or platform.node() or "unnamed"


def new_folder(results: Path, machine: str) -> Path:
    """Create the folder `<time>-<machine>` below `results` and return its path. If the folder exists, append a
    number."""
    stem = f"{utc_now():%Y%m%dT%H%M%SZ}-{machine}"
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        folder = results / (stem + suffix)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise RunError(f"A hundred runs were started in {results} within one second.", "Find out what starts these runs.")


def _begin(
    plan: Plan, request: Request, options: Options, folder: Path, command: Sequence[str]
) -> tuple[RunInfo, Earlier]:
    if request.data_title is not None:
        # Do not record the path, because the file is removed after the run.
        request = changed(request, data=None)
    # Include operations that no variant could execute, so that they are listed with their reason.
    operations = dict.fromkeys(name for chain in plan.planned for name in chain.operations)
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
        libraries=_versions(plan),
        load_before=environment.load(),
        suites={suite.name: suite.question for suite in plan.suites},
        operations={name: _described(operation_of(name)) for name in operations},
        **environment.repository_state(PROJECT_ROOT),
    )
    earlier = Earlier()
    if options.resume:
        earlier = earlier_part(
            folder, information(environment.replace_host(info.shape(), options.machine)), _needed(plan)
        )
        assert earlier.run is not None
        stored = earlier.run.info
        resumed = (*stored.resumed, utc_now().isoformat(timespec="seconds"))
        kept = ("id", "seed", "started", "variants", "warnings", "stages_ns", "datasets", "probe", "facts", "rooflines")
        # The earlier part may have measured other formats, with other libraries.
        libraries = {**stored.libraries, **info.libraries}
        info = changed(info, resumed=resumed, libraries=libraries, **{name: getattr(stored, name) for name in kept})
    write_run_info(folder, environment.replace_host(info.shape(), options.machine))
    return info, earlier


def _versions(plan: Plan) -> dict[str, str]:
    """Return the installed versions of the libraries that the plan's variants need. The adapters of other variants are
    not loaded."""
    needed = {name for chain in plan.planned for name in _needs(chain)}
    return environment.library_versions(registries.engines_of(chain.spelled for chain in plan.planned), needed)


def _needed(plan: Plan) -> dict[str, set[str]]:
    """Return the names of the libraries that each variant of the plan needs. The keys are the variants' names in
    records."""
    found: dict[str, set[str]] = {}
    for chain in plan.planned:
        names = environment.library_names(registries.engines_of([chain.spelled]), _needs(chain))
        found.setdefault(chain.variant, set()).update(names)
    return found


def _needs(chain: Chain) -> set[str]:
    """Return the names of the distributions that the chain's operations need in addition to those of the engine."""
    return {name for operation in chain.operations for name in operation_of(operation).needs}


def _keep_costs(session: Session) -> None:
    """Store the costs (durations) of this run. Later runs predict their own duration from these costs."""
    try:
        costs.add(session.info.machine, read_run(session.folder).samples)
    except OSError as error:
        session.warn(
            f"the durations of this run could not be kept for later runs ({error.strerror or error})",
            "check the cache folder, which FORMAT_BENCH_CACHE sets",
        )


def _readiness(session: Session) -> Readiness:
    """Return how the machine is brought to rest. If there are several working folders, prefer the first one for which
    memory is touched before every sample."""
    chosen = [bench.settler.readiness for bench in session.benches.values()]
    return next((each for each in chosen if each.touches), chosen[0])


def _described(operation: Operation) -> OperationInfo:
    return OperationInfo(title=operation.title, writes=operation.spelled == SAVE, meaning=operation.meaning)


@contextmanager
def _others_named(info: RunInfo) -> Iterator[None]:
    """Warn when another run measures on this machine at the same time."""
    with open_locked(data_cache.default_folder()) as alone:
        if not alone:
            info.warn("another run of Format Bench was measuring on this machine", "measure again after it has ended")
        yield
