"""What a run does before its first round: data, memory probe, imports, and the fidelity of each variant.

Nothing here is timed but what loading an engine costs. What comes after is bench_runner.run.rounds.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import data_generator.cache as data_cache
from adapters.contract import Maturity
from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.errors import RunError
from bench_runner.machine import doctor, folders
from bench_runner.plan import codecs
from bench_runner.plan.chain import Chain
from bench_runner.plan.nulls import with_null_variants
from bench_runner.results.information import FolderInfo, KnownAnswer, MaturityInfo, ProbeInfo, VariantInfo
from bench_runner.results.records import Fidelity
from bench_runner.run import probe_check
from bench_runner.run.launcher import Launcher, Outcome
from bench_runner.run.session import Session

PREPARATION_SHARE = 1 / 3
"""Of a budget: what it leaves of the imports and the losses when so much of it is spent is left out."""
LEFT_OUT = "left out to keep the budget"
MOST_LANES = 4
"""More processes at once are not asked for losses: each loads all libraries into a forkserver of its own."""


def look_at_work_folders(session: Session, work: Mapping[str, Path]) -> None:
    """Keep their facts, refuse a cold cache where it cannot be had, and warn of what is bad at a look."""
    facts = {label: folders.folder_facts(path) for label, path in work.items()}
    session.info.work_dirs = {label: msgspec.convert(about, FolderInfo) for label, about in facts.items()}
    for label, path in work.items():
        reason = folders.supports_cold(facts[label].get("filesystem"))
        if reason and any(chain.conditions.cache == "cold" for chain in session.plan.chains):
            raise RunError(
                f"--cache cold is not possible in {path.parent}: {reason}\n  name another folder by --work-dir"
            )
        # Where a run goes on, the load of the last minute may be its own.
        for warning in doctor.quick_warnings(path, load=session.earlier.run is None):
            session.warn(**warning)
        many_files = doctor.many_files_warning(facts[label].get("journal"))
        if many_files and any(chain.target.is_images for chain in session.plan.chains):
            session.warn(**many_files)


def make_datasets(session: Session) -> None:
    """Make or find every data set of the plan; with their nulls known, the plan becomes final (rule 8)."""
    session.stage("data")
    folder = data_cache.default_folder()
    for name, dataset in session.plan.datasets.items():

        def told(rows: int, name: str = name, total: int = dataset.rows) -> None:
            session.watcher.step(f"{name}: {rows:,} of {total:,} rows", None)

        session.watcher.step(name, None)
        session.datasets[name] = data_cache.prepare(dataset, folder, on_rows=told)
        for remark in dataset.remarks:
            text, _, remedy = remark.partition("\n")
            session.warn(f"{name}: {text}", remedy)
    with_nulls = {name: data_cache.columns_with_nulls(stored.path) for name, stored in session.datasets.items()}
    session.plan = with_null_variants(session.plan, with_nulls)


def record_excluded(session: Session) -> None:
    """Refused and not installed: rows with their reason, never a shorter table without a word."""
    for excluded in session.plan.excluded:
        session.keep_reason(excluded.chain, excluded.failure)


def test_probe(session: Session) -> None:
    """Rule 13: the memory probes against known allocations; their error goes with the run. Once: a run is resumed on
    the machine and with the code that it began with."""
    if session.options.brief or session.info.probe is not None:
        return
    session.stage("memory probe")
    bench = next(iter(session.benches.values()), None)
    if bench is None:
        return
    answers = list(probe_check.known_answers(bench.launcher, bench.folder, session.watcher.step))
    session.info.probe = ProbeInfo(
        error_bytes=probe_check.error_bytes(answers),
        known_answers=tuple(KnownAnswer(**asdict(answer)) for answer in answers),
    )
    session.save_info()


def warn_of_failed_loading(session: Session, launchers: Mapping[str, Launcher]) -> None:
    """Warn of libraries that are installed and do not load."""
    for launcher in launchers.values():
        for variant, reason in launcher.preload_failures.items():
            session.warn(f"{variant}: {reason}", "import the library by hand and see what it says")


def time_imports(session: Session) -> None:
    """What loading each engine costs a new interpreter: once for each, in a spawned process. Not in a run for one
    decision, whose budget is better spent on rounds."""
    session.stage("imports")
    untimed = session.options.brief or session.race is not None
    _forget_left_out(session, "imports")
    seen: dict[object, dict[str, int]] = {}
    late: set[str] = set()
    for chain in session.plan.chains:
        engine, _ = registries.engine_of(chain.spelled)
        described = session.info.variants.setdefault(
            chain.variant,
            VariantInfo(
                title=engine.title,
                format=engine.format,
                library=chain.library,
                syncs_on_save=engine.syncs_on_save,
                capabilities=tuple(sorted(can.value for can in engine.capabilities)),
                maturity=_told(engine.maturity),
                mapped=chain.mapped,
            ),
        )
        if described.import_ns is not None or chain.is_raw_io or untimed:
            continue
        key = (engine, chain.spelled if engine.engine is None else engine.engine)
        if key not in seen and _has_had_its_share(session):
            late.add(chain.variant)
            continue
        if key not in seen:
            session.watcher.step(chain.variant, None)
            bench = session.bench(chain)
            with _scratch(bench.folder) as places:
                task = {"job": "import", "variant": chain.spelled, **places}
                outcome = bench.launcher.run(task, bench.limits(), spawn=True)
            if outcome.failure is not None:
                session.warn(f"{chain.variant}: {outcome.failure[1]}", "see what 'python -c \"import ...\"' says")
                continue
            seen[key] = outcome.answer("measured")["figures"]
        described.import_ns, described.import_rss_bytes = seen[key]["import_ns"], seen[key]["import_rss_bytes"]
    _warn_of_left_out(session, "imports", late)
    session.save_info()


def _told(maturity: Maturity) -> MaturityInfo:
    return MaturityInfo(stage=maturity.stage.value, reason=maturity.reason, ours=maturity.ours)


@contextmanager
def _scratch(folder: Path) -> Iterator[dict[str, str]]:
    """An empty folder for a job that measures nothing, as a task names it; gone afterwards."""
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
        scratch = Path(own, "scratch")
        scratch.mkdir()
        yield {"printed": f"{own}/printed"} | dict.fromkeys(("scratch", "location", "confine"), str(scratch))


def find_losses(session: Session) -> None:
    """Rule 12: what each variant does to each kind of column, for both targets.

    Nothing of it is timed, so all cores work. Variants that differ in their codec alone are asked once: a codec packs
    bytes and knows no kinds of columns. What each of them gives back is verified with every sample all the same. With a
    budget what does not fit into its share is left out, and that is told.
    """
    if not session.options.fidelity:
        return
    session.stage("fidelity")
    tables = [chain for chain in session.plan.chains if not chain.is_raw_io and not chain.target.is_images]
    by_base: dict[str, Chain] = {}
    for chain in tables:
        by_base.setdefault(codecs.base_of(chain.variant), chain)
    asked = [
        replace(chain, target=replace(chain.target, kind=kind))
        for chain, kind in itertools.product(by_base.values(), ("pandas", "arrow"))
        if (chain.variant, kind) not in session.earlier.fidelity
    ]
    kept = 0
    with _Lanes(session, min(len(os.sched_getaffinity(0)), MOST_LANES)) as lanes:
        if not _has_had_its_share(session):
            for chain, outcome in lanes.outcomes(asked):
                _keep_fidelity(session, chain, outcome)
                kept += 1
                if _has_had_its_share(session):
                    break
    _forget_left_out(session, "fidelity")
    _warn_of_left_out(session, "fidelity", {chain.variant for chain in asked[kept:]})


def _has_had_its_share(session: Session) -> bool:
    """Whether what comes before the rounds has taken what it may of the budget."""
    end_ns = session.budget_ends_ns(PREPARATION_SHARE)
    return end_ns is not None and now_ns() >= end_ns


def _warn_of_left_out(session: Session, part: str, variants: Collection[str]) -> None:
    if not variants:
        return
    session.warn(
        f"{part} of {len(variants)} variant{'' if len(variants) == 1 else 's'} {LEFT_OUT}: "
        "what comes before the rounds may take a third of it",
        "the same command without --budget finds it; with --out and --resume added it measures what is missing",
    )


def _forget_left_out(session: Session, part: str) -> None:
    """Where a run goes on, what it left out before may be found now."""
    warnings = session.info.warnings
    warnings[:] = [each for each in warnings if not (each.text.startswith(part) and LEFT_OUT in each.text)]


def _keep_fidelity(session: Session, chain: Chain, outcome: Outcome) -> None:
    for answer in outcome.answers:
        if answer["event"] == "fidelity":
            target = chain.target
            record = Fidelity(
                variant=chain.variant, target=target.kind, strings=target.strings, **answer["record"]
            )
            session.writer.append(record)
    if outcome.failure is not None:
        remedy = "its fidelity is known only as far as the matrix shows"
        session.warn(
            f"{chain.variant}, target {chain.target.kind}: the fidelity probe ended early: {outcome.failure[1]}",
            remedy,
        )


class _Lanes:
    """Threads that look for losses side by side, each with launchers of its own.

    Those are made by the thread that uses them, because a forkserver dies with the thread that started it.
    """

    def __init__(self, session: Session, number: int) -> None:
        self._session = session
        self._pool = ThreadPoolExecutor(number)
        self._own = threading.local()
        self._launchers: list[Launcher] = []

    def __enter__(self) -> _Lanes:
        return self

    def __exit__(self, *stopped_by: object) -> None:
        # On Ctrl-C what still runs is ended with its forkserver, and waited for.
        self._pool.shutdown(wait=False, cancel_futures=True)
        for launcher in self._launchers:
            launcher.close()
        self._pool.shutdown()

    def outcomes(self, chains: Sequence[Chain]) -> Iterator[tuple[Chain, Outcome]]:
        """Each chain with what its probe said, in their order."""
        running = [self._pool.submit(self._ask, chain) for chain in chains]
        for chain, future in zip(chains, running, strict=True):
            self._session.watcher.step(f"{chain.variant}, {chain.target.kind}", None)
            yield chain, future.result()

    def _ask(self, chain: Chain) -> Outcome:
        bench = self._session.bench(chain)
        with _scratch(bench.folder) as places:
            task = {"job": "fidelity", "variant": chain.spelled, "target": asdict(chain.target), **places}
            return self._launcher(bench.launcher).run(task, bench.limits())

    def _launcher(self, like: Launcher) -> Launcher:
        own: dict[Launcher, Launcher] = self._own.__dict__.setdefault("launchers", {})
        if like not in own:
            own[like] = like.twin()
            self._launchers.append(own[like])
        return own[like]
