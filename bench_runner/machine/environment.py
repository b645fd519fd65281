"""Facts about the machine, its libraries and its load: what is needed to believe a run and repeat it.

A fact that cannot be read here is left out, never invented: every collector tolerates missing sources and
omits its key. All values are JSON-able. This module judges nothing (bench_runner.machine.doctor does), and knows
neither folders (bench_runner.machine.folders does) nor samples. All but `disturbances` and the timer's resolution are
read, not measured.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import psutil

from bench_runner import registries
from bench_runner.clock import now_ns, utc_now
from bench_runner.machine import linux
from bench_runner.machine.folders import all_mounts
from bench_runner.machine.system_files import SYSTEM, choice_of, field_of, text_of

HARNESS_LIBRARIES = ("format-bench", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "tpchgen-cli")
"""Libraries that shape data, figures or reports, whichever formats are chosen."""

BUSY_CORES = 0.10
"""From this share of one core on, another process counts as a disturbance."""

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
"""What DMI's vendor and product hold on a virtual machine, to the names that systemd-detect-virt uses."""

_CONTAINERS = ("docker", "kubepods", "podman", "containerd", "lxc")

Shape = TypeVar("Shape")


def replace_host(shape: Shape, name: str | None, *, host: str | None = None) -> Shape:
    """`shape` (of dicts, lists and strings) with the host's name replaced by `name` in every string.

    For `--machine NAME`: the host's name also hides in paths, commands and device names. Whole words only, in
    any case; with and without its domain. Of keys only those that are paths: the others are the record's own
    words. `name` None changes nothing, and where `name` itself holds the host's, it stays as it is. `host` is this one
    unless a test says.
    """
    full = host or platform.node()
    if name is None or not full:
        return shape
    spelled = sorted({full, full.partition(".")[0]}, key=len, reverse=True)
    # Device mapper doubles the hyphens of a volume group's name, which installers make from the host's.
    spelled += [text.replace("-", "--") for text in spelled if "-" in text]
    hosts = "|".join(map(re.escape, spelled))
    # What was replaced already stays: a name of 'lab-vm' on the host 'vm' must not become 'lab-lab-vm'.
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
    """What the machine is: processor, memory, kernel, virtualisation, Python, clocks.

    `name` stands for the host's name (`--machine NAME`); what else is stored goes through `replace_host`.
    Sizes in bytes, times in ns. Keys whose source is missing are left out.
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
        "operating_system": _operating_system(system),
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
    """The processor's frequency governor, 'performance' at best; several if cores differ; None if hidden."""
    cores = (system / "sys/devices/system/cpu").glob("cpu[0-9]*")
    found = {text_of(core / "cpufreq/scaling_governor") for core in cores}
    return ", ".join(sorted(text for text in found if text)) or None


def turbo(*, system: Path = SYSTEM) -> bool | None:
    """Whether the processor may run above its nominal frequency; None when the kernel does not say."""
    disabled = text_of(system / "sys/devices/system/cpu/intel_pstate/no_turbo")
    if disabled is not None:
        return disabled == "0"
    boost = text_of(system / "sys/devices/system/cpu/cpufreq/boost")
    return None if boost is None else boost == "1"


def clock_source(*, system: Path = SYSTEM) -> str | None:
    """What the kernel reads the time from: 'tsc' is quick, 'hpet' and 'acpi_pm' are slow."""
    return text_of(system / "sys/devices/system/clocksource/clocksource0/current_clocksource")


def timer_resolution_ns(calls: int = 2000) -> int | None:
    """The smallest step that the harness's clock was seen to make: its resolution, or a call's cost if that
    is more. None if it did not move."""
    ticks = [now_ns() for _ in range(calls)]
    return min((later - earlier for earlier, later in pairwise(ticks) if later > earlier), default=None)


def virtualisation(*, system: Path = SYSTEM) -> str | None:
    """The hypervisor's name, 'virtual machine' if it hides it, 'none' on bare metal, None if nothing tells.

    systemd-detect-virt is asked for the machine alone: without `--vm` it stops at a container. Elsewhere DMI
    names the hypervisor, and x86 processors have a flag for it.
    """
    told = _detect_virt("--vm") if system == SYSTEM else None
    if told and told != "none":
        return told
    flags = field_of(system / "proc/cpuinfo", "flags")
    has_flag = flags is not None and "hypervisor" in flags.split()
    product = text_of(system / "sys/class/dmi/id/product_name")
    hardware = f"{text_of(system / 'sys/class/dmi/id/sys_vendor') or ''} {product or ''}".lower()
    # The big clouds rent whole machines under the same vendor name; those have no hypervisor's flag.
    if has_flag or (flags is None and not hardware.endswith("metal")):
        for mark, hypervisor in _HYPERVISORS.items():
            if mark in hardware:
                return hypervisor
    if has_flag:
        return "virtual machine"
    return "none" if told == "none" or flags is not None else None


def container(*, system: Path = SYSTEM) -> str | None:
    """The kind of container that we run in; None outside of one (or when nothing tells)."""
    told = _detect_virt("--container") if system == SYSTEM else None
    if told:
        return None if told == "none" else told
    if (system / ".dockerenv").exists():
        return "docker"
    if (system / "run/.containerenv").exists():
        return "podman"
    groups = text_of(system / "proc/1/cgroup") or ""
    return next((kind for kind in _CONTAINERS if kind in groups), None)


def memory_limit_bytes(*, system: Path = SYSTEM) -> int | None:
    """The lowest memory limit of our control groups, where it is below the machine's memory; else None."""
    total = psutil.virtual_memory().total
    settings = _group_settings(system, "memory", "memory.max", "memory.limit_in_bytes")
    lowest = min((int(text) for text in settings if text.isdigit()), default=total)
    return lowest if lowest < total else None


def usable_memory_bytes() -> int:
    """What a worker may take at most: memory that is available, and what our control groups leave of it."""
    left = memory_left_bytes()
    return linux.available_bytes() if left is None else min(linux.available_bytes(), left)


def memory_left_bytes(*, system: Path = SYSTEM) -> int | None:
    """What the memory limits of our control groups leave: each limit less what its group uses, page cache not counted,
    because the kernel gives that up first. None without a limit."""
    left = []
    for folder, unified in _group_folders(system, "memory"):
        limit, used = (text_of(folder / name) or "" for name in _MEMORY_FILES[unified])
        if limit.isdigit() and used.isdigit() and int(limit) < psutil.virtual_memory().total:
            left.append(max(int(limit) - int(used) + _cache_bytes(folder), 0))
    return min(left, default=None)


_MEMORY_FILES = {
    True: ("memory.max", "memory.current"),
    False: ("memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def _cache_bytes(folder: Path) -> int:
    """Page cache of a control group, files below it included."""
    fields = dict(line.split() for line in (text_of(folder / "memory.stat") or "").splitlines() if line.count(" ") == 1)
    total = "total_" if "total_inactive_file" in fields else ""
    return sum(int(fields.get(f"{total}{name}", 0)) for name in ("active_file", "inactive_file"))


def cpu_limit_cores(*, system: Path = SYSTEM) -> float | None:
    """The lowest CPU quota of our control groups, in cores; None without one. Above it threads are frozen."""
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
    """A setting of our control group and of each one above it: of version 2 by `unified`, of version 1 by
    `legacy`, the names of its file."""
    for folder, is_unified in _group_folders(system, controller):
        file = unified if is_unified else legacy
        text = text_of(folder / file) if file else None
        if text:
            yield text


def _group_folders(system: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """The folder of our control group and of each one above it; and whether it is of version 2."""
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


def _operating_system(system: Path) -> str | None:
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
        # It exits with 1 when it answers 'none'.
        answer = subprocess.run(["systemd-detect-virt", which], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


# --- libraries and code -------------------------------------------------------------------------------------


def library_versions() -> dict[str, str]:
    """Version of Python and of every installed distribution or program that shapes a figure, sorted.

    Nothing is imported but the modules of the registered formats and storages, which load their libraries later.
    """
    names = set(HARNESS_LIBRARIES)
    programs: dict[str, str | None] = {}
    for _, engine in registries.all_engines():
        programs |= {program.name: program.version() for program in engine.programs}
        names.update((*engine.distributions, *engine.codec_distributions.values()))
        names.update(name for besides in engine.besides_for.values() for name in besides.distributions)
    versions = {"python": platform.python_version()}
    versions |= {name: version for name, version in programs.items() if version is not None}
    for name in sorted(names):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


_NEW_FOLDER = re.compile(r"\?\? [^/]+/\"?")
"""A line of `git status --porcelain` for an untracked folder at the top."""


def repository_state(root: Path) -> dict[str, Any]:
    """{'commit', 'dirty'} of the checkout whose top is `root`; empty when it is none, or git is missing.

    With uncommitted changes also 'changes', a digest of what they are. New folders beside the project's own count for
    none: nothing in them is imported, and results lie there.
    """
    top = _git(root, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != root.resolve():
        return {}
    commit = _git(root, "rev-parse", "HEAD")
    # Said here, because the user's own setting may list each file, or none.
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
    # Without optional locks, looking never gets in the way of a git command that the user runs meanwhile.
    command = ["git", "-C", str(root), "--no-optional-locks", *words]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


# --- the moment ---------------------------------------------------------------------------------------------


def load(*, system: Path = SYSTEM) -> dict[str, Any]:
    """How busy the machine is: load averages, and the threads that want to run now (we are one of them)."""
    one, five, fifteen = (round(value, 2) for value in os.getloadavg())
    facts: dict[str, Any] = {"one_minute": one, "five_minutes": five, "fifteen_minutes": fifteen}
    fields = (text_of(system / "proc/loadavg") or "").split()
    if len(fields) > 3:
        facts["runnable"] = int(fields[3].partition("/")[0])
    return facts


def disturbances(seconds: float = 0.5) -> list[dict[str, Any]]:
    """Other processes that use over 10 % of a core now: [{'name', 'cores'}], the busiest first.

    Watches for `seconds`. Names only: arguments may be private. Our own children are not counted.
    """
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
