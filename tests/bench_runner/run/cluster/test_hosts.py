"""Connecting to a cluster: what cannot be used is refused before anything is measured."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from bench_runner.clock import now_ns, pause
from bench_runner.errors import RunError
from bench_runner.request import Request
from bench_runner.run.cluster import hosts, whole
from bench_runner.run.cluster.hosts import FORMS, Cluster, SchedulerLost, connected, refuse_differences
from bench_runner.run.cluster.messages import HostTask
from bench_runner.run.cluster.workers import SshHost, Worker, local_worker, ssh_hosts, ssh_worker
from bench_runner.worker.messages import decode, encode
from tests.bench_runner.run.cluster.simulated import TASK, group, host

distributed = pytest.importorskip("distributed")


@pytest.fixture
def scheduler() -> Iterator[str]:
    """Return the address of a scheduler without workers."""
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize(
    "where", ["", "local", "local:0", "local:-1", "local:x", "ssh:", "tcp://h", "http://h:1", "h:1"]
)
def test_an_unknown_form_is_refused_with_the_known_ones(where: str) -> None:
    with pytest.raises(RunError) as error, connected(where, insecure=False):
        pass
    assert (error.value.parameter, error.value.given, error.value.allowed) == ("cluster", where, FORMS)


@pytest.mark.parametrize("where", ["tcp://10.1.2.3:8786", "tcp://host:8786"])
def test_a_network_without_tls_is_refused(where: str) -> None:
    with pytest.raises(RunError, match="not encrypted") as error, connected(where, insecure=False):
        pass
    assert "`insecure`" in error.value.next_step


def test_no_scheduler_is_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "CONNECT_S", 1.0)
    with (
        pytest.raises(RunError, match="No dask scheduler answers") as error,
        connected("tcp://[::1]:1", insecure=False),
    ):
        pass
    assert len(str(error.value).splitlines()) == 2


def test_a_scheduler_without_workers_is_two_lines(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "CONNECT_S", 1.0)
    with pytest.raises(RunError, match="has no workers") as error, connected(scheduler, insecure=False):
        pass
    assert f"dask worker {scheduler}" in error.value.next_step


def test_a_worker_without_format_bench_is_two_lines(scheduler: str, tmp_path: Path) -> None:
    """The worker runs in the same environment, but cannot import the package."""
    blocked = tmp_path / "bench_runner"
    blocked.mkdir()
    (blocked / "__init__.py").write_text("raise ImportError('no bench_runner here')")
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny", "--no-dashboard"]
    command += ["--local-directory", str(tmp_path)]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            with connected(scheduler, insecure=False) as cluster, pytest.raises(RunError) as error:
                cluster.hosts()
        finally:
            process.terminate()
    assert "cannot load Format Bench (the worker has ended)" in str(error.value)
    assert len(str(error.value).splitlines()) == 2


def test_a_worker_that_ends_at_once_is_reported_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command_of(host: SshHost, scheduler: str) -> Worker:
        command = ["/bin/sh", "-c", "echo first; echo no such host >&2; exit 255"]
        return Worker(host.destination, lambda: command, "ssh lab-1")

    monkeypatch.setattr(hosts, "ssh_worker", command_of)
    (tmp_path / "hosts").write_text("lab-1\n")
    with pytest.raises(RunError) as error, connected(f"ssh:{tmp_path / 'hosts'}", insecure=False):
        pass
    assert "lab-1: the worker has ended (no such host)" in str(error.value)


def test_the_file_of_hosts_may_have_comments_and_pythons(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# lab\nme@one\n\ntwo '/opt/my env/bin/python'  # new\n")
    assert ssh_hosts(tmp_path / "hosts") == [
        SshHost("me@one", sys.executable),
        SshHost("two", "/opt/my env/bin/python"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "hosts lists no host."),
        ("# none\n", "hosts lists no host."),
        ("one\na b c\n", "hosts, line 2: at most a host and a path of Python are allowed (got 3 words)."),
        ("\n-oProxyCommand=evil\n", "hosts, line 2: a host must not begin with '-' (got '-oProxyCommand=evil')."),
        ("one 'unclosed\n", "cannot be read: No closing quotation."),
    ],
)
def test_a_wrong_file_of_hosts_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "hosts").write_text(text)
    with pytest.raises(RunError) as error:
        ssh_hosts(tmp_path / "hosts")
    assert error.value.parameter == "cluster"
    assert words in str(error.value)


def test_ssh_opens_ports_on_loopback_only() -> None:
    worker = ssh_worker(SshHost("me@one", "/opt/my env/bin/python"), "tcp://127.0.0.1:4000")
    words = worker._command()
    forwarded = {words[place + 1] for place, word in enumerate(words) if word in ("-R", "-L")}
    assert len(forwarded) == 2
    assert all(each.startswith("127.0.0.1:") and each.count("127.0.0.1") == 2 for each in forwarded)
    assert "'/opt/my env/bin/python' -m distributed.cli.dask_worker tcp://127.0.0.1:" in words[-1]
    assert "--listen-address tcp://127.0.0.1:" in words[-1]


def test_a_worker_that_ends_is_started_again(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_runner.run.cluster.workers.RESTART_S", 0.0)
    worker = local_worker("one", scheduler)
    try:
        worker.keep_up()
        first = worker._process
        assert first is not None
        worker.keep_up()
        assert worker._process is first
        first.kill()
        until = now_ns() + 10**10
        while not worker.has_ended() and now_ns() < until:
            pause(0.01)
        worker.keep_up()
        assert worker._process is not first
    finally:
        worker.close()


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ({"python": "3.12.1"}, "python 3.12.1 (here 3)"),
        ({}, "python absent (here 3)"),
        ({"python": "3", "new": "1"}, "new 1 (here absent)"),
    ],
)
def test_other_versions_are_refused_with_the_list(theirs: dict[str, str], words: str) -> None:
    other = host("lab-2")
    other.facts = msgspec.structs.replace(other.facts, versions=theirs)
    with pytest.raises(RunError) as error:
        refuse_differences({"python": "3"}, [host("lab-1"), other])
    assert str(error.value).startswith(f"lab-2 differs from this machine: {words}")


def test_a_label_is_a_plain_folder_name(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMAT_BENCH_HOST", "../../etc/a b")
    with connected("local:2", insecure=False) as cluster:
        (found,) = cluster.hosts()
    assert found.label == "------etc-a-b"
    assert len(found.addresses) == 2


class ClosedClient:
    """What dask's client becomes when it has given up its scheduler."""

    def scheduler_info(self, n_workers: int) -> dict[str, object]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


def test_a_client_that_has_given_up_its_scheduler_is_noticed_and_connects_again() -> None:
    def connect() -> ClosedClient:
        if not attempts:
            raise OSError("refused")
        return attempts.pop()

    attempts = [ClosedClient()]
    cluster = Cluster(connect, lambda: None)
    with pytest.raises(SchedulerLost, match="closed"):
        cluster.call(host("a"), len)
    with pytest.raises(SchedulerLost, match="refused"):
        cluster.reconnect()


def test_tls_without_certificates_is_two_lines() -> None:
    with pytest.raises(RunError, match="needs certificates") as error, connected("tls://127.0.0.1:1", insecure=False):
        pass
    assert "distributed.comm.tls.ca-file" in error.value.next_step


class CountingClient(ClosedClient):
    """Answers for one worker, and counts how often its facts are asked for."""

    def __init__(self, transfer_s: float = 0.0) -> None:
        self.asked = self.transfers = 0
        self.there = ["tcp://1"]
        self.transfer_s = transfer_s
        self.loop = SimpleNamespace(asyncio_loop=asyncio.new_event_loop())
        threading.Thread(target=self.loop.asyncio_loop.run_forever, daemon=True).start()

    def scheduler_info(self, n_workers: int) -> dict[str, object]:
        return {"workers": dict.fromkeys(self.there)}

    def submit(self, *given: object, **options: object) -> Future[bytes]:
        self.asked += 1
        answer: Future[bytes] = Future()
        answer.set_result(encode(host("lab").facts))
        return answer

    async def gather(self, futures: list[Future[bytes]], *, asynchronous: bool) -> list[bytes]:
        assert asynchronous
        self.transfers += 1
        await asyncio.sleep(self.transfer_s)
        return [future.result() for future in futures]


def test_an_answer_that_takes_long_is_requested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "LOOK_S", 0.02)
    client = CountingClient(transfer_s=0.3)
    cluster = Cluster(lambda: client, lambda: None)
    cluster.look_for(host("other"))
    assert (client.asked, client.transfers) == (1, 1)


def test_a_host_that_gets_a_large_file_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "LOOK_S", 0.02)
    monkeypatch.setattr(hosts, "SLOWEST_BYTES_PER_S", 1000)
    cluster = Cluster(lambda: CountingClient(transfer_s=0.4), lambda: None)
    with pytest.raises(hosts.SlowHost):
        cluster._answer("tcp://1", len, b"", limit_s=0.1)
    assert cluster._answer("tcp://1", len, bytes(2000), limit_s=0.1)


def test_a_worker_is_asked_for_its_facts_once_because_its_host_may_be_measuring() -> None:
    client = CountingClient()
    cluster = Cluster(lambda: client, lambda: None)
    lost = host("other")
    for _ in range(3):
        lost.addresses = []
        cluster.look_for(lost)
    assert (client.asked, lost.addresses) == (1, [])
    client.there = []
    cluster.look_for(lost)
    client.there = ["tcp://1"]
    cluster.look_for(lost)
    assert client.asked == 2


def test_a_task_with_paths_arrives_as_it_was_sent() -> None:
    request = Request(data=Path("/data/my.csv"), work_dirs=("/mnt/disk",))
    task = msgspec.structs.replace(TASK, request=request, groups=(group(1),))
    assert decode(encode(task), HostTask) == task


def test_paths_of_a_request_do_not_depend_on_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = whole._with_absolute_paths(Request(data=Path("my.csv"), work_dirs=("default", "disk")))
    assert (found.data, found.work_dirs) == (tmp_path / "my.csv", ("default", str(tmp_path / "disk")))
    assert whole._with_absolute_paths(Request()) == Request()
