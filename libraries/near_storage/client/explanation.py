"""Explain how a query would be read: the access path and its reason, row groups and bytes."""

from __future__ import annotations

from dataclasses import dataclass

from libraries.near_storage.client.executor import Asked
from libraries.near_storage.serving.protocol import Way, from_runs


@dataclass(frozen=True)
class PartitionRead:
    """What is read from one partition. `groups` are the row groups to read, `all_match` are the row groups of `groups`
    in which every row matches, and `nodes` are the nodes that hold the partition."""

    position: int
    digest: str
    groups: tuple[int, ...]
    all_match: tuple[int, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """The plan of a query. Bytes are estimates made before reading; `table_bytes` is the size of all files."""

    table: str
    version: int
    way: Way
    reason: str
    partitions: tuple[PartitionRead, ...]
    partitions_all: int
    groups_read: int
    groups_all: int
    groups_all_match: int
    rows_read: int
    v1_bytes: int
    v2_bytes: int
    table_bytes: int
    groups_counted: int
    """Number of row groups that are not read, because only their number of rows is needed."""

    def __str__(self) -> str:
        names = {"v1": "rows made by the nodes (V1)", "v2": "chunks sent as stored (V2)", "all": "whole files"}
        pruned = self.groups_all - self.groups_read - self.groups_counted
        counted = f"{self.groups_counted:,} counted by the catalog, " if self.groups_counted else ""
        return "\n".join(
            [
                f"table {self.table}, version {self.version}: {names[self.way]}, because {self.reason}",
                f"row groups: {self.groups_read:,} of {self.groups_all:,} are read, {pruned:,} pruned, "
                f"{counted}{self.groups_all_match:,} match entirely; partitions: {len(self.partitions):,} of "
                f"{self.partitions_all:,}; rows in them: {self.rows_read:,}",
                f"bytes, estimated: V1 {self.v1_bytes:,}, V2 {self.v2_bytes:,}, all files {self.table_bytes:,}",
            ]
        )


def explanation(asked: Asked) -> Explanation:
    """Return the explanation of the catalog's plan."""
    plan = asked.plan
    read = [
        PartitionRead(
            piece.position,
            piece.digest,
            tuple(from_runs(piece.groups)),
            tuple(from_runs(piece.plain)),
            source.share.nodes,
        )
        for source in asked.sources
        for piece in source.share.pieces
    ]
    return Explanation(
        table=plan.table,
        version=plan.version,
        way=plan.way,
        reason=plan.reason,
        partitions=tuple(sorted(read, key=lambda each: each.position)),
        partitions_all=plan.partitions,
        groups_read=plan.groups_read,
        groups_all=plan.groups,
        groups_all_match=plan.groups_unfiltered,
        rows_read=plan.rows,
        v1_bytes=plan.v1_bytes,
        v2_bytes=plan.v2_bytes,
        table_bytes=plan.table_bytes,
        groups_counted=plan.groups_counted,
    )
