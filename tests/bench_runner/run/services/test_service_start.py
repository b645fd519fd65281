"""Services start in order, end with the run however it ends, and report why they did not start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adapters.services import Service
from bench_runner.errors import RunError
from bench_runner.run.services import calibration, service_start
from bench_runner.run.services.calibration import Calibration, checked
from bench_runner.run.services.service_start import ServiceFailed, running

ECHO = ("-m", "tests.bench_runner.run.services.echo_service")


def service(name: str, *words: str, how: str = "fine") -> Service:
    return Service(name, (*ECHO, how, *words))


def ask(address: str, words: bytes) -> bytes:
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(words)
        return line.recv(1 << 16)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(process: int) -> None:
    until = time.monotonic() + 20
    while is_alive(process):
        assert time.monotonic() < until, "it is still there"
        time.sleep(0.02)


@pytest.mark.parametrize("network", ["loopback", "100mbit"])
def test_each_knows_those_before_it_and_the_token(tmp_path: Path, network: str) -> None:
    services = [service("catalog", "[{advertised}]"), service("node", "{catalog}", "[{advertised}]")]
    with running(services, network, tmp_path / "services") as found:
        addresses = found.served.addresses
        process, token, words = json.loads(ask(addresses["node"], b"who"))
        assert token == found.served.token
        assert len(token) == 32
        told = f"[{addresses['node']}]" if network != "loopback" else "[]"
        assert words == [addresses["catalog"], told], "what others reach it by, where that is not where it listens"
        assert process in found.process_ids
        assert (found.counters is not None) == (network != "loopback")
        found.check()
        processes = found.process_ids
    assert not any(map(is_alive, processes))
    assert not (tmp_path / "services").exists()


def test_one_that_does_not_start_is_reported_with_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(
            ServiceFailed, match=r"the service node did not start \(exit code 1\); it printed: the disk is on"
        ),
        running([service("node", how="fails")], "loopback", tmp_path / "services"),
    ):
        pytest.fail("it has started")
    assert not (tmp_path / "services").exists()


def test_one_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_start, "START_LIMIT_S", 1.0)
    reason = r"the service node does not answer after 1 s"
    silent = service("node", how="silent")
    with pytest.raises(ServiceFailed, match=reason), running([silent], "loopback", tmp_path / "services"):
        pytest.fail("it has answered")


def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_start, "STOP_LIMIT_S", 0.2)
    with running([service("node", how="stubborn")], "loopback", tmp_path / "services") as found:
        (process,) = found.process_ids
    assert not is_alive(process)


def test_one_that_ends_meanwhile_is_noticed(tmp_path: Path) -> None:
    with running([service("node")], "loopback", tmp_path / "services") as found:
        assert ask(found.served.addresses["node"], b"end") == b""
        wait_until_gone(found.process_ids[0])
        with pytest.raises(ServiceFailed, match=r"the service node ended while it was needed \(exit code 3\)"):
            found.check()


def test_they_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    """After kill -9 the run cannot execute code, so the kernel ends the services."""
    code = (
        "import sys, time; from pathlib import Path\n"
        "from bench_runner.run.services.service_start import running\n"
        "from tests.bench_runner.run.services.test_service_start import service\n"
        "with running([service('node')], '50mbit', Path(sys.argv[1])) as found:\n"
        "    print(*found.process_ids, flush=True); time.sleep(60)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "services")], stdout=subprocess.PIPE)
    assert run.stdout is not None
    process = int(run.stdout.readline())
    children = [int(name) for name in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()]
    assert len(children) == 2, "the service and the line"
    assert process in children
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    for child in children:
        wait_until_gone(child)


def test_a_line_that_is_off_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([Calibration(1e9, 0.8e9, 1, 1), Calibration(1e9, 0.94e9, 1, 1), Calibration(1e9, 0.96e9, 1, 1)])
    monkeypatch.setattr(calibration, "calibrate", lambda *_: next(found))
    with pytest.raises(
        RunError, match=r"networks='1000mbit' is not possible: the proxy transfers 940 Mbit/s, not 1,000"
    ):
        checked("1000mbit", tmp_path)
    assert checked("1000mbit", tmp_path).found_bits_per_s == 0.96e9
