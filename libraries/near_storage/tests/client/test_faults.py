"""Whatever a node does, the client returns a complete and correct answer or a clear error."""

import threading
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight
import pytest

from libraries.near_storage.client import streams
from libraries.near_storage.errors import BusyError, DamagedError, NearStorageError, UnavailableError
from libraries.near_storage.serving import catalog_server
from libraries.near_storage.tests.serving.cluster import (
    Cluster,
    Fault,
    doubling,
    ending_early,
    failing,
    flipping,
    hanging,
    losing,
    nulling,
    slow,
)

WAYS = ("v1", "v2", "all")
SQL = "SELECT name, key FROM t WHERE share < 60"

FAULTS: dict[str, Fault] = {
    "ends before the first batch": ending_early(0),
    "ends early": ending_early(3),
    "fails at once": failing(0, ValueError("/srv/secret")),
    "fails later": failing(2, ValueError("/srv/secret")),
    "is unavailable": failing(2, flight.FlightUnavailableError("gone")),
    "loses the first batch": losing(0),
    "loses a batch": losing(2),
    "sends one twice": doubling(1),
    "flips a bit of the first batch": flipping(0),
    "flips a bit": flipping(3),
    "sends nulls in the first batch": nulling(0),
    "is damaged": failing(1, DamagedError("a chunk")),
}
FATAL = (
    *("ends before the first batch", "fails at once", "flips a bit of the first batch"),
    "sends nulls in the first batch",
)
"""Faults with which a node delivers nothing."""


def expected(table: pa.Table) -> pa.Table:
    return table.filter(pc.less(table["share"], 60)).select(["name", "key"])


def asked(table: pa.Table, way: str) -> tuple[str, pa.Table]:
    """Return a query and its answer. For whole files, query all rows: other queries may not read the changed bit."""
    return ("SELECT * FROM t", table) if way == "all" else (SQL, expected(table))


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_wrong(served: Cluster, table: pa.Table, way: str):
    answer = served.client().answer(SQL, way)
    assert answer.table.equals(expected(table))
    assert (answer.plan.way, answer.received.resumed) == (way, 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_node_is_broken(served: Cluster, table: pa.Table, way: str, fault: str):
    served.nodes[1].fault = FAULTS[fault]
    sql, right = asked(table, way)
    answer = served.client().answer(sql, way)
    assert answer.table.equals(right)
    assert answer.received.resumed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS)
def test_both_nodes_are_broken(served: Cluster, table: pa.Table, way: str, fault: str):
    for node in served.nodes:
        node.fault = FAULTS[fault]
    client = served.client()
    sql, right = asked(table, way)
    if fault in FATAL:
        with pytest.raises(NearStorageError) as refused:
            client.answer(sql, way)
        told = str(refused.value)
    else:
        try:
            # Each attempt may deliver some rows before it breaks.
            assert client.query(sql, way).equals(right)
            told = ""
        except NearStorageError as error:
            told = str(error)
    assert "secret" not in told
    assert "Traceback" not in told


@pytest.mark.parametrize("way", WAYS)
def test_rows_of_nodes_that_break_again_and_again(served: Cluster, table: pa.Table, way: str):
    """Every attempt breaks after a few more rows: the answer is assembled from many attempts."""
    for node in served.nodes:
        node.fault = ending_early({"v1": 2, "v2": 5, "all": 4}[way])
    answer = served.client().answer("SELECT * FROM t", way)
    assert answer.table.equals(table)
    assert answer.received.resumed > 3


@pytest.mark.parametrize("way", WAYS)
def test_a_node_that_hangs(served: Cluster, table: pa.Table, way: str):
    until = threading.Event()
    served.nodes[0].fault = hanging(2, until)
    answer = served.client(idle_s=0.4).answer(SQL, way)
    until.set()
    assert answer.table.equals(expected(table))
    assert any("0.4 s" in failure for failure in answer.received.failures)


def test_nodes_that_hang_are_an_error(served: Cluster):
    until = threading.Event()
    for node in served.nodes:
        node.fault = hanging(0, until)
    with pytest.raises(UnavailableError, match=r"nothing arrived for \d"):
        served.client(idle_s=0.3).query(SQL)
    until.set()


@pytest.mark.parametrize("way", WAYS)
def test_a_slow_node_is_waited_for(served: Cluster, table: pa.Table, way: str):
    served.nodes[0].fault = slow(0.02)
    answer = served.client(idle_s=5).answer(SQL, way)
    assert answer.table.equals(expected(table))
    assert not answer.received.resumed


def test_a_ticket_expires_while_a_stream_is_read(served: Cluster, table: pa.Table, monkeypatch: pytest.MonkeyPatch):
    """The rest is requested again, from the same version."""
    monkeypatch.setattr(catalog_server, "LIFETIME_S", 0.0)
    client = served.client()
    with pytest.raises(NearStorageError, match="expired"):
        client.query(SQL)
    monkeypatch.setattr(catalog_server, "LIFETIME_S", 60.0)
    batches = client.batches("SELECT * FROM t", "v1")
    rows = [next(batches)]
    for node in served.nodes:
        node.fault = failing(1, flight.FlightUnauthenticatedError("ticket: expired"))
    rows += list(batches)
    assert pa.Table.from_batches(rows).equals(table)


def test_a_stream_is_cut_and_taken_up(served: Cluster, table: pa.Table, monkeypatch: pytest.MonkeyPatch):
    """A call has a time limit; a slower reader loses no rows."""
    monkeypatch.setattr(streams, "STREAM_S", 0.3)
    for node in served.nodes:
        node.fault = slow(0.02)
    answer = served.client().answer("SELECT * FROM t", "v1")
    assert answer.table.equals(table)
    assert answer.received.resumed


@pytest.mark.parametrize("way", WAYS)
def test_busy_nodes_are_come_to_again(served: Cluster, table: pa.Table, way: str):
    """After that, streams are read one at a time, which changes no answer and does not count as a failure."""
    times = iter(range(1_000))

    def busy(batches):
        if next(times) < 6:
            raise BusyError("retry later")
        yield from batches

    for node in served.nodes:
        node.fault = busy
    answer = served.client().answer(SQL, way)
    assert answer.table.equals(expected(table))
    assert 0 < answer.received.resumed <= 6
    assert all("retry later" in failure for failure in answer.received.failures)
    times = iter(range(1_000))
    sums = served.client().query("SELECT name, sum(key) AS s FROM t GROUP BY name", way)
    assert pc.sum(sums["s"]).as_py() == pc.sum(table["key"]).as_py()
    served.nodes[0].fault = failing(0, BusyError("retry later"))
    impatient = served.client(busy_s=0.1)
    with pytest.raises(BusyError, match="retry later"):
        impatient.query(SQL, way)


def test_enough_rows_stop_the_nodes(served: Cluster, table: pa.Table):
    def slowly(batches):
        for batch in batches:
            yield batch
            time.sleep(0.2)

    for node in served.nodes:
        node.closed_early.clear()
        node.fault = slowly
    batches = served.client().batches("SELECT * FROM t", "v2")
    next(batches)
    batches.close()
    for node in served.nodes:
        assert node.closed_early.wait(5)
        node.fault = None
    answer = served.client().answer("SELECT key FROM t WHERE name LIKE 'name 1%' LIMIT 3")
    assert answer.table["key"].to_pylist() == [1, 10, 11]
    assert answer.received.batch_bytes < table.nbytes / 20


@pytest.mark.parametrize("fault", FAULTS)
def test_aggregates_of_a_broken_node(served: Cluster, table: pa.Table, fault: str):
    """A part that arrives twice or not at all would give a wrong sum without a wrong row."""
    served.nodes[1].fault = FAULTS[fault]
    answer = served.client().answer("SELECT count(*) AS n, sum(key) AS s FROM t")
    assert answer.table.to_pylist() == [{"n": len(table), "s": pc.sum(table["key"]).as_py()}]
