"""What holds from one run to the next: how well the memory probe sees, what imports cost, what libraries lose.

A run takes what is kept of it (bench_runner.run.known.facts_store) before its rounds, so that the first figure is there
within seconds, and measures what is missing when its rounds are done. Only a short check of the memory probe comes
before. Nothing here is the time of an operation.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from adapters.contract import Adapter
from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.plan.chain import Chain
from bench_runner.results.information import KnownAnswer, ProbeInfo
from bench_runner.results.records import Fidelity
from bench_runner.run import probe_check
from bench_runner.run.known.facts_store import KeptFacts, kept_facts, may_be_kept, noted, today
from bench_runner.run.launcher import Launcher, Outcome
from bench_runner.run.session import Session
from bench_runner.run.tasks import fidelity_task, import_task, scratch_folder
from bench_runner.variants import variant_of
from bench_runner.worker.fidelity import ERROR
from bench_runner.worker.messages import FidelityFound, Imported

MOST_FACTS_S = 60.0
"""Facts take no longer, so that the rounds of a long budget leave no more for them."""
ROUNDS_SHARE = 3 / 4
"""The rounds get this much of a budget where facts are missing, which come after them (rule 15)."""
LEFT_OUT = "left out to keep the budget"
MOST_LANES = 4
"""At most so many processes look for losses at once, because each loads all libraries into a forkserver of its own."""
PROBE, IMPORTS, FIDELITY = "memory probe", "imports", "fidelity"


@dataclass
class MachineFacts:
    """What a run knows of what holds from one run to the next, and what it still has to measure."""

    session: Session
    kept: KeptFacts
    imports: list[Chain]
    """One chain for each engine whose import is to be timed."""
    fidelity: list[Chain]
    """One chain for each variant and target whose losses are to be found."""
    probe: bool

    @property
    def missing(self) -> bool:
        """Whether anything has to be measured."""
        return bool(self.imports or self.fidelity or self.probe)


def taken(session: Session) -> MachineFacts:
    """Check the memory probe, take what is kept, and tell what is missing."""
    kept = kept_facts(session.info, fresh=session.options.fresh)
    facts = MachineFacts(session, kept, imports=[], fidelity=[], probe=False)
    session.stage(PROBE)
    _check_probe(facts)
    for chain in _importing(session):
        cost = kept.get(_import_name(chain), Imported) if may_be_kept(_engine(chain)) else None
        if cost is None:
            facts.imports.append(chain)
        else:
            noted(session.info, IMPORTS, cost.measured, kept.digest, new=False)
            _tell_import(session, chain, cost.value)
    for chain in _losing(session):
        records = kept.get(_fidelity_name(chain), tuple[Fidelity, ...]) if may_be_kept(_engine(chain)) else None
        if records is None:
            facts.fidelity.append(chain)
        else:
            noted(session.info, FIDELITY, records.measured, kept.digest, new=False)
            session.writer.append(*records.value)
    session.save_info()
    return facts


def share_of_rounds(facts: MachineFacts) -> float:
    """How much of the budget the rounds may use."""
    budget_s = facts.session.options.budget_s
    if not facts.missing or budget_s is None:
        return 1.0
    return max(ROUNDS_SHARE, 1 - MOST_FACTS_S / budget_s)


def measure_missing(facts: MachineFacts) -> None:
    """Measure what nothing was kept of, as far as the budget lasts, and keep it for the runs to come."""
    _test_probe(facts)
    _time_imports(facts)
    _find_losses(facts)
    facts.session.save_info()


# --- the memory probe ------------------------------------------------------------------------------------------


def _check_probe(facts: MachineFacts) -> None:
    """Rule 13: the memory probes against known allocations; their error goes with the run. A short check in every run,
    once for each: a run is resumed on the machine and with the code that it began with."""
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
    _tell_probe(session, answers)


def _test_probe(facts: MachineFacts) -> None:
    """The long check, of every known allocation."""
    session = facts.session
    if not facts.probe or _is_spent(session):
        # The short check stands.
        return
    session.stage(PROBE)
    assert session.info.probe is not None
    bench = next(iter(session.benches.values()))
    answers = tuple(probe_check.known_answers(bench.launcher, bench.folder, session.step, probe_check.LONG))
    _keep(facts, PROBE, _probe_name(session), answers)
    _tell_probe(session, [*answers, *session.info.probe.known_answers])


def _tell_probe(session: Session, answers: Sequence[KnownAnswer]) -> None:
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
    """What chains have in common whose imports cost the same."""
    engine = _engine(chain)
    return engine.__module__, engine.__qualname__, chain.spelled if engine.engine is None else engine.engine


def _import_name(chain: Chain) -> list[str]:
    return [IMPORTS, *_imported(chain), chain.conditions.threads]


def _importing(session: Session) -> Iterator[Chain]:
    """One chain for each engine whose import nobody has timed yet. Not in a run for one decision, whose budget is
    better spent on rounds."""
    if session.options.brief or session.race is not None:
        return
    seen = set()
    for chain in session.plan.chains:
        known = session.info.variants[chain.variant].import_ns is not None
        if not known and not chain.is_raw_io and _imported(chain) not in seen:
            seen.add(_imported(chain))
            yield chain


def _tell_import(session: Session, timed: Chain, cost: Imported) -> None:
    """All variants of an engine are loaded alike."""
    for chain in session.plan.chains:
        if not chain.is_raw_io and _imported(chain) == _imported(timed):
            variant = session.info.variants[chain.variant]
            variant.import_ns, variant.import_rss_bytes = cost.import_ns, cost.import_rss_bytes


def _time_imports(facts: MachineFacts) -> None:
    """What loading each engine costs a new interpreter: once for each, in a spawned process."""
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
            session.warn(f"{chain.variant}: {outcome.failure.reason}", "see what 'python -c \"import ...\"' says")
            continue
        cost = outcome.answer(Imported)
        _keep(facts, IMPORTS, _import_name(chain), cost, chain)
        _tell_import(session, chain, cost)


# --- losses ----------------------------------------------------------------------------------------------------


def _losing(session: Session) -> list[Chain]:
    """Rule 12: a chain for each variant and target whose losses nobody has found yet. Variants that differ in their
    codec alone are asked once: a codec packs bytes and knows no kinds of columns. What each of them gives back is
    verified with every sample all the same."""
    if not session.options.fidelity:
        return []
    by_base: dict[str, Chain] = {}
    for chain in session.plan.chains:
        if not chain.is_raw_io and chain.target.data_kind.has_columns:
            by_base.setdefault(variant_of(chain.variant).without("codec").without("level"), chain)
    return [
        replace(chain, target=replace(chain.target, kind=kind))
        for chain, kind in itertools.product(by_base.values(), ("pandas", "arrow"))
        if (chain.variant, kind) not in session.earlier.fidelity
    ]


def _fidelity_name(chain: Chain) -> list[str]:
    target = chain.target
    return [FIDELITY, chain.variant, chain.spelled, target.kind, target.strings, target.nulls, chain.conditions.threads]


def _find_losses(facts: MachineFacts) -> None:
    """What each variant does to each kind of column, for both targets. Nothing of it is timed, so all cores work. With
    a budget what does not fit is left out, and that is told."""
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
        remedy = "its fidelity is known only as far as the matrix shows"
        session.warn(
            f"{chain.variant}, target {target.kind}: the fidelity probe ended early: {outcome.failure.reason}", remedy
        )
        return
    if any(record.outcome == ERROR and not record.cause for record in records):
        # News, which may be mended or an accident by the next run, is not taken for known.
        noted(session.info, FIDELITY, today(), facts.kept.digest, new=True)
        return
    _keep(facts, FIDELITY, _fidelity_name(chain), records, chain)


def _keep(facts: MachineFacts, part: str, name: Sequence[str], value: Any, chain: Chain | None = None) -> None:
    """For the runs to come, unless it is of a third party's adapter. A folder that cannot take it costs them time."""
    session, kept = facts.session, facts.kept
    if chain is None or may_be_kept(_engine(chain)):
        try:
            kept.put(name, value)
        except OSError as error:
            session.warn(
                f"{part}: cannot be kept for later runs ({error.strerror or error})",
                "look at the cache folder, which FORMAT_BENCH_CACHE may name",
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
        "the rounds, which come first, have used it up",
        "the same command without --quick finds it"
        if session.options.quick
        else "the same command without --budget finds it; with --out and --resume added it measures what is missing",
    )


def _forget_left_out(session: Session, part: str) -> None:
    """Where a run goes on, what it left out before may be found now."""
    warnings = session.info.warnings
    warnings[:] = [each for each in warnings if not (each.text.startswith(part) and LEFT_OUT in each.text)]


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
