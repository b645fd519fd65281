"""Check whether this machine is fit for measuring. Each finding states what was found and what to do.

`examine` measures for some seconds, for the command `doctor`. `quick_warnings` does not measure, and is called in every
run. The limits are a matter of judgement, and each is next to its check. This module does not depend on suites, samples
or reports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import psutil

from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.machine import environment, folders, linux

_GB = 10**9
BLOCK_BYTES = 64 * 1024 * 1024
"""Size of a memory block whose pages are touched, as in the control measurement before each sample (rule 1)."""

LEVELS = ("good", "hint", "bad")


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    `level` is 'good', 'hint' (worth knowing) or 'bad' (figures suffer). `remedy` is advice to the user, or empty if
    there is nothing to do.
    """

    level: str
    what: str
    measured: str
    remedy: str = ""


def examine(work_dir: Path) -> list[Finding]:
    """Return all findings about this machine. This takes about 5 s.

    Writes files below `work_dir`, or below the nearest existing folder above `work_dir`, and removes these files at the
    end.
    """
    folder = _existing(work_dir)
    # Look for busy processes first, before the checks themselves use the processor.
    findings = [_busy(), *_looked_at(folder)]
    host = environment.virtualisation()
    findings += [*_virtual_machine(host), cpu_speed(), _fresh_memory(host), _first_read(folder), _timer()]
    return findings + list(_missing_libraries())


def quick_warnings(work_dir: Path, *, load: bool = True) -> list[dict[str, str]]:
    """Return the 'bad' findings that need no measurement, as [{'text', 'remedy'}], to store in a run.

    Takes less than 50 ms. If `load` is False, the load of the last minute is not checked.
    """
    return [
        {"text": f"{finding.what}: {finding.measured}", "remedy": finding.remedy}
        for finding in _looked_at(_existing(work_dir))
        if finding.level == "bad" and (load or finding.what != "load")
    ]


def many_files_warning(journal: bool | None) -> dict[str, str] | None:
    """Return a warning for runs that store many files if the file system is ext4 without a journal (`journal` is
    False), where creating files can be slow. Otherwise return None."""
    finding = _journal(journal)
    return {"text": f"{finding.what}: {finding.measured}", "remedy": finding.remedy} if finding else None


def verdict(findings: list[Finding]) -> str:
    """Return a sentence that concludes from the findings whether the machine is fit for measuring."""
    bad = [finding.what for finding in findings if finding.level == "bad"]
    hints = sum(finding.level == "hint" for finding in findings)
    if bad:
        return f"Not fit for measuring yet. First fix: {', '.join(bad)}; then run doctor again."
    if hints:
        return f"Fit for measuring; see the {_count(hints, 'hint')} above when you read figures."
    return "Fit for measuring: no problem found."


# --- checks without measuring -------------------------------------------------------------------------------


def _looked_at(folder: Path) -> Iterator[Finding]:
    """Yield the findings that need no measurement. A finding is omitted if the kernel does not provide the facts for
    it."""
    facts = folders.folder_facts(folder)
    for finding in (
        _governor(environment.governor()),
        _turbo(environment.turbo()),
        _load(environment.load(), os.cpu_count() or 1),
        _memory(linux.available_bytes()),
        _swap(psutil.swap_memory().used),
        _memory_limit(environment.memory_limit_bytes(), psutil.virtual_memory().total),
        _cpu_limit(environment.cpu_limit_cores(), os.cpu_count() or 1),
        _disk(facts["free_bytes"], folder),
        _file_system(facts.get("filesystem"), folder),
        _journal(facts.get("journal")),
        _clock_source(environment.clock_source()),
    ):
        if finding is not None:
            yield finding


def _governor(governor: str | None) -> Finding | None:
    if governor is None:
        return None
    if governor == "performance":
        return Finding("good", "CPU governor", "performance: the clock speed stays high")
    return Finding(
        "bad",
        "CPU governor",
        f"{governor}: the clock speed follows the load, so short operations run slower than long ones",
        "sudo cpupower frequency-set -g performance (until the next boot)",
    )


def _turbo(turbo: bool | None) -> Finding | None:
    if turbo is None:
        return None
    if not turbo:
        return Finding("good", "CPU turbo", "off: the clock speed is fixed")
    intel = Path("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = Path("/sys/devices/system/cpu/cpufreq/boost")
    command = f"echo 1 | sudo tee {intel}" if intel.exists() else f"echo 0 | sudo tee {boost}"
    measured = "on: the clock speed depends on temperature and on the number of busy cores"
    return Finding("hint", "CPU turbo", measured, f"to compare runs of different days, switch it off: {command}")


def _load(load: dict[str, float], cores: int) -> Finding:
    # One busy core in ten is normal for an idle desktop. One busy core in two slows multi-threaded engines.
    share = load["one_minute"] / cores
    measured = f"{load['one_minute']:.2f} on average over the last minute, {_count(cores, 'core')}"
    if share < 0.1:
        return Finding("good", "load", measured)
    remedy = "stop other work and wait a minute (the average falls slowly)"
    return Finding("bad" if share >= 0.5 else "hint", "load", measured, remedy)


def _memory(available_bytes: int) -> Finding:
    measured = f"{_gb(available_bytes)} available"
    if available_bytes >= 4 * _GB:
        return Finding("good", "memory", measured)
    remedy = "close programs, or measure fewer rows (--rows); cells that do not fit are reported as skipped"
    return Finding("bad" if available_bytes < _GB else "hint", "memory", measured, remedy)


def _swap(used_bytes: int) -> Finding:
    if used_bytes < 64 * 10**6:
        return Finding("good", "swap", "not in use")
    return Finding(
        "hint",
        "swap",
        f"{_gb(used_bytes)} in use: memory may be short, and reading it back from swap takes time",
        "close programs, then: sudo swapoff -a && sudo swapon -a",
    )


def _memory_limit(limit_bytes: int | None, total_bytes: int) -> Finding | None:
    if limit_bytes is None:
        return None
    return Finding(
        "hint",
        "memory limit",
        f"{_gb(limit_bytes)} for this container or session, of {_gb(total_bytes)}",
        "the page cache counts towards it: raise it for big tables (docker run --memory, systemd MemoryMax)",
    )


def _cpu_limit(limit_cores: float | None, cores: int) -> Finding | None:
    if limit_cores is None or limit_cores >= cores:
        return None
    measured = (
        f"{limit_cores:g} of {_count(cores, 'core')}: engines start one thread per core, and all are paused in turn"
    )
    remedy = "assign whole cores instead of a share: docker run --cpuset-cpus, or taskset"
    return Finding("bad", "CPU limit", measured, remedy)


def _disk(free_bytes: int, folder: Path) -> Finding:
    measured = f"{_gb(free_bytes)} free in {folder}"
    if free_bytes >= 20 * _GB:
        return Finding("good", "disk space", measured)
    # Table 6.5 of the thesis: JSON Lines takes 1,270 bytes per row of webface.
    remedy = "use another folder (--work-dir) for large data: JSON of 10,000,000 rows of webface takes 13 GB"
    return Finding("bad" if free_bytes < 2 * _GB else "hint", "disk space", measured, remedy)


def _journal(journal: bool | None) -> Finding | None:
    """Return a hint if the file system is ext4 without a journal, where creating files can be slow. Otherwise return
    None.

    Source: Linux, fs/ext4/ialloc.c, recently_deleted. Without a journal, a freed inode is not reused for 60 s, or for
    300 s while its block waits to be written. To create a file, the kernel must search past all such inodes.
    """
    if journal is not False:
        return None
    return Finding(
        "hint",
        "many files",
        "this ext4 has no journal: for five minutes after files are deleted, each new one takes up to 20 times as long",
        "stores of many small files (PNG, JPEG, WebP) save more slowly here than elsewhere; use another --work-dir",
    )


def _file_system(filesystem: str | None, folder: Path) -> Finding | None:
    if filesystem is None:
        return None
    where = f"{filesystem} under {folder}"
    if folders.is_in_memory(filesystem):
        return Finding(
            "bad",
            "file system",
            f"{where}: it is in memory, so saving and reading do not reach a disk",
            "use a folder on a disk: --work-dir",
        )
    if folders.is_remote(filesystem):
        return Finding(
            "bad",
            "file system",
            f"{where}: it is on another machine, whose load and network would affect every figure",
            "use a folder on a local disk: --work-dir",
        )
    refusal = folders.supports_cold(filesystem)
    if refusal:
        return Finding("hint", "file system", f"{where}: --cache cold is refused", refusal)
    return Finding("good", "file system", f"{where}: warm and cold reads can both be measured")


def _clock_source(source: str | None) -> Finding | None:
    if source not in ("hpet", "acpi_pm", "jiffies", "refined-jiffies"):
        return None
    return Finding(
        "hint",
        "clock source",
        f"{source}: reading the clock takes a microsecond or more",
        "unless dmesg shows a reason against it: echo tsc | sudo tee "
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    )


# --- checks that measure ------------------------------------------------------------------------------------


def _busy() -> Finding:
    rows = environment.disturbances()
    if not rows:
        return Finding("good", "other processes", "none uses over 10 % of a core")
    cores = sum(row["cores"] for row in rows)
    measured = "cores in use now: " + ", ".join(f"{row['name']} {row['cores']:.1f}" for row in rows[:4])
    if len(rows) > 4:
        measured += f" and {len(rows) - 4} more"
    remedy = "stop them, or wait until they are done"
    return Finding("bad" if cores >= 0.5 else "hint", "other processes", measured, remedy)


def _virtual_machine(host: str | None) -> Iterator[Finding]:
    if host not in (None, "none"):
        yield Finding(
            "hint",
            "virtual machine",
            f"{host}: other guests may share processor and disk, and the host's cache is not emptied",
            "use more rounds (--rounds); cold reads are labelled 'cold (guest)'",
        )


def cpu_speed(repeats: int = 50) -> Finding:
    """Return a finding about how much the time of a small computation varies. The computation does not use storage.

    The spread is the interquartile range of `repeats` times, divided by the median of these times. Results are medians,
    too. With a spread of 5 %, the median of seven rounds is accurate to about 3 %. With a spread of 15 %, the median is
    accurate to about 10 %; two runs may then differ by as much.
    """
    before = psutil.cpu_times()
    taken = [_timed(_compute) for _ in range(repeats)]
    after = psutil.cpu_times()
    low, middle, high = quantiles(taken, n=4)
    spread = (high - low) / middle
    measured = f"the middle half of {repeats} equal computations spreads over {100 * spread:.0f} %"
    stolen_ns = (getattr(after, "steal", 0.0) - getattr(before, "steal", 0.0)) * 1e9
    if stolen_ns > 0.02 * sum(taken):
        measured += f"; the host gave {100 * stolen_ns / sum(taken):.0f} % of a core to other guests"
    if spread < 0.05:
        return Finding("good", "CPU speed", measured)
    remedy = "caused by other work, heat, or guests of the same host: check again later, use more rounds (--rounds)"
    return Finding("bad" if spread >= 0.15 else "hint", "CPU speed", measured, remedy)


def _compute() -> None:
    value = 0
    for step in range(300_000):
        value = (value * 31 + step) & 0xFFFF


def _fresh_memory(host: str | None) -> Finding:
    """Compare how long the first and the second touch (write to each page) of fresh memory take (method rule 1).

    The same amount is touched each time. Several blocks are allocated at the same time, because the system would
    otherwise reuse recently freed memory. Such memory is fast even if the host has not provided the rest of the
    machine's memory yet.
    """
    import numpy as np

    blocks = max(1, min(8, linux.available_bytes() // (8 * BLOCK_BYTES)))

    def touch() -> None:
        held = [np.empty(BLOCK_BYTES, dtype=np.uint8) for _ in range(blocks)]
        for block in held:
            block[:: linux.PAGE_BYTES] = 1

    first, second = _timed(touch), _timed(touch)
    size = blocks * BLOCK_BYTES // 10**6
    measured = f"touching {size} MB took {_ms(first)}, then {_ms(second)}: {first / second:.1f} times as long at first"
    if first <= 1.3 * second:
        return Finding("good", "fresh memory", measured)
    if host not in (None, "none"):
        measured += "; the host provides memory only at its first use"
    return Finding(
        "hint",
        "fresh memory",
        measured,
        "nothing to do: each sample touches its memory before the clock starts, which makes runs longer",
    )


def _first_read(folder: Path) -> Finding:
    """Compare the first and second read of a small Parquet file in a fresh process. The difference shows why workers
    read once before timing."""
    what = "first read"
    code = "import sys; from bench_runner.machine.doctor import read_twice; read_twice(sys.argv[1])"
    try:
        with tempfile.TemporaryDirectory(prefix="format-bench-doctor-", dir=folder) as scratch:
            command = [sys.executable, "-c", code, str(Path(scratch, "small.parquet"))]
            root = Path(__file__).parents[2]
            answer = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    except OSError as error:
        remedy = "use a writable folder: --work-dir"
        return Finding("bad", "working folder", f"{folder}: {error.strerror}", remedy)
    except subprocess.TimeoutExpired:
        remedy = "check the disks of the folder and of the libraries"
        return Finding("bad", what, "a fresh process needed over 60 s to read 1,000 rows", remedy)
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
        remedy = "reinstall the libraries: make clean, then make test"
        return Finding("bad", what, f"a fresh process could not read Parquet: {last}", remedy)
    first, second = json.loads(answer.stdout)
    measured = f"1,000 rows of Parquet in a fresh process: {_ms(first)}, then {_ms(second)}"
    slower = f"{first / second:.0f} times as long at first"
    return Finding("good", what, f"{measured}: {slower}; workers are warmed up for that")


def read_twice(path: str) -> None:
    """Write a small Parquet file to `path`, read it twice, and print both times in ns as a JSON list."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"key": range(1000), "value": [str(row) for row in range(1000)]}), path)
    times = [_timed(lambda: pq.read_table(path)), _timed(lambda: pq.read_table(path))]
    sys.stdout.write(json.dumps(times))


def _timer() -> Finding:
    calls = 10_000
    # Use the median of several batches, so that one interruption does not look like a slow clock.
    costs = []
    for _ in range(9):
        started = now_ns()
        for _ in range(calls):
            now_ns()
        costs.append((now_ns() - started) / calls)
    cost, step = median(costs), environment.timer_resolution_ns()
    measured = f"{cost:.0f} ns per reading" + (f", resolution {step} ns" if step else "")
    if cost < 1000 and step is not None and step < 1000:
        return Finding("good", "clock", measured)
    return Finding("hint", "clock", measured, "figures under 1 ms are imprecise here: measure more rows (--rows)")


def _missing_libraries() -> Iterator[Finding]:
    missing: dict[str, dict[str, None]] = {}
    for registry, engine in registries.all_engines():
        availability = registry.availability(engine)
        if not availability.installed:
            needed = ", ".join(availability.missing)
            missing.setdefault(availability.install, {})[f"{engine.format} (needs {needed})"] = None
    if not missing:
        counts = " and ".join(f"{len(list(registry))} {registry.noun}s" for registry in registries.REGISTRIES.values())
        yield Finding("good", "libraries", f"all of the {counts} can be measured")
    for command, formats in missing.items():
        yield Finding("hint", "libraries", f"not installed: {', '.join(formats)}", command)


# --- words --------------------------------------------------------------------------------------------------


def _existing(folder: Path) -> Path:
    """Return `folder`, or the nearest existing folder above it. The folder itself may not exist yet, because a run
    creates its working folder."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())


def _timed(work: Callable[[], object]) -> int:
    started = now_ns()
    work()
    return now_ns() - started


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / _GB:,.1f} GB"


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:,.1f} ms"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
