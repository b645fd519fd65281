"""The judgements of `doctor`, one limit at a time. It leaves no files behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench_runner import registries
from bench_runner.clock import now_ns
from bench_runner.machine import doctor, environment, folders
from bench_runner.machine.doctor import Finding

GB = 10**9

PLANTED = {
    "governor": lambda **_: "powersave",
    "load": lambda **_: {"one_minute": 64.0 * (os.cpu_count() or 1)},
    "folder_facts": lambda path, **_: {"free_bytes": GB // 10, "filesystem": "tmpfs"},
    "cpu_limit_cores": lambda **_: 0.5,
    # This finding is only a hint, not a warning.
    "turbo": lambda **_: True,
}


# --- checks without measuring --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finding", "level", "words"),
    [
        (doctor._governor("performance"), "good", "performance"),
        (doctor._governor("powersave"), "bad", "powersave"),
        (doctor._governor("performance, powersave"), "bad", "powersave"),
        (doctor._turbo(False), "good", "off"),
        (doctor._turbo(True), "hint", "on"),
        (doctor._load({"one_minute": 0.19}, 2), "good", "0.19"),
        (doctor._load({"one_minute": 0.20}, 2), "hint", "2 cores"),
        (doctor._load({"one_minute": 1.00}, 2), "bad", "1.00"),
        (doctor._load({"one_minute": 1.00}, 64), "good", "64 cores"),
        (doctor._memory(4 * GB), "good", "4.0 GB"),
        (doctor._memory(4 * GB - 1), "hint", "4.0 GB"),
        (doctor._memory(GB - 1), "bad", "1.0 GB"),
        (doctor._swap(0), "good", "not in use"),
        (doctor._swap(3 * GB), "hint", "3.0 GB"),
        (doctor._memory_limit(2 * GB, 16 * GB), "hint", "2.0 GB for this container or session, of 16.0 GB"),
        (doctor._cpu_limit(0.5, 2), "bad", "0.5 of 2 cores"),
        (doctor._disk(20 * GB, Path("/x")), "good", "20.0 GB free in /x"),
        (doctor._disk(20 * GB - 1, Path("/x")), "hint", "/x"),
        (doctor._disk(2 * GB - 1, Path("/x")), "bad", "/x"),
        (doctor._file_system("ext4", Path("/x")), "good", "ext4 under /x"),
        (doctor._journal(False), "hint", "no journal"),
        (doctor._file_system("tmpfs", Path("/x")), "bad", "in memory"),
        (doctor._file_system("nfs4", Path("/x")), "bad", "another machine"),
        (doctor._file_system("zfs", Path("/x")), "hint", "--cache cold is refused"),
        (doctor._file_system("overlay", Path("/x")), "hint", "--cache cold is refused"),
        (doctor._clock_source("hpet"), "hint", "hpet"),
    ],
)
def test_each_limit(finding, level, words):
    assert finding.level == level
    assert words in finding.measured
    # A finding has a remedy unless its level is good.
    assert bool(finding.remedy) == (level != "good")


@pytest.mark.parametrize(
    "finding",
    [
        doctor._governor(None),
        doctor._turbo(None),
        doctor._memory_limit(None, GB),
        doctor._cpu_limit(None, 2),
        doctor._cpu_limit(2.0, 2),
        doctor._file_system(None, Path("/x")),
        doctor._journal(None),
        doctor._journal(True),
        doctor._clock_source(None),
        doctor._clock_source("tsc"),
    ],
)
def test_what_the_kernel_does_not_tell_is_left_out(finding):
    assert finding is None


def test_quick_warnings_are_the_bad_findings_with_their_remedies(monkeypatch, tmp_path):
    for name, fake in PLANTED.items():
        monkeypatch.setattr(folders if hasattr(folders, name) else environment, name, fake)
    warnings = doctor.quick_warnings(tmp_path)
    assert [row["text"].partition(":")[0] for row in warnings] == [
        "CPU governor",
        "load",
        "CPU limit",
        "disk space",
        "file system",
    ]
    assert all(set(row) == {"text", "remedy"} and row["remedy"] for row in warnings)
    assert json.loads(json.dumps(warnings)) == warnings


def test_a_resumed_run_does_not_warn_of_its_own_load(monkeypatch, tmp_path):
    busy = {"one_minute": 64.0 * (os.cpu_count() or 1), "five_minutes": 1.0, "fifteen_minutes": 1.0, "runnable": 64}
    monkeypatch.setattr(doctor.environment, "load", lambda: busy)
    assert any(warning["text"].startswith("load:") for warning in doctor.quick_warnings(tmp_path))
    assert not any(warning["text"].startswith("load:") for warning in doctor.quick_warnings(tmp_path, load=False))


def test_quick_warnings_measure_nothing(monkeypatch, tmp_path):
    def measuring(*_, **__):
        raise AssertionError("only looking is quick")

    for name in ("_busy", "cpu_speed", "_fresh_memory", "_first_read", "_timer", "_timed"):
        monkeypatch.setattr(doctor, name, measuring)
    monkeypatch.setattr(environment, "disturbances", measuring)
    monkeypatch.setattr(subprocess, "run", measuring)
    taken = []
    for _ in range(3):
        started = now_ns()
        doctor.quick_warnings(tmp_path)
        taken.append(now_ns() - started)
    assert min(taken) < 50e6


# --- checks with measuring -----------------------------------------------------------------------------------


def clock_of(monkeypatch, ticks):
    """Replace the doctor's clock by one that returns `ticks`, one after the other."""
    ticks = iter(ticks)
    monkeypatch.setattr(doctor, "now_ns", lambda: next(ticks))


def stretches(*lengths_ns):
    """Return clock readings before and after pieces of work of these durations."""
    for length in lengths_ns:
        yield 0
        yield length


@pytest.mark.parametrize(
    ("slow", "level"), [(1_000_000, "good"), (1_049_000, "good"), (1_052_000, "hint"), (1_170_000, "bad")]
)
def test_spread_of_one_computation(monkeypatch, slow, level):
    monkeypatch.setattr(doctor, "_compute", lambda: None)
    clock_of(monkeypatch, stretches(*[1_000_000] * 30, *[slow] * 20))
    assert doctor.cpu_speed(50).level == level


def test_some_interruptions_are_not_unsteadiness(monkeypatch):
    monkeypatch.setattr(doctor, "_compute", lambda: None)
    clock_of(monkeypatch, stretches(*[1_000_000] * 40, *[50_000_000] * 10))
    assert doctor.cpu_speed(50).level == "good"


def test_time_that_the_host_took_is_named(monkeypatch):
    class Times:
        def __init__(self, steal):
            self.steal = steal

    times = iter([Times(1.0), Times(1.01)])
    monkeypatch.setattr(doctor.psutil, "cpu_times", lambda: next(times))
    monkeypatch.setattr(doctor, "_compute", lambda: None)
    clock_of(monkeypatch, stretches(*[2_000_000] * 50))
    assert "10 % of a core to other guests" in doctor.cpu_speed(50).measured


@pytest.mark.parametrize(("first", "level", "times"), [(130, "good", "1.3 times"), (1200, "hint", "12.0 times")])
def test_memory_that_the_host_has_not_backed(monkeypatch, first, level, times):
    monkeypatch.setattr(doctor, "BLOCK_BYTES", 1 << 20)
    clock_of(monkeypatch, stretches(first, 100))
    finding = doctor._fresh_memory("kvm")
    assert (finding.level, times in finding.measured) == (level, True)
    assert ("the host provides memory" in finding.measured) == (level != "good")


def test_slow_memory_of_a_real_machine_is_not_blamed_on_a_host(monkeypatch):
    monkeypatch.setattr(doctor, "BLOCK_BYTES", 1 << 20)
    clock_of(monkeypatch, stretches(1200, 100))
    assert "host" not in doctor._fresh_memory("none").measured


def test_a_virtual_machine_is_named():
    assert list(doctor._virtual_machine("none")) == list(doctor._virtual_machine(None)) == []
    (finding,) = doctor._virtual_machine("kvm")
    assert (finding.level, "kvm" in finding.measured, "cold (guest)" in finding.remedy) == ("hint", True, True)


def test_busy_processes(monkeypatch):
    def busy(*cores):
        rows = [{"name": f"job{number}", "cores": share} for number, share in enumerate(cores)]
        monkeypatch.setattr(environment, "disturbances", lambda: rows)
        return doctor._busy()

    assert busy().level == "good"
    assert busy(0.2).level == "hint"
    assert busy(0.3, 0.3).level == "bad"
    assert busy(2, 1, 1, 1, 1, 1).measured == "cores in use now: job0 2.0, job1 1.0, job2 1.0, job3 1.0 and 2 more"


def test_the_first_read_in_a_fresh_process_is_slower(tmp_path):
    finding = doctor._first_read(tmp_path)
    assert finding.level == "good"
    assert float(finding.measured.rpartition(": ")[2].partition(" times")[0]) >= 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_file(tmp_path):
    finding = doctor._first_read(tmp_path / "gone")
    assert (finding.level, finding.what) == ("bad", "working folder")
    assert "No such file" in finding.measured


def test_a_fresh_process_that_fails(monkeypatch, tmp_path):
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho 'ImportError: no pyarrow' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))
    finding = doctor._first_read(tmp_path)
    assert finding.level == "bad"
    assert "ImportError: no pyarrow" in finding.measured


def test_missing_libraries_come_with_the_command_that_installs_them(monkeypatch):
    class Engine:
        def __init__(self, name, *distributions):
            self.format, self.distributions = name, distributions

    class Formats(dict):
        noun = "format"

        def engines(self, name):
            return self[name]

        def availability(self, engine):
            from adapters.registry import Availability

            missing = tuple(name for name in engine.distributions if name.startswith("no-"))
            return Availability({}, missing, f"pip install -e '.[{engine.format}]'")

    formats = Formats(one=[Engine("one", "numpy")], two=[Engine("two", "no-two"), Engine("two", "no-two")])
    monkeypatch.setattr(registries, "REGISTRIES", {"tables": formats})
    (finding,) = doctor._missing_libraries()
    assert (finding.level, finding.remedy) == ("hint", "pip install -e '.[two]'")
    assert "two (needs no-two)" in finding.measured
    assert finding.measured.count("no-two") == 1
    del formats["two"]
    (finding,) = doctor._missing_libraries()
    assert finding.level == "good"


# --- everything ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_whole_examination_leaves_nothing_behind(tmp_path):
    started = now_ns()
    findings = doctor.examine(tmp_path / "results" / "not yet there")
    assert now_ns() - started < 30e9
    assert list(tmp_path.iterdir()) == []
    assert {finding.level for finding in findings} <= {"good", "hint", "bad"}
    assert {
        "other processes",
        "load",
        "memory",
        "swap",
        "disk space",
        "CPU speed",
        "fresh memory",
        "first read",
        "clock",
        "libraries",
    } <= {finding.what for finding in findings}


def test_verdicts():
    findings = [Finding("good", "swap", "not in use"), Finding("hint", "libraries", "not installed: xml", "install it")]
    assert doctor.verdict(findings).startswith("Fit for measuring; see the 1 hint above")
    assert doctor.verdict(findings[:1]).startswith("Fit for measuring: ")
