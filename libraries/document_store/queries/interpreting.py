"""Interpret a plan over dicts. The dicts are decoded from rows or assembled from columns.

Here, columns can be slower than rows: assembling dicts may cost more time than is saved by reading fewer bytes (figure
9e of the paper).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from libraries.document_queries.plan import Plan
from libraries.document_queries.reference import Interpretation
from libraries.document_queries.results import Row
from libraries.document_store.assembly import assemble, rest_fields
from libraries.document_store.messagepack import decode
from libraries.document_store.queries.branches import Places, needed_leaves, paths_of
from libraries.document_store.queries.parts import QueryPart
from libraries.document_store.schema import ROOT, Schema
from libraries.document_store.shredding import Column


def interpret_rows(parts: Iterable[QueryPart], plan: Plan) -> list[Row]:
    """Return the answer by decoding whole rows. Raises QueryError."""
    interpretation = Interpretation(plan)
    for part in parts:
        interpretation.add(part.keys.tolist(), map(decode, part.rows()))
    return interpretation.answer()


def interpret_columns(parts: Iterable[QueryPart], plan: Plan) -> list[Row]:
    """Return the answer by assembling dicts from the columns that the plan reads. Raises QueryError or CorruptError."""
    interpretation = Interpretation(plan)
    for part in parts:
        interpretation.add(part.keys.tolist(), assembled(part, plan))
    return interpretation.answer()


def assembled(part: QueryPart, plan: Plan) -> list[dict[str, Any]]:
    """Return for each document of a part a dict with at least the fields that the plan reads."""
    whole = plan.result is None or reaches_rest(part, plan)
    wanted = range(len(part.schema.leaves)) if whole else sorted(needed_leaves(plan, Places(part.schema)))
    columns = part.columns(wanted)
    if whole:
        return assemble(part.schema, columns, part.count)
    schema = reduced(part.schema, wanted)
    renumbered = {
        number: Column(leaf, columns[old].levels, columns[old].values)
        for number, (leaf, old) in enumerate(zip(schema.leaves, wanted, strict=True))
    }
    return assemble(schema, renumbered, part.count)


def reaches_rest(part: QueryPart, plan: Plan) -> bool:
    """Return whether the plan may read values of REST in this part. REST is the column for all paths beyond the
    schema's limit."""
    leaf = part.schema.rest
    if leaf is None:
        return False
    wanted = {path[0] if path else None for path in paths_of(plan)}
    return None in wanted or not wanted.isdisjoint(rest_fields(part.columns([leaf.number])[leaf.number]))


def reduced(schema: Schema, leaf_numbers: Iterable[int]) -> Schema:
    """Return a schema with only these leaves and the nodes above them. The leaves get new numbers, in order."""
    kept = {ROOT}
    for number in leaf_numbers:
        node = schema.leaf_nodes[number]
        while node not in kept:
            kept.add(node)
            node = schema.nodes[node].parent
    place = {node: index for index, node in enumerate(sorted(kept))}
    nodes = [schema.nodes[node] for node in sorted(kept)]
    moved = (type(node)(place.get(node.parent, -1), node.kind, node.name) for node in nodes)
    return Schema(schema.key, tuple(moved), schema.limit)
