"""Facts about the machine, its libraries and its load, which are needed to judge and repeat a run.

Functions omit facts that they cannot read, for example because a file of the kernel is missing. All values can be
converted to JSON. bench_runner.machine.doctor judges the facts, and bench_runner.machine.folders has facts about
folders.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import psutil

from adapters.contract import Adapter
from bench_runner import registries
from bench_runner.clock import now_ns, utc_now
from bench_runner.machine import linux
from bench_runner.machine.folders import all_mounts
from bench_runner.machine.system_files import SYSTEM, choice_of, field_of, text_of

HARNESS_LIBRARIES = ("format-bench", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "tpchgen-cli", "xxhash")
"""Libraries that affect data, results or reports, whichever formats are measured."""

BUSY_CORES = 0.10
"""Another process counts as a disturbance if it uses more than this number of cores."""

_HYPERVISORS = {
    "qemu": "kvm",
    "kvm": "kvm",
    "vmware": "vmware",
    "virtualbox": "oracle",
    "innotek": "oracle",
    "xen": "xen",
    "virtual machine": "microsoft",
    "google compute engine": "google",
    "amazon ec2": "amazon",
    "parallels": "parallels",
    "bochs": "bochs",
}
"""Maps a part of a virtual machine's vendor or product name, as found in DMI (the firmware's tables), to the name that
systemd-detect-virt uses for the hypervisor."""

_CONTAINERS = ("docker", "kubepods", "podman", "containerd", "lxc")

Shape = TypeVar("Shape")


def replace_host(shape: Shape, name: str | None, *, host: str | None = None) -> Shape:
    """Return `shape` (dicts, lists and strings) with the host's name replaced by `name` in every string.

    This is for `--machine NAME`, because the host's name also occurs in paths, commands and device names. The host's
    name is replaced only where it is a whole word, with or without its domain. Upper and lower case do not matter. Keys
    of dicts are replaced only if they are paths. If `name` itself contains the host's name, occurrences of `name` stay
    unchanged. With `name` None nothing is replaced. `host` is for tests.
    """
    full = host or platform.node()
    if name is None or not full:
        return shape
    spelled = sorted({full, full.partition(".")[0]}, key=len, reverse=True)
    # Device mapper doubles the hyphens in a volume group's name, which installers derive from the host's name.
    spelled += [text.replace("-", "--") for text in spelled if "-" in text]
    hosts = "|".join(map(re.escape, spelled))
    # Occurrences of `name` stay. On the host 'vm', 'lab-vm' must not become 'lab-lab-vm'.
    pattern = re.compile(rf"(?<![a-z0-9])(?:(?-i:{re.escape(name)})|{hosts})(?![a-z0-9])", re.IGNORECASE)

    def replaced(part: Any) -> Any:
        if isinstance(part, str):
            return pattern.sub(lambda _: name, part)
        if isinstance(part, Mapping):
            return {replaced(key) if "/" in key else key: replaced(value) for key, value in part.items()}
        if isinstance(part, (list, tuple)):
            return [replaced(value) for value in part]
        return part

    result: Shape = replaced(shape)
    return result


# --- the machine --------------------------------------------------------------------------------------------


def machine_facts(name: str | None = None, *, system: Path = SYSTEM) -> dict[str, Any]:
    """Return facts about the machine: processor, memory, kernel, virtualisation, Python, clocks.

    If `name` is given (`--machine NAME`), it is used instead of the host's name, but only for the key 'name'. Pass
    other values that may contain the host's name through `replace_host`. Sizes are in bytes, times in ns. Keys whose
    source is missing are omitted.
    """
    facts: dict[str, Any] = {
        "name": name or platform.node(),
        "cpu": _cpu_model(system),
        "cores": os.cpu_count(),
        "physical_cores": psutil.cpu_count(logical=False),
        "affinity": field_of(system / "proc/self/status", "Cpus_allowed_list"),
        "cpu_limit_cores": cpu_limit_cores(system=system),
        "governor": governor(system=system),
        "turbo": turbo(system=system),
        "numa_nodes": len(list((system / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "memory_bytes": psutil.virtual_memory().total,
        "memory_limit_bytes": memory_limit_bytes(system=system),
        "swap_bytes": psutil.swap_memory().total,
        "kernel": f"{platform.system()} {platform.release()}",
        "operating_system": _operating_system(),
        "virtualisation": virtualisation(system=system),
        "container": container(system=system),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "timer_resolution_ns": timer_resolution_ns(),
        "clock_source": clock_source(system=system),
        "aslr": _aslr(system),
        "transparent_huge_pages": choice_of(system / "sys/kernel/mm/transparent_hugepage/enabled"),
        "clock_time": utc_now().isoformat(timespec="seconds"),
        "time_zone": utc_now().astimezone().tzname(),
    }
    return {key: value for key, value in facts.items() if value is not None}


def governor(*, system: Path = SYSTEM) -> str | None:
    """Return the CPU frequency governor, ideally 'performance'. Lists several governors if cores differ. None if
    unknown."""
    cores = (system / "sys/devices/system/cpu").glob("cpu[0-9]*")
    found = {text_of(core / "cpufreq/scaling_governor") for core in cores}
    return ", ".join(sorted(text for text in found if text)) or None


def turbo(*, system: Path = SYSTEM) -> bool | None:
    """Return whether the processor may exceed its nominal frequency, or None if the kernel does not report this."""
    disabled = text_of(system / "sys/devices/system/cpu/intel_pstate/no_turbo")
    if disabled is not None:
        return disabled == "0"
    boost = text_of(system / "sys/devices/system/cpu/cpufreq/boost")
    return None if boost is None else boost == "1"


def clock_source(*, system: Path = SYSTEM) -> str | None:
    """Return the kernel's time source. 'tsc' is fast, 'hpet' and 'acpi_pm' are slow."""
    return text_of(system / "sys/devices/system/clocksource/clocksource0/current_clocksource")


def timer_resolution_ns(calls: int = 2000) -> int | None:
    """Return the smallest time that the harness's clock can measure. This is the clock's resolution, or the time of
    reading the clock if that takes longer. Return None if the clock did not advance."""
    ticks = [now_ns() for _ in range(calls)]
    return min((later - earlier for earlier, later in pairwise(ticks) if later > earlier), default=None)


def virtualisation(*, system: Path = SYSTEM) -> str | None:
    """Return the hypervisor's name, or 'virtual machine' if the name is hidden. Return 'none' on bare metal, and None
    if unknown.

    systemd-detect-virt needs `--vm` here. Without `--vm`, in a container, the program would report the container
    instead of the hypervisor. If systemd-detect-virt is missing, the firmware's names (DMI) and a flag of x86
    processors show the hypervisor.
    """
    detected = _detect_virt("--vm") if system == SYSTEM else None
    if detected and detected != "none":
        return detected
    flags = field_of(system / "proc/cpuinfo", "flags")
    has_flag = flags is not None and "hypervisor" in flags.split()
    product = text_of(system / "sys/class/dmi/id/product_name")
    hardware = f"{text_of(system / 'sys/class/dmi/id/sys_vendor') or ''} {product or ''}".lower()
    # Bare-metal machines of cloud providers have the same vendor name, but not the hypervisor's flag.
    if has_flag or (flags is None and not hardware.endswith("metal")):
        for mark, hypervisor in _HYPERVISORS.items():
            if mark in hardware:
                return hypervisor
    if has_flag:
        return "virtual machine"
    return "none" if detected == "none" or flags is not None else None


def container(*, system: Path = SYSTEM) -> str | None:
    """Return the kind of container that this process runs in, or None if there is no container or its kind is
    unknown."""
    detected = _detect_virt("--container") if system == SYSTEM else None
    if detected:
        return None if detected == "none" else detected
    if (system / ".dockerenv").exists():
        return "docker"
    if (system / "run/.containerenv").exists():
        return "podman"
    groups = text_of(system / "proc/1/cgroup") or ""
    return next((kind for kind in _CONTAINERS if kind in groups), None)


def memory_limit_bytes(*, system: Path = SYSTEM) -> int | None:
    """Return the lowest memory limit of the control groups of this process. Return None if no limit is below the
    machine's memory."""
    total = psutil.virtual_memory().total
    settings = _group_settings(system, "memory", "memory.max", "memory.limit_in_bytes")
    lowest = min((int(text) for text in settings if text.isdigit()), default=total)
    return lowest if lowest < total else None


def usable_memory_bytes() -> int:
    """Return the memory in bytes that a worker may use: the available memory, or less if a control group of this
    process allows less."""
    left = memory_left_bytes()
    return linux.available_bytes() if left is None else min(linux.available_bytes(), left)


def memory_left_bytes(*, system: Path = SYSTEM) -> int | None:
    """Return the memory in bytes that this process may still use under the limits of its control groups. Memory in the
    page cache does not count as used, because the kernel reclaims the page cache first. Return None if there is no
    limit."""
    left = []
    for folder, unified in _group_folders(system, "memory"):
        limit, used = (text_of(folder / name) or "" for name in _MEMORY_FILES[unified])
        if limit.isdigit() and used.isdigit() and int(limit) < psutil.virtual_memory().total:
            left.append(max(int(limit) - int(used) + _cache_bytes(folder), 0))
    return min(left, default=None)


_MEMORY_FILES = {True: ("memory.max", "memory.current"), False: ("memory.limit_in_bytes", "memory.usage_in_bytes")}


def _cache_bytes(folder: Path) -> int:
    """Return the bytes of page cache that a control group uses, including the groups below it."""
    fields = dict(line.split() for line in (text_of(folder / "memory.stat") or "").splitlines() if line.count(" ") == 1)
    total = "total_" if "total_inactive_file" in fields else ""
    return sum(int(fields.get(f"{total}{name}", 0)) for name in ("active_file", "inactive_file"))


def cpu_limit_cores(*, system: Path = SYSTEM) -> float | None:
    """Return the lowest CPU quota of the control groups of this process, in cores, or None if there is no quota. The
    kernel pauses threads that exceed the quota."""
    quotas = []
    for text in _group_settings(system, "cpu", "cpu.max", None):
        quota, _, period = text.partition(" ")
        if quota.isdigit():
            quotas.append(int(quota) / int(period))
    for quota, period in zip(
        _group_settings(system, "cpu", None, "cpu.cfs_quota_us"),
        _group_settings(system, "cpu", None, "cpu.cfs_period_us"),
        strict=False,
    ):
        if int(quota) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def _group_settings(system: Path, controller: str, unified: str | None, legacy: str | None) -> Iterator[str]:
    """Yield the value of a setting in the control group of this process and in each group above it. The file with the
    setting is named `unified` in version 2 of control groups and `legacy` in version 1."""
    for folder, is_unified in _group_folders(system, controller):
        file = unified if is_unified else legacy
        text = text_of(folder / file) if file else None
        if text:
            yield text


def _group_folders(system: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield (folder, is_version_2) for the control group of this process and for each group above it."""
    mounts = list(all_mounts(system))
    for line in (text_of(system / "proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        is_unified = controllers == ""
        if not is_unified and controller not in controllers.split(","):
            continue
        kind = "cgroup2" if is_unified else "cgroup"
        for mount in mounts:
            holds = kind == "cgroup2" or controller in mount.super_options.split(",")
            if mount.filesystem != kind or not holds:
                continue
            below = group.removeprefix(mount.root.rstrip("/")).strip("/")
            top = system / mount.point.strip("/")
            folder = top / below
            while True:
                yield folder, is_unified
                if folder == top:
                    break
                folder = folder.parent


def _cpu_model(system: Path) -> str | None:
    named = field_of(system / "proc/cpuinfo", "model name") or text_of(system / "proc/device-tree/model")
    return named or platform.processor() or None


def _operating_system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return f"macOS {platform.mac_ver()[0]}" if platform.mac_ver()[0] else None


def _aslr(system: Path) -> str | None:
    level = text_of(system / "proc/sys/kernel/randomize_va_space")
    return None if level is None else {"0": "off", "1": "partial", "2": "full"}.get(level, level)


@cache
def _detect_virt(which: str) -> str | None:
    try:
        # The program exits with 1 if it answers 'none'.
        answer = subprocess.run(["systemd-detect-virt", which], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


# --- libraries and code -------------------------------------------------------------------------------------


def library_names(engines: Iterable[type[Adapter]], others: Iterable[str] = ()) -> set[str]:
    """Return the names of everything whose version affects figures of these engines: Python, the libraries that the
    harness uses, the distributions and programs that the engines need with any of their settings, and `others`, the
    distributions that operations need."""
    names = {"python", *HARNESS_LIBRARIES, *others}
    for engine in engines:
        names.update(program.name for program in engine.programs)
        names.update((*engine.distributions, *engine.codec_distributions.values()))
        names.update(name for besides in engine.besides_for.values() for name in besides.distributions)
    return names


def library_versions(engines: Iterable[type[Adapter]] | None = None, others: Iterable[str] = ()) -> dict[str, str]:
    """Return the version of each of `library_names` that is installed. `engines` None means all engines of all
    registries. The modules of their adapters are then imported, but not the libraries that these modules use."""
    if engines is None:
        engines = [engine for _, engine in registries.all_engines()]
    engines = tuple(engines)
    programs = {program.name: program.version() for engine in engines for program in engine.programs}
    versions = {"python": platform.python_version()}
    versions |= {name: version for name, version in programs.items() if version is not None}
    for name in sorted(library_names(engines, others) - programs.keys() - {"python"}):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


_NEW_FOLDER = re.compile(r"\?\? [^/]+/\"?")
"""Matches a line of `git status --porcelain` for an untracked top-level folder."""


def repository_state(root: Path) -> dict[str, Any]:
    """Return {'commit', 'dirty'} of the checkout whose top folder is `root`. Return an empty dict if `root` is no
    checkout or git is missing.

    If there are uncommitted changes, the result also has 'changes', a digest of the changes. New top-level folders do
    not count as changes, because nothing is imported from them. They may contain results, for example.
    """
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root.resolve():
        return {}
    commit = _git(root, "rev-parse", "HEAD")
    # Set explicitly, because the user's git setting may list each file, or none.
    status = _git(root, "status", "--porcelain", "--untracked-files=normal")
    if not commit or status is None:
        return {}
    changes = [line for line in status.splitlines() if not _NEW_FOLDER.fullmatch(line)]
    if not changes:
        return {"commit": commit, "dirty": False}
    listed = "\n".join(changes)
    difference = _git(root, "diff", "HEAD") or ""
    return {
        "commit": commit,
        "dirty": True,
        "changes": hashlib.sha256(f"{listed}\n{difference}".encode()).hexdigest()[:16],
    }


def _git(root: Path, *words: str) -> str | None:
    # Without optional locks, this never blocks a git command that the user runs at the same time.
    command = ["git", "-C", str(root), "--no-optional-locks", *words]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


# --- the moment ---------------------------------------------------------------------------------------------


def load(*, system: Path = SYSTEM) -> dict[str, Any]:
    """Return the load averages, and the number of threads that are running or ready to run, including this thread."""
    one, five, fifteen = (round(value, 2) for value in os.getloadavg())
    facts: dict[str, Any] = {"one_minute": one, "five_minutes": five, "fifteen_minutes": fifteen}
    fields = (text_of(system / "proc/loadavg") or "").split()
    if len(fields) > 3:
        facts["runnable"] = int(fields[3].partition("/")[0])
    return facts


def disturbances(seconds: float = 0.5) -> list[dict[str, Any]]:
    """Return the other processes that use over 10 % of a core now, as [{'name', 'cores'}], busiest first. The processes
    are observed for `seconds`. This process and its child processes are omitted. Only names are returned, because the
    arguments of processes may be private."""
    own = psutil.Process()
    family = {own.pid, *(child.pid for child in own.children(recursive=True))}
    watched = [process for process in psutil.process_iter() if process.pid not in family]
    before = {process: _cpu_seconds(process) for process in watched}
    psutil.cpu_percent(interval=seconds)
    busy = []
    for process, then in before.items():
        now = _cpu_seconds(process)
        if then is None or now is None or (now - then) / seconds <= BUSY_CORES:
            continue
        busy.append({"name": _process_name(process), "cores": round((now - then) / seconds, 2)})
    return sorted(busy, key=lambda row: row["cores"], reverse=True)


def _cpu_seconds(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)


def _process_name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return "a process that has ended"
