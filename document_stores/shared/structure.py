"""Finding one schema for all documents, in the notation of DuckDB's JSON functions, and checking its limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from adapters.errors import RefusedData
from document_stores.shared import duckdb_session as session

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ARRAY_LEVELS = 12
"""Maximum nesting depth of arrays directly within arrays. Each additional level doubles the time of DuckDB's Parquet
reader."""


NESTED_ARRAYS = r"(?:\[[^\]]*){" + str(MOST_ARRAY_LEVELS + 1) + "}"
"""Pattern for JSON texts in which arrays may be nested more than MOST_ARRAY_LEVELS deep. Matching texts must be
examined, because some of them have fewer levels.

The pattern does not match if a closing bracket is between the opening brackets."""


_PERHAPS_NULL = r"[:\[,]\s*null"
"""Pattern that matches every JSON text with a null outside strings, and also some other texts."""


def bigint_structure(connection: Any, lines: Iterator[pa.Array], key: str) -> tuple[str, bool]:
    """Create the DuckDB table `arriving` with all lines. Return the structure of the documents as JSON, and whether any
    document contains a null.

    All integers in the structure have the type BIGINT (64 bits). Raises RefusedData for documents without a key, keys
    of different types, names that differ only by case, and empty names.
    """
    import pyarrow as pa

    arrays = list(lines)
    schema = pa.schema([("line", pa.large_string())])
    connection.register("arriving", pa.table([pa.chunked_array(arrays, pa.large_string())], schema=schema))
    if not arrays:
        return msgspec.json.encode({key: "BIGINT"}).decode(), False
    found = connection.execute("SELECT json_group_structure(CAST(line AS JSON)) FROM arriving").fetchone()[0]
    structure = msgspec.json.decode(found)
    if not isinstance(structure, dict):
        raise RefusedData("a document is not a JSON object")
    _check(structure)
    type_ = structure.get(key)
    if type_ not in ("UBIGINT", "BIGINT", "HUGEINT", "VARCHAR"):
        raise RefusedData(f"the key {key!r} must be an int or a text in all documents (got {type_ or 'none'})")
    _check_keys(connection, key, str(type_))
    return msgspec.json.encode(_with_bigint(structure)).decode(), any(map(_holds_null, arrays))


def _holds_null(lines: pa.Array) -> bool:
    import pyarrow.compute as pc

    suspect = lines.filter(pc.match_substring_regex(lines, _PERHAPS_NULL))
    return any(_has_null(msgspec.json.decode(line.as_py())) for line in suspect)


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return value is None or (isinstance(value, list) and any(map(_has_null, value)))


def _check_keys(connection: Any, key: str, type_: str) -> None:
    from document_stores.sql.duckdb_values import JsonValue

    strict = session.strict_key(JsonValue("line").step(key), "VARCHAR" if type_ == "VARCHAR" else "BIGINT")
    connection.execute(f"SELECT max({strict}) FROM (SELECT CAST(line AS JSON) AS line FROM arriving)").fetchone()


def _check(structure: Any) -> None:
    if isinstance(structure, list):
        for inner in structure:
            _check(inner)
    if isinstance(structure, dict):
        folded = {name.lower() for name in structure}
        if len(folded) < len(structure):
            raise RefusedData("two names differ only by case, and DuckDB treats them as the same name")
        if "" in folded:
            raise RefusedData("a field has an empty name, which a column of DuckDB cannot have")
        for inner in structure.values():
            _check(inner)


def _with_bigint(structure: Any) -> Any:
    if isinstance(structure, dict):
        return {name: _with_bigint(inner) for name, inner in structure.items()}
    if isinstance(structure, list):
        return [_with_bigint(inner) for inner in structure]
    return "BIGINT" if structure in ("UBIGINT", "HUGEINT") else structure


def array_levels(value: Any, around: int = 0) -> int:
    """Return the maximum depth of arrays directly within arrays in a structure or document. `around` is the number of
    arrays that contain `value`, for recursive calls."""
    if isinstance(value, dict):
        return max(around, *map(array_levels, value.values())) if value else around
    if isinstance(value, list):
        return max((array_levels(item, around + 1) for item in value), default=around + 1)
    return around
