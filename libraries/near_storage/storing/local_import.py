"""Fill the folders of a catalog and its nodes without running servers, for local files and disks.

Servers can open these folders afterwards. Each node then registers its address at the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from libraries.near_storage.storing.catalog import Catalog
from libraries.near_storage.storing.partition_metadata import digest_of_file
from libraries.near_storage.storing.partitions import READ_BYTES, PartitionStore

NOT_SERVED = "grpc://127.0.0.1:0"
"""Address of a node until it is started and registers."""


def fill(folder: Path, table: str, paths: Iterable[Path], nodes: int = 1, replicas: int = 1) -> None:
    """Store Parquet files, byte for byte and in order, as a new version of a table.

    The catalog is in `folder/catalog`, the nodes are in `folder/node-1`, `folder/node-2` and so on. Raises the errors
    of `PartitionStore.put` and `Uploads`; the table is then unchanged.
    """
    catalog = Catalog(folder / "catalog", replicas)
    stores: dict[str, PartitionStore] = {}
    try:
        for number in range(1, nodes + 1):
            name = f"node-{number}"
            stores[name] = PartitionStore(folder / name)
            stores[name].claim(catalog.identity)
            if name not in [node.name for node in catalog.nodes()]:
                catalog.register_node(name, NOT_SERVED, stores[name].identity())
        _upload(catalog, stores, table, list(paths))
    finally:
        for store in stores.values():
            store.close()
        catalog.close()


def _upload(catalog: Catalog, stores: dict[str, PartitionStore], table: str, paths: Sequence[Path]) -> None:
    upload = catalog.uploads.begin(table)
    try:
        for position, path in enumerate(paths):
            digest, stored_bytes = digest_of_file(path)
            for node in catalog.uploads.place(upload, position, digest, stored_bytes):
                info = stores[node.name].put(_pieces(path), digest, stored_bytes)
                catalog.uploads.acknowledge(upload, digest, node.name, info)
        catalog.uploads.commit(upload)
    except BaseException:
        catalog.uploads.abort(upload)
        for removal in catalog.upkeep.removals():
            if removal.node in stores:
                stores[removal.node].remove(removal.digest, removal.number)
                catalog.upkeep.removed(removal)
        raise


def _pieces(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while piece := file.read(READ_BYTES):
            yield piece
