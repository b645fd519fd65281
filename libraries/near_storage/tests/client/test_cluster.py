"""Endpoints for the workers of a cluster, here a local dask cluster with a worker in a separate process."""

import pickle

import dask
import dask.dataframe as dd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from distributed import Client as DaskClient
from distributed import LocalCluster

from libraries.near_storage.client import cluster as workers
from libraries.near_storage.client.cluster import endpoints, read_arrow, read_endpoint
from libraries.near_storage.errors import RequestError, StaleError
from libraries.near_storage.tests.client.conftest import small_table
from libraries.near_storage.tests.serving.cluster import Cluster, cluster

WHERE = pc.field("key").isin(range(100, 1_900))


@pytest.fixture(autouse=True)
def token(served: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(workers.TOKEN_VARIABLE, served.token)


def test_an_endpoint_a_partition(served: Cluster, table: pa.Table):
    found = endpoints(served.uri, "t", ["key", "name"], WHERE)
    assert [endpoint.position for endpoint in found] == [0, 1, 2, 3]
    rows = pa.concat_tables(read_arrow(pickle.loads(pickle.dumps(endpoint))) for endpoint in found)
    assert rows.equals(table.filter(WHERE).select(["key", "name"]))
    assert read_arrow(found[1], ["share"]).column_names == ["share"]


def test_where_nothing_matches_the_columns_are_known_still(served: Cluster, table: pa.Table):
    """The result must not depend on whether pruning finds that nothing matches, because dask rejects an empty list."""
    found = endpoints(served.uri, "t", ["key", "name"], pc.field("key") > 10**9)
    assert len(found) == 1
    assert read_arrow(found[0]).equals(table.select(["key", "name"]).slice(0, 0))
    frame = dd.from_map(read_endpoint, found).compute(scheduler="synchronous")
    assert (list(frame.columns), len(frame)) == (["key", "name"], 0)
    served.client().put("none", table.slice(0, 0))
    assert read_arrow(endpoints(served.uri, "none")[0]).equals(table.slice(0, 0))


def test_no_secret_travels(served: Cluster):
    assert served.token.encode() not in pickle.dumps(endpoints(served.uri, "t"))


def test_a_filter_that_nodes_do_not_understand(served: Cluster):
    with pytest.raises(RequestError, match="in the tasks"):
        endpoints(served.uri, "t", where=pc.utf8_length(pc.field("name")) == 6)


def test_no_token(served: Cluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(workers.TOKEN_VARIABLE)
    with pytest.raises(RequestError, match="NEAR_STORAGE_TOKEN"):
        endpoints(served.uri, "t")


@pytest.mark.slow
def test_a_worker_of_dask(served: Cluster, table: pa.Table):
    with (
        dask.config.set({"dataframe.convert-string": True, "distributed.worker.multiprocessing-method": "spawn"}),
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as local,
        DaskClient(local) as connected,
    ):
        frame = dd.from_map(read_endpoint, endpoints(served.uri, "t", where=WHERE))
        assert frame.npartitions == 4
        found = frame[["key", "name"]].compute()
        assert len(connected.scheduler_info()["workers"]) == 1
        assert int(frame["key"].sum().compute()) == sum(range(100, 1_900))
    expected = table.filter(WHERE).select(["key", "name"]).to_pandas()
    assert found["key"].tolist() == expected["key"].tolist()
    assert found["name"].tolist() == expected["name"].tolist()


def test_a_version_that_is_gone(tmp_path, monkeypatch: pytest.MonkeyPatch):
    with cluster(tmp_path, nodes=1, replicas=1, grace_s=0.0) as other:
        monkeypatch.setenv(workers.TOKEN_VARIABLE, other.token)
        client = other.client()
        client.put("t", small_table(10))
        (endpoint,) = endpoints(other.uri, "t")
        client.put("t", small_table(20))
        with pytest.raises(StaleError, match=r"Version \d+ of table t"):
            read_endpoint(endpoint)
