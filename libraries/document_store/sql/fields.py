"""The fields that the documents of a snapshot may have, and the types of their values.

Types come from schemas, and only field names beyond a schema's limit are read from values. Schemas also have the fields
and types of deleted documents. A field may therefore have fewer types than stated here, never more.
"""

from __future__ import annotations

from libraries.document_queries.paths import Path
from libraries.document_queries.sql.conditions import NoPlan
from libraries.document_queries.sql.names import FieldPath
from libraries.document_queries.sql.planning import Kinds
from libraries.document_store.queries.branches import Places
from libraries.document_store.queries.interpreting import rest_fields
from libraries.document_store.schema import ROOT
from libraries.document_store.snapshot import Snapshot
from libraries.document_store.values import ValueKind


class StoreFields:
    """The fields of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        schema = snapshot.schema
        self._key = snapshot.key_field
        self._places: list[Places] = []
        self._beyond: set[str] = set()
        """Top-level names of fields beyond the schema's limit."""
        if schema is None:
            return
        self._places.append(Places(schema))
        if snapshot.stores_schemas and schema.rest is None:
            return
        for part in snapshot.parts():
            if not snapshot.stores_schemas:
                self._places.append(Places(part.schema))
            rest = part.schema.rest
            columns = {} if rest is None else part.columns([rest.number])
            if rest is not None and rest.number in columns:
                self._beyond |= {str(name) for name in rest_fields(columns[rest.number])}

    @property
    def is_empty(self) -> bool:
        """Whether the store never had a document."""
        return not self._places

    def has(self, path: FieldPath) -> bool:
        """Return whether a document may have this field."""
        return path[0] in self._beyond or any(places.branches(Path(path)) for places in self._places)

    def names(self) -> list[str]:
        """Return the names of all top-level fields, in order of first occurrence. Return the key's name if there are
        none."""
        found = [str(name) for places in self._places for name in places.schema.slots[ROOT] if name is not None]
        return list(dict.fromkeys([*found, *sorted(self._beyond)])) or [self._key]

    def certain_kinds(self, path: FieldPath) -> Kinds:
        """Return all kinds that a field's values may have. Raises NoPlan for a field beyond the schema's limit, whose
        kinds are not known."""
        if path[0] in self._beyond:
            raise NoPlan(f"{path[0]} is not in the store's schema, which has reached its limit")
        return self.kinds(path)

    def kinds(self, path: FieldPath) -> Kinds:
        """Return the kinds that a field's values may have, except values beyond the schema's limit."""
        found = {int(branch.kind) for places in self._places for branch in places.branches(Path(path))}
        return frozenset(found - {int(ValueKind.NULL)})
