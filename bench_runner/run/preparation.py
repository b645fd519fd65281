"""The steps of a run before its first round: check the working folders, make the data, and record which variants cannot
be measured.

None of these steps is timed. bench_runner.run.known.facts handles facts that stay valid between runs, and
bench_runner.run.rounds handles the rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

import data_generator.cache as data_cache
from adapters.contract import Adapter, TabularFormat
from adapters.offers import Reach
from bench_runner import registries
from bench_runner.errors import RunError
from bench_runner.machine import doctor, folders
from bench_runner.networks import rate_mbit
from bench_runner.plan.nulls import with_null_variants
from bench_runner.results.information import CalibrationInfo, FolderInfo, MaturityInfo, VariantInfo
from bench_runner.run.launcher import Launcher
from bench_runner.run.services import calibration
from bench_runner.run.session import Session


def look_at_work_folders(session: Session, work: Mapping[str, Path]) -> None:
    """Record facts about the working folders, and warn of problems that quick checks find. Raises RunError if a cold
    cache was requested and is impossible in a folder."""
    facts = {label: folders.folder_facts(path) for label, path in work.items()}
    session.info.work_dirs = {label: msgspec.convert(about, FolderInfo) for label, about in facts.items()}
    for label, path in work.items():
        reason = folders.supports_cold(facts[label].get("filesystem"))
        if reason and any(chain.conditions.cache == "cold" for chain in session.plan.chains):
            raise RunError(
                f"`cache='cold'` is not possible in {path.parent}: {reason}.",
                "Name another folder by `work_dirs`.",
                parameter="cache",
                given="cold",
            )
        # In a resumed run, the run itself may have caused the load of the last minute.
        for warning in doctor.quick_warnings(path, load=session.earlier.run is None):
            session.warn(**warning)
        many_files = doctor.many_files_warning(facts[label].get("journal"))
        if many_files and any(chain.target.data_kind.file_per_row for chain in session.plan.chains):
            session.warn(**many_files)


def make_datasets(session: Session) -> None:
    """Generate every data set of the plan that is not in the cache. Then adapt the plan to the columns with nulls,
    which are known only now (rule 8)."""
    session.stage("data")
    folder = data_cache.default_folder()
    for name, dataset in session.plan.datasets.items():

        def report(rows: int, name: str = name, total: int = dataset.rows) -> None:
            session.step(f"{name}: {rows:,} of {total:,} rows", None)

        session.step(name, None)
        session.datasets[name] = data_cache.prepare(dataset, folder, on_rows=report)
        for remark in dataset.remarks:
            text, _, remedy = remark.partition("\n")
            session.warn(f"{name}: {text}", remedy)
    with_nulls = {name: data_cache.columns_with_nulls(stored.path) for name, stored in session.datasets.items()}
    session.plan = with_null_variants(session.plan, with_nulls)


def calibrate_networks(session: Session) -> None:
    """Measure and record the rate of each simulated network that has a limited rate. Raises RunError if the measured
    rate differs from the requested rate."""
    names = dict.fromkeys(chain.conditions.network for chain in session.plan.chains)
    session.info.calibrations = []
    for network in (name for name in names if rate_mbit(name)):
        session.step(f"measuring the rate of {network}", None)
        bench = next(iter(session.benches.values()))
        found = calibration.checked(network, bench.folder / f"calibration-{network}")
        session.info.calibrations.append(
            CalibrationInfo(
                network=network,
                asked_bits_per_s=round(found.asked_bits_per_s),
                found_bits_per_s=round(found.found_bits_per_s),
            )
        )
    session.save_info()


def record_excluded(session: Session) -> None:
    """Record variants that are refused or not installed, each with its reason."""
    for excluded in session.plan.excluded:
        session.keep_reason(excluded.chain, excluded.failure)


def warn_of_failed_loading(session: Session, launchers: Mapping[str, Launcher]) -> None:
    """Warn of libraries that are installed but do not load."""
    for launcher in launchers.values():
        for variant, reason in launcher.preload_failures.items():
            session.warn(f"{variant}: {reason}", "import the library in Python to see its error")


def describe_variants(session: Session) -> None:
    """Record what the adapter of each variant declares, such as its losses."""
    for chain in session.plan.chains:
        if chain.variant not in session.info.variants:
            about = declared(*registries.engine_of(chain.spelled))
            about.library, about.mapped = chain.library, chain.mapped
            session.info.variants[chain.variant] = about


def declared(engine: type[Adapter], settings: Mapping[str, str]) -> VariantInfo:
    """Return what an adapter declares with these settings. Raises RefusedSetting if the adapter refuses a setting."""
    adapter = engine(settings)
    return VariantInfo(
        title=adapter.title,
        format=adapter.format,
        syncs_on_save=adapter.syncs_on_save,
        capabilities=tuple(sorted(can.value for can in adapter.capabilities)),
        maturity=MaturityInfo(
            stage=adapter.maturity.stage.value, reason=adapter.maturity.reason, ours=adapter.maturity.ours
        ),
        partial_reads=_partial_reads(adapter),
        reads_unseen=adapter.reads_unseen,
    )


def _partial_reads(adapter: Adapter) -> tuple[str, ...]:
    if not isinstance(adapter, TabularFormat):
        return ()
    offered = {"take": adapter.offers.take is Reach.ROWS, "scan": bool(adapter.offers.scan)}
    return tuple(operation for operation, reads_a_part in offered.items() if reads_a_part)
