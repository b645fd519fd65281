"""Measure how fast the storage device of each working folder can be read (rule 16). The file that is read has the bytes
of a data set, stored without any format (raw I/O).

Only some suites request this measurement. The device is measured before the first counted round and after the last
round. Reports show results as shares of the device's speed. bench_runner.machine.device decides what is read, and how
often.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench_runner.clock import utc_now
from bench_runner.errors import OperationFailed
from bench_runner.machine import environment, folders, linux
from bench_runner.machine.device.roofline import NoRoofline, roofline
from bench_runner.plan.chain import Chain
from bench_runner.results.information import RooflineInfo, RooflineLine
from bench_runner.run.chains import stored_copy
from bench_runner.run.session import Session

BEFORE, AFTER = "before", "after"


def look(session: Session, when: str) -> None:
    """Measure the device once for each data set and working folder, and record the results. `when` is BEFORE or AFTER
    the rounds. In a quick run, nothing is measured after its only round."""
    if when == AFTER and session.options.quick:
        return
    for chain in _chains(session):
        work_dir = environment.replace_host(chain.conditions.work_dir, session.options.machine)
        known = [each for each in session.info.rooflines if (each.dataset, each.work_dir) == (chain.dataset, work_dir)]
        if when == BEFORE and known:
            continue
        session.stage("device probe")
        session.step(f"probing the device: {chain.dataset}", None)
        found = _probed(session, chain)
        found.dataset, found.work_dir, found.when = chain.dataset, work_dir, when
        found.measured = utc_now().isoformat(timespec="seconds")
        found.guest = session.info.machine.is_virtual
        # A resumed run may already have a measurement from after its rounds. It is out of date, so replace it.
        session.info.rooflines = [each for each in session.info.rooflines if each not in known or each.when != when]
        session.info.rooflines.append(found)
        session.save_info()


def _chains(session: Session) -> Iterator[Chain]:
    """Yield one chain of raw I/O for each data set and working folder of the suites that request the measurement."""
    asking = {suite.name for suite in session.plan.suites if suite.roofline}
    seen: set[tuple[str, str]] = set()
    for chain in session.plan.chains:
        place = chain.dataset, chain.conditions.work_dir
        if chain.suite in asking and chain.is_raw_io and place not in seen:
            seen.add(place)
            yield chain


def _probed(session: Session, chain: Chain) -> RooflineInfo:
    bench = session.bench(chain)
    if reason := folders.supports_cold(folders.folder_facts(bench.folder).get("filesystem")):
        return RooflineInfo(why_none=reason)
    try:
        with stored_copy(bench, chain, session.datasets[chain.dataset], position=session.position) as location:
            return _lines(location, session.seed)
    except (OperationFailed, NoRoofline) as none:
        return RooflineInfo(why_none=str(none))
    except OSError as error:
        return RooflineInfo(why_none=f"{type(error).__name__}: {error.strerror or error}")


def _lines(location: Path, seed: int) -> RooflineInfo:
    (path,) = linux.files_below(location)
    lines = roofline(path, seed=seed)
    return RooflineInfo(
        copy_bytes=path.stat().st_size,
        compiled=all(line.reads.compiled for line in lines),
        lines=tuple(
            RooflineLine(
                kind=line.kind,
                size_bytes=line.reads.size_bytes,
                depth=line.reads.depth,
                reads=line.reads.count,
                wall_ns=line.reads.wall_ns,
                at_least=line.at_least,
            )
            for line in lines
        ),
    )
