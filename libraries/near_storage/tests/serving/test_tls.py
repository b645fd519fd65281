"""Everything over TLS: clients, nodes among themselves, and no untrusted peers."""

from pathlib import Path

import pyarrow as pa
import pytest
import trustme

from libraries.near_storage.client.connection import connect
from libraries.near_storage.errors import NearStorageError, RequestError, UnavailableError
from libraries.near_storage.serving import security
from libraries.near_storage.serving.catalog_server import CatalogServer
from libraries.near_storage.serving.node import StorageNode
from libraries.near_storage.serving.security import Tls, read_tls
from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.partitions import PartitionStore
from libraries.near_storage.tests.storing.files import describe_here


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def of_server(authority: trustme.CA, folder: Path) -> Tls:
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "certificate.pem").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    return read_tls(folder / "certificate.pem", folder / "key.pem")


def test_a_cluster_with_tls(authority: trustme.CA, tmp_path: Path):
    tls, roots = of_server(authority, tmp_path), authority.cert_pem.bytes()
    secret, token = security.new_secret(), security.new_token()
    catalog = CatalogServer(
        Catalog(tmp_path / "catalog"), secret, [security.hash_token(token)], "0.0.0.0", 0, tls, roots, orphan_age_s=0
    )
    uri = f"grpc+tls://127.0.0.1:{catalog.port}"
    stores = {name: PartitionStore(tmp_path / name, describe=describe_here) for name in ("n0", "n1")}
    nodes = [StorageNode(store, name, secret, tls=tls, tls_roots=roots) for name, store in stores.items()]
    for node in nodes:
        node.register(uri)
    table = pa.table({"a": range(500)})
    try:
        with connect(uri, token, roots, idle_s=5) as client:
            client.put("t", table, 100)
            for way in ("v1", "v2", "all"):
                assert client.query("SELECT * FROM t WHERE a >= 0", way).equals(table)
            next((tmp_path / "n0").glob("*.parquet")).unlink()
            assert client.repair().copied == 1
        with pytest.raises(UnavailableError):
            connect(uri, token, trustme.CA().cert_pem.bytes())
        with pytest.raises(NearStorageError):
            connect(uri.replace("+tls", ""), token)
    finally:
        for server in (*nodes, catalog):
            server.close(2)


def test_files_that_are_no_tls(tmp_path: Path):
    with pytest.raises(RequestError, match="cannot read"):
        read_tls(tmp_path / "none", tmp_path / "none")
    store = PartitionStore(tmp_path / "n", describe=describe_here)
    with pytest.raises(RequestError, match="cannot listen"):
        StorageNode(store, "n", security.new_secret(), tls=Tls(b"nonsense", b"nonsense"))
    store.close()


def test_a_port_that_is_taken(tmp_path: Path):
    store = PartitionStore(tmp_path / "n", describe=describe_here)
    node = StorageNode(store, "n", security.new_secret())
    with pytest.raises(RequestError, match="cannot listen"):
        StorageNode(store, "n", security.new_secret(), port=node.port)
    node.close()
