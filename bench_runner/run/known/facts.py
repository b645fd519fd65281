"""Load or measure facts that stay valid between runs: the error of the memory probe, the time of importing each
library, and the values that each variant changes.

Before the rounds, a run loads the facts that earlier runs stored (bench_runner.run.known.facts_store), and does a short
test of the memory probe. Missing facts are measured after the rounds, so that the first results appear within seconds.
Times of operations are never stored as facts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from adapters.contract import Adapter
from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.machine.environment import library_names
from bench_runner.plan.chain import Chain
from bench_runner.results.information import KnownAnswer, ProbeInfo
from bench_runner.results.records import Fidelity
from bench_runner.run import probe_check
from bench_runner.run.known.facts_store import KeptFacts, kept_facts, may_be_kept, noted, today, versions_of
from bench_runner.run.launcher import Launcher, Outcome
from bench_runner.run.session import Session
from bench_runner.run.tasks import fidelity_task, import_task, scratch_folder
from bench_runner.variants import variant_of
from bench_runner.worker.messages import ERROR, FidelityFound, Imported

MOST_FACTS_S = 60.0
"""Longest time in seconds that is reserved for measuring facts in a run with a budget. The rest of the budget is for
rounds."""
ROUNDS_SHARE = 3 / 4
"""Smallest share of the budget for the rounds if facts are missing. Facts are measured in the rest, after the rounds
(rule 15)."""
LEFT_OUT = "left out to keep the budget"
MOST_LANES = 4
"""Largest number of workers that test variants for changed values in parallel. The number is limited, because each
worker needs its own forkserver, which loads all libraries."""
PROBE, IMPORTS, FIDELITY = "memory probe", "imports", "fidelity"


@dataclass
class MachineFacts:
    """The stored facts, and the facts that a run still has to measure."""

    session: Session
    kept: KeptFacts
    imports: list[Chain]
    """One chain for each engine (library) whose import has to be timed."""
    fidelity: list[Chain]
    """One chain for each variant and target that has to be tested for changed values."""
    probe: bool

    @property
    def missing(self) -> bool:
        """Whether any fact has to be measured."""
        return bool(self.imports or self.fidelity or self.probe)


def taken(session: Session) -> MachineFacts:
    """Do the short test of the memory probe and load the stored facts. Return the facts, including which facts are
    missing."""
    kept = kept_facts(session.info, fresh=session.options.fresh)
    facts = MachineFacts(session, kept, imports=[], fidelity=[], probe=False)
    session.stage(PROBE)
    _check_probe(facts)
    for chain in _importing(session):
        cost = kept.get(_import_name(chain), Imported, _libraries(session, chain)) if _may_be_kept(chain) else None
        if cost is None:
            facts.imports.append(chain)
        else:
            noted(session.info, IMPORTS, cost.measured, kept.digest, new=False)
            _record_import(session, chain, cost.value)
    for chain in _losing(session):
        records = (
            kept.get(_fidelity_name(chain), tuple[Fidelity, ...], _libraries(session, chain))
            if _may_be_kept(chain)
            else None
        )
        if records is None:
            facts.fidelity.append(chain)
        else:
            noted(session.info, FIDELITY, records.measured, kept.digest, new=False)
            session.writer.append(*records.value)
    session.save_info()
    return facts


def share_of_rounds(facts: MachineFacts) -> float:
    """Return the fraction of the budget that the rounds may use. This is 1 if no facts are missing."""
    budget_s = facts.session.options.budget_s
    if not facts.missing or budget_s is None:
        return 1.0
    return max(ROUNDS_SHARE, 1 - MOST_FACTS_S / budget_s)


def measure_missing(facts: MachineFacts) -> None:
    """Measure missing facts while the budget lasts, and store them for later runs."""
    _test_probe(facts)
    _time_imports(facts)
    _find_losses(facts)
    facts.session.save_info()


def _may_be_kept(chain: Chain) -> bool:
    return may_be_kept(_engine(chain))


def _libraries(session: Session, chain: Chain) -> dict[str, str]:
    """Return the versions of the libraries that the chain's engine needs."""
    return versions_of(session.info, library_names([_engine(chain)]))


# --- the memory probe ------------------------------------------------------------------------------------------


def _check_probe(facts: MachineFacts) -> None:
    """Test the memory probes with known allocations, and store their error with the run (rule 13). A resumed run is not
    tested again, because its machine and code are the same as before."""
    session = facts.session
    bench = next(iter(session.benches.values()), None)
    if session.options.brief or session.info.probe is not None or bench is None:
        return
    answers = list(probe_check.known_answers(bench.launcher, bench.folder, session.step, probe_check.SHORT))
    known = facts.kept.get(_probe_name(session), tuple[KnownAnswer, ...])
    if known is not None:
        noted(session.info, PROBE, known.measured, facts.kept.digest, new=False)
        answers = [*known.value, *answers]
    facts.probe = known is None and session.race is None
    _record_probe(session, answers)


def _test_probe(facts: MachineFacts) -> None:
    """Do the long test of the memory probe, if no earlier run has stored its result and the budget is not spent."""
    session = facts.session
    if not facts.probe or _is_spent(session):
        # The result of the short test remains valid.
        return
    session.stage(PROBE)
    assert session.info.probe is not None
    bench = next(iter(session.benches.values()))
    answers = tuple(probe_check.known_answers(bench.launcher, bench.folder, session.step, probe_check.LONG))
    _keep(facts, PROBE, _probe_name(session), answers)
    _record_probe(session, [*answers, *session.info.probe.known_answers])


def _record_probe(session: Session, answers: Sequence[KnownAnswer]) -> None:
    session.info.probe = ProbeInfo(error_bytes=probe_check.error_bytes(answers), known_answers=tuple(answers))
    session.save_info()


def _probe_name(session: Session) -> list[str]:
    (_, threads), *_ = session.benches
    return [PROBE, session.options.isolate, threads]


# --- imports ---------------------------------------------------------------------------------------------------


def _engine(chain: Chain) -> type[Adapter]:
    engine, _ = registries.engine_of(chain.spelled)
    return engine


def _imported(chain: Chain) -> tuple[str, str, str]:
    """Return a key that is equal for chains that load the same libraries, and therefore have the same import time."""
    engine = _engine(chain)
    return engine.__module__, engine.__qualname__, chain.spelled if engine.engine is None else engine.engine


def _import_name(chain: Chain) -> list[str]:
    return [IMPORTS, *_imported(chain), chain.conditions.threads]


def _importing(session: Session) -> Iterator[Chain]:
    """Yield one chain for each engine (library) whose import has not been timed. Yield nothing if the run belongs to
    `recommend`, which needs its whole budget for rounds."""
    if session.options.brief or session.race is not None:
        return
    seen = set()
    for chain in session.plan.chains:
        known = session.info.variants[chain.variant].import_ns is not None
        if not known and not chain.is_raw_io and _imported(chain) not in seen:
            seen.add(_imported(chain))
            yield chain


def _record_import(session: Session, timed: Chain, cost: Imported) -> None:
    """Record the time and memory of an import for all variants of the engine, because these variants load the same
    libraries."""
    for chain in session.plan.chains:
        if not chain.is_raw_io and _imported(chain) == _imported(timed):
            variant = session.info.variants[chain.variant]
            variant.import_ns, variant.import_rss_bytes = cost.import_ns, cost.import_rss_bytes


def _time_imports(facts: MachineFacts) -> None:
    """Time the import of each engine once, in a new, spawned interpreter."""
    session = facts.session
    _forget_left_out(session, IMPORTS)
    if facts.imports:
        session.stage(IMPORTS)
    for number, chain in enumerate(facts.imports):
        if _is_spent(session):
            _warn_of_left_out(session, IMPORTS, {each.variant for each in facts.imports[number:]})
            break
        session.step(chain.variant, None)
        bench = session.bench(chain)
        with scratch_folder(bench.folder) as scratch:
            outcome = bench.launcher.run(import_task(chain, scratch), bench.limits(), spawn=True)
        if outcome.failure is not None:
            session.warn(f"{chain.variant}: {outcome.failure.reason}", "import the library in Python to see its error")
            continue
        cost = outcome.answer(Imported)
        _keep(facts, IMPORTS, _import_name(chain), cost, chain)
        _record_import(session, chain, cost)


# --- losses ----------------------------------------------------------------------------------------------------


def _losing(session: Session) -> list[Chain]:
    """Return a chain for each variant and target that the run has not tested for changed values (rule 12). If variants
    differ only in their codec, only one of them is tested. The codec does not matter, because it compresses bytes
    without regard to the column types."""
    if not session.options.fidelity:
        return []
    by_base: dict[str, Chain] = {}
    for chain in session.plan.chains:
        if not chain.is_raw_io and chain.target.data_kind.fidelity_targets:
            by_base.setdefault(variant_of(chain.variant).without("codec").without("level"), chain)
    return [
        replace(chain, target=replace(chain.target, kind=kind))
        for chain in by_base.values()
        for kind in chain.target.data_kind.fidelity_targets
        if (chain.variant, kind) not in session.earlier.fidelity
    ]


def _fidelity_name(chain: Chain) -> list[str]:
    target = chain.target
    return [FIDELITY, chain.variant, chain.spelled, target.kind, target.strings, target.nulls, chain.conditions.threads]


def _find_losses(facts: MachineFacts) -> None:
    """Test how each variant changes values. Variants for tables are tested with each kind of column, for the targets
    pandas and arrow. Document stores are tested with each kind of document. The tests run in parallel, because nothing
    is timed. If the budget is spent, omit the remaining variants with a warning."""
    session, asked = facts.session, facts.fidelity
    _forget_left_out(session, FIDELITY)
    if not asked:
        return
    session.stage(FIDELITY)
    found = 0
    with _Lanes(session, min(len(os.sched_getaffinity(0)), MOST_LANES)) as lanes:
        if not _is_spent(session):
            for chain, outcome in lanes.outcomes(asked):
                _keep_fidelity(facts, chain, outcome)
                found += 1
                if _is_spent(session):
                    break
    _warn_of_left_out(session, FIDELITY, {chain.variant for chain in asked[found:]})


def _keep_fidelity(facts: MachineFacts, chain: Chain, outcome: Outcome) -> None:
    session, target = facts.session, chain.target
    records = tuple(
        Fidelity(variant=chain.variant, target=target.kind, strings=target.strings, **asdict(found.verdict))
        for found in outcome.answers_of(FidelityFound)
    )
    session.writer.append(*records)
    if outcome.failure is not None:
        remedy = "the fidelity table shows only the kinds of data that were tested before the probe ended"
        session.warn(
            f"{chain.variant}, target {target.kind}: the fidelity probe ended early: {outcome.failure.reason}", remedy
        )
        return
    if any(record.outcome == ERROR and not record.cause for record in records):
        # An unexplained error may be fixed, or may not recur, in the next run. So do not store it.
        noted(session.info, FIDELITY, today(), facts.kept.digest, new=True)
        return
    _keep(facts, FIDELITY, _fidelity_name(chain), records, chain)


def _keep(facts: MachineFacts, part: str, name: Sequence[str], value: Any, chain: Chain | None = None) -> None:
    """Store a fact for later runs, unless the adapter comes from a third party. If the fact cannot be stored, add a
    warning."""
    session, kept = facts.session, facts.kept
    if chain is None or _may_be_kept(chain):
        try:
            kept.put(name, value, {} if chain is None else _libraries(session, chain))
        except OSError as error:
            session.warn(
                f"{part}: could not be kept for later runs ({error.strerror or error})",
                "check the cache folder, which FORMAT_BENCH_CACHE sets",
            )
    noted(session.info, part, today(), kept.digest, new=True)


# --- the budget ------------------------------------------------------------------------------------------------


def _is_spent(session: Session) -> bool:
    end_ns = session.budget_ends_ns()
    return end_ns is not None and now_ns() >= end_ns


def _warn_of_left_out(session: Session, part: str, variants: Collection[str]) -> None:
    if not variants:
        return
    session.warn(
        f"{part} of {len(variants)} variant{'' if len(variants) == 1 else 's'} {LEFT_OUT}: "
        "the rounds, which come first, used the whole budget",
        "run the same command without --quick"
        if session.options.quick
        else "run the same command without --budget; to measure only what is missing, add --out and --resume",
    )


def _forget_left_out(session: Session, part: str) -> None:
    """Remove the warnings of `_warn_of_left_out` when a run is resumed, because these facts may be measured now."""
    warnings = session.info.warnings
    warnings[:] = [each for each in warnings if not (each.text.startswith(part) and LEFT_OUT in each.text)]


class _Lanes:
    """Threads that test variants for changed values in parallel. Each thread creates its own launchers, because a
    forkserver dies with the thread that started it."""

    def __init__(self, session: Session, number: int) -> None:
        self._session = session
        self._pool = ThreadPoolExecutor(number)
        self._own = threading.local()
        self._launchers: list[Launcher] = []

    def __enter__(self) -> _Lanes:
        return self

    def __exit__(self, *stopped_by: object) -> None:
        # On Ctrl-C, end running workers with their forkserver, and wait for them.
        self._pool.shutdown(wait=False, cancel_futures=True)
        for launcher in self._launchers:
            launcher.close()
        self._pool.shutdown()

    def outcomes(self, chains: Sequence[Chain]) -> Iterator[tuple[Chain, Outcome]]:
        running = [self._pool.submit(self._ask, chain) for chain in chains]
        for chain, future in zip(chains, running, strict=True):
            self._session.step(f"{chain.variant}, {chain.target.kind}", None)
            yield chain, future.result()

    def _ask(self, chain: Chain) -> Outcome:
        bench = self._session.bench(chain)
        with scratch_folder(bench.folder) as scratch:
            return self._launcher(bench.launcher).run(fidelity_task(chain, scratch), bench.limits())

    def _launcher(self, like: Launcher) -> Launcher:
        own: dict[Launcher, Launcher] = self._own.__dict__.setdefault("launchers", {})
        if like not in own:
            own[like] = like.twin()
            self._launchers.append(own[like])
        return own[like]
