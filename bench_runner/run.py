"""One run, from its plan to its result folder: data, probe, fidelity, rehearsal, counted rounds.

Each sample is written the moment its chain ends, so a run that is stopped, killed or out of disk keeps all that it has,
and `--resume` measures the rest. What a chain does is bench_runner.chains; which comes next is bench_runner.schedule.
"""

from __future__ import annotations

import platform
import random
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import data_generator.cache as data_cache
from adapters.contract import Native
from adapters.spelling import parse
from bench_runner import doctor, environment, linux, probe_check
from bench_runner.chains import Bench, execute
from bench_runner.clock import now_ns, utc_now
from bench_runner.errors import RunError
from bench_runner.launcher import Launcher
from bench_runner.plan import Chain, Plan, Request, with_null_variants
from bench_runner.prediction import MEMORY_SHARE, Prediction, is_small, predict, rehearsal_rows
from bench_runner.records import Conditions, Failure, Fidelity, Run, Sample, SampleWriter, read_run, write_run_info
from bench_runner.resume import Earlier, earlier_part, refuse_other_data
from bench_runner.schedule import Schedule, within_budget
from bench_runner.settle import Settler
from bench_runner.work_folder import open_locked, work_folders
from data_generator.catalogue import CATALOGUE
from formats.registry import FORMATS

CALIBRATIONS = 5
"""Controls taken at the start, so that the run's best is known before the first sample."""
OVERHEAD_S = 0.6
"""What a chain takes besides its operations, until it was seen to run: for the time left only."""
DISK_SHARE = 0.9
PROJECT_ROOT = Path(__file__).resolve().parent.parent


class Stopped(KeyboardInterrupt):
    """The run was asked to end by a signal other than Ctrl-C."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to measure; the defaults are those of the command line."""

    rounds: int | None = None
    quick: bool = False
    budget_s: float | None = None
    timeout_s: float = 600.0
    seed: int | None = None
    isolate: str = "forkserver"
    resume: bool = False
    machine: str | None = None
    fidelity: bool = True

    @property
    def rounds_asked(self) -> int | None:
        """The number of rounds that the user fixed, or None."""
        return 1 if self.quick else self.rounds


class Watcher(Protocol):
    """Whoever shows how the run goes: a progress bar, or nobody."""

    def stage(self, text: str) -> None:
        """A new part of the run begins."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """One thing is about to be done."""


@dataclass
class _Session:
    """What the parts of one run share."""

    plan: Plan
    options: Options
    folder: Path
    writer: SampleWriter
    watcher: Watcher
    info: dict[str, Any]
    machine: str
    datasets: dict[str, data_cache.StoredDataset]
    benches: dict[tuple[str, str], Bench]
    earlier: Earlier
    position: int
    stage_began_ns: int = field(default_factory=now_ns)
    stage_name: str = "start"

    def bench(self, chain: Chain) -> Bench:
        return self.benches[chain.conditions.work_dir, chain.conditions.threads]

    def stage(self, name: str) -> None:
        """Begin another part of the run, and keep what the last one took."""
        stages = self.info.setdefault("stages_ns", {})
        now = now_ns()
        stages[self.stage_name] = stages.get(self.stage_name, 0) + now - self.stage_began_ns
        self.stage_name, self.stage_began_ns = name, now
        self.watcher.stage(name)

    def public(self, conditions: Conditions) -> Conditions:
        """The conditions as records hold them: with `--machine` the host's name is gone from the path, and on a virtual
        machine cold is the guest's cold, because nobody here can empty the host's cache (rule 14)."""
        guest = self.info["machine"].get("virtualisation", "none") != "none"
        return replace(
            conditions,
            cache="cold (guest)" if conditions.cache == "cold" and guest else conditions.cache,
            work_dir=environment.replace_host(conditions.work_dir, self.options.machine),
        )

    def keep(self, samples: Sequence[Sample]) -> None:
        """Write one execution, whole."""
        self.writer.append(*(replace(sample, conditions=self.public(sample.conditions)) for sample in samples))
        self.position += len(samples)


def measure(
    plan: Plan, request: Request, options: Options, folder: Path, command: Sequence[str], watcher: Watcher
) -> tuple[Run, bool]:
    """Do the whole run in `folder`; returns it as read back from its files, and whether some cells failed.

    Raises RunError when a resumed run does not fit, DataError when a data set cannot be made, KeyboardInterrupt after
    Ctrl-C (with everything measured kept).
    """
    folder = folder.resolve()
    linux.check_probes()
    with open_locked(folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another run is writing here\n  wait for it, or name another folder by --out")
        return _measure(plan, request, options, folder, command, watcher)


def _measure(
    plan: Plan, request: Request, options: Options, folder: Path, command: Sequence[str], watcher: Watcher
) -> tuple[Run, bool]:
    machine = machine_name(options)
    info, earlier = _begin(plan, request, options, folder, command, machine)
    with (
        _others_named(info),
        _signals_stop(),
        work_folders(info["id"], folder, request.work_dirs) as work,
        _launchers(plan, options) as launchers,
    ):
        session = _Session(
            plan=plan,
            options=options,
            folder=folder,
            writer=SampleWriter(folder),
            watcher=watcher,
            info=info,
            machine=machine,
            datasets={},
            benches=_benches(plan, options, work, launchers, machine),
            earlier=earlier,
            position=earlier.next_position,
        )
        try:
            _look_at_work_folders(session, work)
            _make_datasets(session)
            refuse_other_data(earlier, {name: stored.digest for name, stored in session.datasets.items()})
            _save_info(session)
            _record_excluded(session)
            _test_probe(session)
            _warn_of_failed_loading(session, launchers)
            _time_imports(session)
            _find_losses(session)
            predictions = _rehearse(session)
            _count_rounds(session, predictions)
            info["partial"] = False
        finally:
            session.stage("end")
            info["finished"] = utc_now().isoformat(timespec="seconds")
            info["load_after"] = environment.load()
            _save_info(session)
    run = read_run(folder)
    failed = any(sample.failure is not None and sample.failure.is_failure for sample in run.samples)
    return run, failed or any(record.outcome == "error" and not record.cause for record in run.fidelity)


def machine_name(options: Options) -> str:
    """The name that records carry: the host's, or the one that the user gave instead."""
    return options.machine or platform.node() or "unnamed"


# --- beginning and end ---------------------------------------------------------------------------------------------


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
) -> tuple[dict[str, Any], Earlier]:
    repository = environment.repository_state(PROJECT_ROOT)
    info: dict[str, Any] = {
        "id": folder.name,
        "command": list(command),
        "started": utc_now().isoformat(timespec="seconds"),
        "partial": True,
        "seed": options.seed if options.seed is not None else random.SystemRandom().randrange(2**32),
        "quick": options.quick,
        "rounds_asked": options.rounds_asked,
        "budget_s": options.budget_s,
        "timeout_s": options.timeout_s,
        "isolate": options.isolate,
        "request": {key: str(value) if isinstance(value, Path) else value for key, value in asdict(request).items()},
        "machine": environment.machine_facts(options.machine),
        "libraries": environment.library_versions(),
        **repository,
        "load_before": environment.load(),
        "warnings": [],
        "suites": {suite.name: suite.question for suite in plan.suites},
        "variants": {},
    }
    earlier = Earlier()
    if options.resume:
        earlier = earlier_part(folder, environment.replace_host(info, options.machine))
        assert earlier.run is not None
        stored = earlier.run.info
        for key in ("id", "seed", "started"):
            info[key] = stored[key]
        info["resumed"] = [*stored.get("resumed", []), utc_now().isoformat(timespec="seconds")]
        for key in ("variants", "warnings", "stages_ns", "datasets"):
            if key in stored:
                info[key] = stored[key]
    write_run_info(folder, environment.replace_host(info, options.machine))
    return info, earlier


@contextmanager
def _others_named(info: dict[str, Any]) -> Iterator[None]:
    """Warn when another run measures on this machine at the same time."""
    with open_locked(data_cache.default_folder()) as alone:
        if not alone:
            text = "another run of Format Bench was measuring on this machine"
            info["warnings"].append({"text": text, "remedy": "measure again when it has ended"})
        yield


@contextmanager
def _signals_stop() -> Iterator[None]:
    """SIGTERM and a closed terminal end the run as Ctrl-C does: orderly."""

    def stop(number: int, frame: object) -> None:
        raise Stopped(signal.Signals(number).name)

    # Under nohup SIGHUP is ignored, and stays so.
    heard = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _launchers(plan: Plan, options: Options) -> Iterator[Mapping[str, Launcher]]:
    conditions = dict.fromkeys(chain.conditions.threads for chain in plan.chains)
    launchers = {
        threads: Launcher(isolate=options.isolate, threads=1 if threads == "1" else None, preload=list(plan.variants))
        for threads in conditions
    }
    try:
        yield launchers
    finally:
        for launcher in launchers.values():
            launcher.close()


def _benches(
    plan: Plan, options: Options, work: Mapping[str, Path], launchers: Mapping[str, Launcher], machine: str
) -> dict[tuple[str, str], Bench]:
    settlers = {label: Settler(folder) for label, folder in work.items()}
    for settler in settlers.values():
        for _ in range(CALIBRATIONS):
            settler.settle(0)
    return {
        (label, threads): Bench(launcher, settlers[label], work[label], options.timeout_s, machine)
        for label in work
        for threads, launcher in launchers.items()
    }


def _look_at_work_folders(session: _Session, work: Mapping[str, Path]) -> None:
    """Keep their facts, refuse a cold cache where it cannot be had, and warn of what is bad at a look."""
    facts = {label: environment.folder_facts(path) for label, path in work.items()}
    session.info["work_dirs"] = facts
    for label, path in work.items():
        reason = environment.supports_cold(facts[label].get("filesystem"))
        if reason and any(chain.conditions.cache == "cold" for chain in session.plan.chains):
            raise RunError(
                f"--cache cold is not possible in {path.parent}: {reason}\n  name another folder by --work-dir"
            )
        for warning in doctor.quick_warnings(path):
            warn(session, **warning)


def _save_info(session: _Session) -> None:
    described = session.info.setdefault("datasets", {})
    for name, stored in session.datasets.items():
        described[name] = {
            "digest": stored.digest,
            "rows": stored.rows,
            "size_bytes": stored.size_bytes,
            "title": CATALOGUE[parse(name)[0]].title,
        }
    write_run_info(session.folder, environment.replace_host(session.info, session.options.machine))


def warn(session: _Session, text: str, remedy: str) -> None:
    """Store a warning with its remedy; the same one only once."""
    warning = {"text": text, "remedy": remedy}
    if warning not in session.info["warnings"]:
        session.info["warnings"].append(warning)


# --- before the first round ------------------------------------------------------------------------------------------


def _make_datasets(session: _Session) -> None:
    session.stage("data")
    folder = data_cache.default_folder()
    for name, dataset in session.plan.datasets.items():

        def told(rows: int, name: str = name, total: int = dataset.rows) -> None:
            session.watcher.step(f"{name}: {rows:,} of {total:,} rows", None)

        session.watcher.step(name, None)
        session.datasets[name] = data_cache.prepare(dataset, folder, on_rows=told)
    with_nulls = {name: data_cache.columns_with_nulls(stored.path) for name, stored in session.datasets.items()}
    session.plan = with_null_variants(session.plan, with_nulls)


def _record_excluded(session: _Session) -> None:
    """Refused and not installed: rows with their reason, never a shorter table without a word."""
    for excluded in session.plan.excluded:
        _keep_reason(session, excluded.chain, excluded.failure)


def _keep_reason(session: _Session, chain: Chain, failure: Failure) -> None:
    """One row for each operation of a chain that is not run."""
    rows = session.datasets[chain.dataset].rows
    if not session.earlier.has_reason(chain, session.public(chain.conditions), rows, failure):
        session.keep([_reason_sample(session, chain, operation, failure) for operation in chain.operations])


def _reason_sample(session: _Session, chain: Chain, operation: str, failure: Failure) -> Sample:
    dataset = session.datasets[chain.dataset]
    return Sample(
        suite=chain.suite,
        operation=operation,
        dataset=chain.dataset,
        dataset_digest=dataset.digest,
        rows=dataset.rows,
        variant=chain.variant,
        library=chain.library,
        conditions=chain.conditions,
        machine=session.machine,
        round=0,
        position=session.position,
        failure=failure,
    )


def _test_probe(session: _Session) -> None:
    """Rule 13: the memory probes against known allocations; their error goes with the run."""
    session.stage("memory probe")
    bench = next(iter(session.benches.values()), None)
    if bench is None:
        return
    answers = list(probe_check.known_answers(bench.launcher, bench.folder, session.watcher.step))
    session.info["probe"] = {
        "error_bytes": probe_check.error_bytes(answers),
        "known_answers": [asdict(answer) for answer in answers],
    }
    _save_info(session)


def _warn_of_failed_loading(session: _Session, launchers: Mapping[str, Launcher]) -> None:
    for launcher in launchers.values():
        for variant, reason in launcher.preload_failures.items():
            warn(session, f"{variant}: {reason}", "import the library by hand and see what it says")


def _time_imports(session: _Session) -> None:
    """What loading each engine costs a new interpreter: once for each, in a spawned process."""
    session.stage("imports")
    seen: dict[object, dict[str, int]] = {}
    for chain in session.plan.chains:
        engine, _ = FORMATS.engine(chain.spelled)
        described = session.info["variants"].setdefault(
            chain.variant,
            {
                "title": engine.title,
                "format": engine.format,
                "library": chain.library,
                "syncs_on_save": engine.syncs_on_save,
                "capabilities": sorted(can.value for can in engine.capabilities),
                "mapped": chain.mapped,
            },
        )
        if "import_ns" in described or engine.native is Native.BUFFERS:
            continue
        key = (engine, chain.spelled if engine.engine is None else engine.engine)
        if key not in seen:
            session.watcher.step(chain.variant, None)
            bench = session.bench(chain)
            with _scratch(bench.folder) as places:
                task = {"job": "import", "variant": chain.spelled, **places}
                outcome = bench.launcher.run(task, bench.limits(), spawn=True)
            if outcome.failure is not None:
                warn(session, f"{chain.variant}: {outcome.failure[1]}", "see what 'python -c \"import ...\"' says")
                continue
            seen[key] = outcome.answer("measured")["figures"]
        described.update(seen[key])
    _save_info(session)


@contextmanager
def _scratch(folder: Path) -> Iterator[dict[str, str]]:
    """An empty folder for a job that measures nothing, as a task names it; gone afterwards."""
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as scratch:
        yield {"scratch": scratch, "printed": str(folder / "printed"), "location": scratch, "confine": scratch}


def _find_losses(session: _Session) -> None:
    """Rule 12: what each variant does to each kind of column, for both targets; not timed."""
    if not session.options.fidelity:
        return
    session.stage("fidelity")
    known = session.earlier.fidelity
    for chain in {chain.variant: chain for chain in session.plan.chains if not chain.is_floor}.values():
        for kind in ("pandas", "arrow"):
            if (chain.variant, kind) in known:
                continue
            session.watcher.step(f"{chain.variant}, {kind}", None)
            _fidelity_of(session, chain, replace(chain.target, kind=kind))


def _fidelity_of(session: _Session, chain: Chain, target: Any) -> None:
    bench = session.bench(chain)
    with _scratch(bench.folder) as places:
        task = {"job": "fidelity", "variant": chain.spelled, "target": asdict(target), **places}
        outcome = bench.launcher.run(task, bench.limits())
    for answer in outcome.answers:
        if answer["event"] == "fidelity":
            record = Fidelity(**answer["record"])
            session.writer.append(replace(record, variant=chain.variant))
    if outcome.failure is not None:
        remedy = "its fidelity is known only as far as the matrix shows"
        warn(
            session,
            f"{chain.variant}, target {target.kind}: the fidelity probe ended early: {outcome.failure[1]}",
            remedy,
        )


# --- the rehearsal ------------------------------------------------------------------------------------------------


def _rehearse(session: _Session) -> dict[Chain, Prediction]:
    """Round 0: every chain once on few rows, cheap ones first; finds problems early and predicts the rest.

    Which are cheap is learnt on the way: from the second data set on, by what the variant took on the first. Of small
    tables, whose first counted round is as quick as a rehearsal, only the first is rehearsed.
    """
    session.stage("rehearsal")
    predictions: dict[Chain, Prediction] = {}
    known: dict[tuple[str, Conditions], Prediction] = {}
    for dataset in sorted(session.datasets.values(), key=lambda stored: stored.size_bytes):
        chains = [chain for chain in session.plan.chains if chain.dataset == dataset.name]
        took_ns = {variant: prediction.total_ns for (variant, _), prediction in known.items()}
        for chain in sorted(chains, key=lambda chain: took_ns.get(chain.variant, 0)):
            prediction = known.get((chain.variant, chain.conditions)) if is_small(dataset.rows) else None
            if prediction is None:
                session.watcher.step(chain.label(), None)
                prediction = _predicted(session, chain)
            if prediction is None:
                continue
            known[chain.variant, chain.conditions] = prediction
            too_much = _too_much(session, chain, prediction)
            if too_much is None:
                predictions[chain] = prediction
            else:
                _keep_reason(session, chain, too_much)
    return predictions


def _predicted(session: _Session, chain: Chain) -> Prediction | None:
    """What the chain will need at full size; None when it fails on few rows already."""
    dataset = session.datasets[chain.dataset]
    rows = rehearsal_rows(dataset.rows)
    samples = _execution(session, chain, rows=rows, round_number=0, need_bytes=dataset.size_bytes // 10)
    if any(sample.failure is not None for sample in samples):
        return None
    prediction = predict(samples, dataset.rows)
    if prediction.peak_bytes <= MEMORY_SHARE * environment.usable_memory_bytes() or dataset.rows <= 10 * rows:
        return prediction
    # A fixed cost scaled fifty times over looks like a need: ten times the rows tell better.
    need_bytes = prediction.peak_bytes // 5
    samples = _execution(session, chain, rows=10 * rows, round_number=0, need_bytes=need_bytes)
    return None if any(sample.failure is not None for sample in samples) else predict(samples, dataset.rows)


def _too_much(session: _Session, chain: Chain, prediction: Prediction) -> Failure | None:
    """Rule 5: the machine is protected."""
    available = environment.usable_memory_bytes()
    # The table itself lies beside the peak: before a save in hand, after a read as the result.
    need_bytes = prediction.peak_bytes + session.datasets[chain.dataset].size_bytes
    if need_bytes > MEMORY_SHARE * available:
        return Failure(
            kind="memory",
            reason=f"needs about {need_bytes / 1e9:.1f} GB of memory, {available / 1e9:.1f} GB are free",
        )
    free = shutil.disk_usage(session.bench(chain).folder).free
    if prediction.size_bytes > DISK_SHARE * free:
        reason = f"needs about {prediction.size_bytes / 1e9:.1f} GB of disk, {free / 1e9:.1f} GB are free"
        return Failure(kind="disk", reason=reason)
    longest = session.options.timeout_s
    if prediction.slowest_ns > 2 * longest * 1e9:
        minutes = prediction.slowest_ns / 60e9
        reason = f"would take about {minutes:.0f} minutes, the limit is {longest / 60:.0f}; --timeout allows more"
        return Failure(kind="timeout", reason=reason)
    return None


def _execution(
    session: _Session, chain: Chain, *, rows: int, round_number: int, need_bytes: int
) -> list[Sample]:
    """One execution of the chain: what the earlier part of the run has of it, else measured now."""
    known = session.earlier.execution(chain, session.public(chain.conditions), round_number, rows)
    if known is not None:
        return known
    samples = execute(
        session.bench(chain),
        chain,
        session.datasets[chain.dataset],
        rows=rows,
        round_number=round_number,
        position=session.position,
        need_bytes=need_bytes,
    )
    session.keep(samples)
    return samples


# --- the counted rounds ---------------------------------------------------------------------------------------------


def _count_rounds(session: _Session, predictions: Mapping[Chain, Prediction]) -> None:
    """Rounds outermost, each shuffled, until nobody wants another or the budget is spent."""
    schedule = Schedule(predictions, seed=session.info["seed"], rounds=session.options.rounds_asked)
    costs_s = {chain: OVERHEAD_S + prediction.total_ns / 1e9 for chain, prediction in predictions.items()}
    deadline_ns = None
    if session.options.budget_s is not None:
        deadline_ns = now_ns() + int(session.options.budget_s * 1e9)
    number = 0
    while True:
        number += 1
        due = schedule.due(number)
        if deadline_ns is not None and number > 1:
            due = within_budget(due, costs_s, (deadline_ns - now_ns()) / 1e9)
        if not due:
            return
        session.stage(f"round {number}")
        for index, chain in enumerate(due):
            session.watcher.step(chain.label(), _seconds_left(schedule, costs_s, due[index:], deadline_ns))
            started = now_ns()
            dataset = session.datasets[chain.dataset]
            need_bytes = max(predictions[chain].peak_bytes, dataset.size_bytes)
            samples = _execution(session, chain, rows=dataset.rows, round_number=number, need_bytes=need_bytes)
            costs_s[chain] = max((now_ns() - started) / 1e9, _measured_seconds(samples))
            schedule.progress[chain].add(samples)


def _measured_seconds(samples: Sequence[Sample]) -> float:
    return sum(sample.figures.get("wall_ns", 0) for sample in samples) / 1e9


def _seconds_left(
    schedule: Schedule, costs_s: Mapping[Chain, float], this_round: Sequence[Chain], deadline_ns: int | None
) -> float:
    """What is left of this round and, as far as the budget allows, of the rounds to come."""
    now = sum(costs_s[chain] for chain in this_round)
    later = sum(max(schedule.remaining_rounds(chain) - 1, 0) * cost for chain, cost in costs_s.items())
    if deadline_ns is None:
        return now + later
    return max(now, min(now + later, (deadline_ns - now_ns()) / 1e9))
