"""Plan a query: choose the row groups to read, the access path and the nodes.

The catalog prunes the compact metadata of all partitions at once. V2 is used for row groups that are too large to
decode on a node. Otherwise, aggregates use V1, so that nodes compute them, and other queries use the access path with
fewer estimated bytes (`estimates`). Small answers use V1, because V2 needs footers first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from libraries.filters import binding
from libraries.near_storage import aggregates
from libraries.near_storage.errors import RequestError, UnavailableError
from libraries.near_storage.parquet.compact import CompactMetadata
from libraries.near_storage.query import Query
from libraries.near_storage.reading.columns import leaves_of
from libraries.near_storage.reading.row_group_selection import Chosen, choose
from libraries.near_storage.serving import estimates
from libraries.near_storage.serving.node_streams import needed_columns
from libraries.near_storage.serving.protocol import Ask, Piece, QueryPlan, Share, Way, pack_schema, to_runs
from libraries.near_storage.storing.catalog import Partition, TableVersion
from libraries.near_storage.storing.partition_metadata import PartitionInfo
from libraries.near_storage.storing.uploads import Node

FEW_BYTES = 1 << 20
"""An answer of at most this many bytes uses V1."""
HELD_SHARE = 1 / 4
"""Nodes do not decode row groups whose chunks exceed this share of a node's memory, because decoding takes as much
memory again. The client decodes them (V2)."""
MOST_PIECES = 10_000
"""Maximum number of partitions per endpoint. A ticket for four times as many partitions would be longer than nodes
accept."""


@dataclass(frozen=True)
class Endpoint:
    """One stream of an answer: the nodes that can send it, the preferred node first, and the data with which the client
    checks the stream."""

    nodes: tuple[Node, ...]
    share: Share


@dataclass(frozen=True)
class Planned:
    """The plan of a query, and the endpoints from which the answer is read."""

    query: Query
    table_schema: pa.Schema
    plan: QueryPlan
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True)
class Table:
    """A table version and the metadata of its partitions. `info` returns the description of a partition by its
    digest."""

    version: TableVersion
    metadata: CompactMetadata
    info: Callable[[str], PartitionInfo]


def plan(table: Table, query: Query, ask: Ask, memory_bytes: int) -> Planned:
    """Choose row groups, access path and nodes. Each node has `memory_bytes` for all of its requests.

    Raises PredicateError and RequestError for queries that the table does not allow.
    """
    schema = table.version.schema
    bound = bind(query, schema)
    chosen = choose(table.metadata, bound.where)
    if ask.positions is not None:
        wanted = frozenset(ask.positions)
        chosen = [each for each in chosen if each.file in wanted]
    chosen = _limited(table, chosen, bound)
    counted = _Counted()
    if ask.way != "all" and bound.aggregated and aggregates.counts_rows(aggregates.plan(bound, schema)):
        chosen, counted = _counted(table, chosen)
    needed = needed_columns(bound, schema)
    leaves = tuple(leaves_of(schema, needed))
    figures = _figures(table, bound, chosen, leaves)
    way, reason = (ask.way, "asked for") if ask.way is not None else _choose_way(bound, figures, counted, memory_bytes)
    if way == "all" or (way == "v1" and ask.footers == "parsed"):
        chosen = _every_partition(table, chosen, ask)
    endpoints = _endpoints(table, chosen, way, leaves, ask)
    told = QueryPlan(
        table=table.version.table,
        version=table.version.number,
        way=way,
        reason=reason,
        schema=pack_schema(schema),
        partitions=len(table.version.partitions),
        partitions_read=len(chosen),
        groups=len(table.metadata.rows),
        groups_read=sum(len(each.groups) for each in chosen),
        groups_unfiltered=sum(int(each.all_match.sum()) for each in chosen),
        rows=figures.rows,
        table_bytes=table.version.stored_bytes,
        v1_bytes=figures.v1_bytes,
        v2_bytes=figures.v2_bytes,
        groups_counted=counted.groups,
        rows_counted=counted.rows,
    )
    return Planned(bound, schema, told, tuple(endpoints))


def bind(query: Query, schema: pa.Schema) -> Query:
    """Check the columns of a query, and bind its filter to the table's schema (`filters.binding`). Raises
    PredicateError, and RequestError for unknown columns."""
    if query.aggregated:
        aggregates.plan(query, schema)
    else:
        leaves_of(schema, frozenset(schema.names if query.columns is None else query.columns))
    return query if query.where is None else replace(query, where=binding.bind(query.where, schema))


@dataclass(frozen=True)
class _Figures:
    rows: int
    v1_bytes: int
    v2_bytes: int
    held_bytes: int
    """Bytes of the chunks of the largest row group, which V1 holds in memory at once."""


def _figures(table: Table, query: Query, chosen: Sequence[Chosen], leaves: Sequence[int]) -> _Figures:
    """Return the number of rows in the row groups to read, and the bytes that each access path would send."""
    metadata, schema = table.metadata, table.version.schema
    groups, all_match = _places(metadata, chosen)
    rows = metadata.rows[groups]
    matching = float(rows[all_match].sum()) + float(rows[~all_match].sum()) * estimates.selectivity(query.where)
    if query.aggregated:
        v1_bytes = 0.0
    else:
        columns = schema.names if query.columns is None else query.columns
        limit = matching if query.limit is None else min(matching, query.limit)
        v1_bytes = limit * estimates.row_bytes(schema, columns, metadata)
    footers = sum(table.info(table.version.partitions[each.file].digest).footer_bytes for each in chosen)
    stored = estimates.chunk_bytes(metadata, groups, leaves)
    return _Figures(int(rows.sum()), int(v1_bytes), int(stored.sum()) + footers, int(stored.max(initial=0)))


@dataclass(frozen=True)
class _Counted:
    """How many row groups are not read, because only their number of rows is needed, and how many rows they have in
    total."""

    groups: int = 0
    rows: int = 0


def _counted(table: Table, chosen: Sequence[Chosen]) -> tuple[list[Chosen], _Counted]:
    """For a query that only counts rows, return the row groups to read, and the totals of the others. The others need
    not be read, because all of their rows match."""
    groups, all_match = _places(table.metadata, chosen)
    left = [Chosen(each.file, each.groups[~each.all_match], each.all_match[~each.all_match]) for each in chosen]
    counted = _Counted(int(all_match.sum()), int(table.metadata.rows[groups[all_match]].sum()))
    return [each for each in left if len(each.groups)], counted


def _choose_way(query: Query, figures: _Figures, counted: _Counted, memory_bytes: int) -> tuple[Way, str]:
    if counted.groups and not figures.rows:
        return "v1", "the catalog knows the number of rows"
    if figures.held_bytes > HELD_SHARE * memory_bytes:
        return (
            "v2",
            f"a row group has {figures.held_bytes:,} bytes, too many to decode in {memory_bytes:,} bytes of memory",
        )
    if query.aggregated:
        return "v1", "nodes compute aggregates"
    rows, chunks = f"about {figures.v1_bytes:,} bytes of rows", f"{figures.v2_bytes:,} bytes of chunks and footers"
    if figures.v1_bytes <= FEW_BYTES:
        return "v1", f"the answer is small: {rows}"
    if figures.v1_bytes <= figures.v2_bytes:
        return "v1", f"{rows} are fewer than {chunks}"
    return "v2", f"{chunks} are fewer than {rows}"


def _places(metadata: CompactMetadata, chosen: Sequence[Chosen]) -> tuple[np.ndarray, np.ndarray]:
    """Return the global numbers of the chosen row groups, and whether all rows of each group match."""
    if not chosen:
        return np.zeros(0, np.int64), np.zeros(0, bool)
    firsts = np.searchsorted(metadata.file, [each.file for each in chosen])
    groups = np.concatenate([first + each.groups for first, each in zip(firsts, chosen, strict=True)])
    return groups, np.concatenate([each.all_match for each in chosen])


def _limited(table: Table, chosen: list[Chosen], query: Query) -> list[Chosen]:
    """For a query with a LIMIT, keep only as many of the first row groups as surely have enough matching rows. Rows
    surely match in row groups in which pruning proved that all rows match."""
    if query.limit is None or query.aggregated or not chosen:
        return chosen
    groups, all_match = _places(table.metadata, chosen)
    sure = np.cumsum(np.where(all_match, table.metadata.rows[groups], 0))
    kept = int(np.searchsorted(sure, query.limit)) + 1 if query.limit else 0
    found: list[Chosen] = []
    for each in chosen:
        some = slice(0, max(0, kept))
        if len(each.groups[some]):
            found.append(Chosen(each.file, each.groups[some], each.all_match[some]))
        kept -= len(each.groups)
    return found


def _every_partition(table: Table, chosen: Sequence[Chosen], ask: Ask) -> list[Chosen]:
    """Return all partitions, including those without chosen row groups."""
    known = {each.file: each for each in chosen}
    files = range(len(table.version.partitions)) if ask.positions is None else sorted(set(ask.positions))
    none = Chosen(0, np.zeros(0, np.int64), np.zeros(0, bool))
    return [known.get(file, replace(none, file=file)) for file in files if file < len(table.version.partitions)]


def _endpoints(table: Table, chosen: Sequence[Chosen], way: Way, leaves: tuple[int, ...], ask: Ask) -> list[Endpoint]:
    """Combine partitions into one stream if the same nodes can send them, in the same order of preference."""
    partitions = [table.version.partitions[each.file] for each in chosen]
    together: dict[tuple[Node, ...] | int, tuple[tuple[Node, ...], list[Chosen]]] = {}
    for each, nodes in zip(chosen, _preferred(partitions, ask), strict=True):
        together.setdefault(each.file if ask.split else nodes, (nodes, []))[1].append(each)
    return [
        Endpoint(nodes, _share(table, some[start : start + MOST_PIECES], nodes, way, leaves))
        for nodes, some in together.values()
        for start in range(0, len(some), MOST_PIECES)
    ]


def _preferred(partitions: Sequence[Partition], ask: Ask) -> list[tuple[Node, ...]]:
    """Order the replicas of each partition by preference, so that all nodes send about the same number of bytes.

    The nodes of a partition form a set. If there are at least as many different sets as nodes, all partitions of a set
    get the same order, so that one stream can send these partitions. With fewer sets, the order is chosen per
    partition.
    """
    sets = {partition.nodes for partition in partitions}
    names = {node.name for nodes in sets for node in nodes}
    by_set = len(sets) >= len(names)
    weights: dict[tuple[Node, ...], int] = dict.fromkeys(sets, 0)
    for partition in partitions:
        weights[partition.nodes] += partition.stored_bytes
    sending = dict.fromkeys(names, 0)
    fixed: dict[tuple[Node, ...], tuple[Node, ...]] = {}
    found = []
    for partition in partitions:
        if partition.nodes in fixed:
            found.append(fixed[partition.nodes])
            continue
        ordered = tuple(sorted(partition.nodes, key=lambda node: (node.name in ask.avoid, sending[node.name])))
        if not ordered:
            raise UnavailableError(f"partition {partition.position}: no known node holds it; run 'store repair'")
        sending[ordered[0].name] += weights[partition.nodes] if by_set else partition.stored_bytes
        if by_set:
            fixed[partition.nodes] = ordered
        found.append(ordered)
    return found


def _share(table: Table, chosen: Sequence[Chosen], nodes: tuple[Node, ...], way: Way, leaves: tuple[int, ...]) -> Share:
    pieces = []
    infos = []
    for each in chosen:
        digest = table.version.partitions[each.file].digest
        groups = each.groups.tolist()
        pieces.append(Piece(each.file, digest, to_runs(groups), to_runs(each.groups[each.all_match].tolist())))
        infos.append(table.info(digest))
    names = tuple(node.name for node in nodes)
    if way == "v1":
        return Share(names, tuple(pieces))
    chunks = tuple(
        np.ascontiguousarray(info.chunk_digests[groups][:, list(leaves)], "<u8").tobytes()
        for info, groups in zip(infos, (each.groups if way == "v2" else slice(None) for each in chosen), strict=True)
    )
    return Share(names, tuple(pieces), leaves, tuple(info.footer_digest for info in infos), chunks)


def check_positions(ask: Ask) -> None:
    """Raise RequestError if partitions are requested without a version, or by a negative number."""
    if ask.positions is not None and (ask.version is None or any(position < 0 for position in ask.positions)):
        raise RequestError(
            "a request for partitions needs a version and partition numbers of at least 0 "
            f"(got the numbers {str(list(ask.positions))[:100]}, version {ask.version})"
        )
