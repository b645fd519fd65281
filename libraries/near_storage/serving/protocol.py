"""The messages between catalog, nodes and clients: JSON, and a note for each batch of a stream.

Every request is a frozen struct of this module; anything that does not decode to one is refused with the reason and
position. Filters and queries inside are JSON of `predicates.wire`, which has its own limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from libraries.near_storage.errors import RequestError

REQUEST_BYTES = 4 << 20
"""Maximum bytes of a request: descriptors, actions, tickets."""
RECEIPT_BYTES = 256 << 20
"""Maximum bytes of a node's receipt: 32 bytes per chunk of a partition, and its schema."""
UPLOAD_BATCH_BYTES = 4 << 20
"""Maximum bytes of one message of an upload."""

MOST_GROUPS = 1 << 24
"""Maximum row groups of one partition that a message may name."""

Way: TypeAlias = Literal["v1", "v2", "all"]
"""v1: the node reads Parquet, filters and aggregates. v2: the node sends chunks as stored, the client does the rest.
all: the node sends whole files, as a store without computation would; never chosen by the catalog."""
Footers: TypeAlias = Literal["cached", "parsed"]
"""Whether V1 keeps parsed footers between queries, or parses those of all partitions for each query, as in chapter 8.1
of the thesis."""

MessageT = TypeVar("MessageT")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with exactly the fields of its struct."""


# --- asking for rows -------------------------------------------------------------------------------------


class Ask(Message, frozen=True):
    """The command of a descriptor: request the endpoints of a query from the catalog.

    Without a `way` the catalog chooses. `version` and `positions` request partitions of one version (StaleError if it
    is no longer current); `split` gives each partition its own endpoint; nodes named in `avoid` are used last. For
    measurements: `footers`, and `filtered=False` for all rows of the row groups that remain after pruning.
    """

    query: msgspec.Raw
    way: Way | None = None
    footers: Footers = "cached"
    filtered: bool = True
    version: int | None = None
    positions: tuple[int, ...] | None = None
    split: bool = False
    avoid: tuple[str, ...] = ()


class QueryPlan(Message, frozen=True):
    """`app_metadata` of a FlightInfo: the catalog's decision and its figures.

    Bytes are those of this query: `table_bytes` for fetching all files, `v1_bytes` and `v2_bytes` estimated for the two
    ways. `schema` is the table's, as an Arrow IPC message in base64. `rows_counted` are the rows of `groups_counted`
    row groups that match entirely in a query that only counts rows: the catalog knows their number, so no endpoint has
    them.
    """

    table: str
    version: int
    way: Way
    reason: str
    schema: bytes
    partitions: int
    partitions_read: int
    groups: int
    groups_read: int
    groups_unfiltered: int
    rows: int
    table_bytes: int
    v1_bytes: int
    v2_bytes: int
    groups_counted: int = 0
    rows_counted: int = 0


class Piece(Message, frozen=True, array_like=True):
    """One partition's part of a ticket: its position in the table, its digest, and row groups encoded by `to_runs`.

    These are the row groups to read, and those of them of which every row passes the filter.
    """

    position: int
    digest: str
    groups: tuple[int, ...]
    plain: tuple[int, ...] = ()


class Share(Message, frozen=True):
    """`app_metadata` of an endpoint: what a client checks its stream against.

    `nodes` are the names of the endpoint's locations, in order. If the client decodes, `footers` and `chunks` have one
    entry per piece: the blake2b digest of the footer, and the xxh3 of each chunk it may need (row groups x leaf
    columns, little-endian): of the row groups to read for V2, of all row groups for whole files.
    """

    nodes: tuple[str, ...]
    pieces: tuple[Piece, ...]
    leaves: tuple[int, ...] = ()
    footers: tuple[str, ...] = ()
    chunks: tuple[bytes, ...] = ()


def to_runs(numbers: Sequence[int]) -> tuple[int, ...]:
    """Encode ascending numbers as runs of consecutive ones: first and count of each run."""
    runs: list[int] = []
    for number in numbers:
        if runs and runs[-2] + runs[-1] == number:
            runs[-1] += 1
        else:
            runs += (number, 1)
    return tuple(runs)


def from_runs(runs: Sequence[int]) -> list[int]:
    """Decode the numbers of `to_runs`. Raises RequestError for invalid runs and for too many numbers."""
    firsts, counts = runs[::2], runs[1::2]
    if len(firsts) != len(counts) or min(runs, default=0) < 0 or sum(counts) > MOST_GROUPS:
        raise RequestError(f"row groups: expected runs of first and count, at most {MOST_GROUPS} groups in total")
    return [number for first, count in zip(firsts, counts, strict=True) for number in range(first, first + count)]


# --- notes of the batches of a stream -------------------------------------------------------------------


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The end of what a client has of a stream: partition, row group, and rows of that group's answer (-1: all)."""

    partition: int
    group: int
    rows: int


class Note(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="batch"):
    """`app_metadata` of a batch: its number in the stream, its position, and a digest of these and of the batch.

    `rows` are the rows of the row group's answer before this batch. A batch without rows reports progress.
    """

    number: int
    partition: int
    group: int
    rows: int
    digest: int


class Totals(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="totals"):
    """`app_metadata` of the last batch, which has no rows. A stream without it is incomplete."""

    batches: int
    rows: int
    groups: int
    limited: bool


# --- uploads, removal, upkeep ----------------------------------------------------------------------------


class Begin(Message, frozen=True):
    """Begin a new version of a table, without nodes that are known to be down or full."""

    table: str
    avoid: tuple[str, ...] = ()


class Begun(Message, frozen=True):
    """The name of the upload that was begun."""

    upload: str


class Place(Message, frozen=True):
    """Request nodes for this partition."""

    upload: str
    position: int
    digest: str
    stored_bytes: int


class Placement(Message, frozen=True):
    """A storage node: its name, and its current Flight address."""

    node: str
    location: str


class Placements(Message, frozen=True):
    """Nodes; for an upload, those that still need the partition, and the permit to put it there."""

    nodes: tuple[Placement, ...]
    permit: bytes


class OfUpload(Message, frozen=True):
    """Commit or abort this upload."""

    upload: str


class OfTable(Message, frozen=True):
    """Describe or delete this table."""

    table: str


class Committed(Message, frozen=True):
    """The version that is current from now on."""

    version: int


class TableSummary(Message, frozen=True):
    """One table of the catalog; `schema` as an Arrow IPC message in base64."""

    table: str
    version: int
    schema: bytes
    rows: int
    partitions: int
    stored_bytes: int


class Tables(Message, frozen=True):
    """All tables, by name."""

    tables: tuple[TableSummary, ...]


class Check(Message, frozen=True):
    """Compare the contents of nodes with the catalog; `verify` reads every byte."""

    verify: bool = False


class Finding(Message, frozen=True):
    """A deviation from the expected state: its kind, node, partition, a sentence, tables, and whether `repair` fixes it
    (`storing.integrity`)."""

    kind: str
    node: str | None
    digest: str | None
    text: str
    tables: tuple[str, ...]
    mendable: bool


class Checked(Message, frozen=True):
    """All findings of a check, and the number of steps to repair what is possible."""

    findings: tuple[Finding, ...]
    steps: int


class Repaired(Message, frozen=True):
    """The result of a repair: earlier findings, replicas copied, recorded and removed, failed steps with reasons."""

    findings: tuple[Finding, ...]
    copied: int
    recorded: int
    removed: int
    failed: tuple[str, ...]


class NodeAddress(Message, frozen=True):
    """A storage node reports its name, its address for clients, and its folder.

    `folder` is the identity of the folder, `catalog` that of the catalog it belongs to, if any.
    """

    node: str
    location: str
    folder: str
    catalog: str | None


class Registered(Message, frozen=True):
    """The identity of the catalog, to which the node's folder belongs from now on."""

    catalog: str


class OfNode(Message, frozen=True):
    """Forget this node, which is gone for good."""

    node: str


class Report(Message, frozen=True):
    """Report the contents; `verify` reads every byte."""

    verify: bool = False


class Reported(Message, frozen=True):
    """A node's partitions (bytes and age in seconds by digest), and which of them are damaged."""

    held: dict[str, tuple[int, float]]
    damaged: tuple[str, ...] = ()


class OfDigest(Message, frozen=True):
    """Describe this partition."""

    digest: str


class Removing(Message, frozen=True):
    """Remove this partition; `number` is unique per removal and assigned by the catalog."""

    digest: str
    number: int


class Copy(Message, frozen=True):
    """Fetch this partition from another node."""

    digest: str
    stored_bytes: int
    location: str
    ticket: bytes


class Statistics(Message, frozen=True):
    """Resources that a node's process used since it started, for measurements.

    CPU seconds of user and system, peak resident bytes, bytes read from and written to the device by this process
    (Linux's /proc/self/io), bytes of batches sent, requests answered, maximum of concurrent requests.
    """

    cpu_s: float
    peak_bytes: int
    device_read_bytes: int
    device_written_bytes: int
    sent_bytes: int
    requests: int
    most_at_once: int


class Health(Message, frozen=True):
    """A server that answers: its kind and name."""

    kind: Literal["catalog", "node"]
    name: str


# --- encoding --------------------------------------------------------------------------------------------


def encode(message: msgspec.Struct) -> bytes:
    """Encode a message as JSON."""
    return msgspec.json.encode(message)


def decode(kind: type[MessageT], data: bytes | memoryview, most_bytes: int = REQUEST_BYTES) -> MessageT:
    """Decode a message of `kind` from JSON. Raises RequestError if it is too long or invalid."""
    name = getattr(kind, "__name__", "message")
    if len(data) > most_bytes:
        raise RequestError(f"{name}: {len(data)} bytes, at most {most_bytes} are allowed; request less at once")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"{name}: not a message of this protocol ({error})") from None


def decode_note(data: bytes | memoryview) -> Note | Totals:
    """Decode the metadata of a batch. Raises RequestError if it is not a note of this protocol."""
    try:
        return msgspec.json.decode(data, type=Note | Totals)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"note of a batch: not of this protocol ({error})") from None


def pack_schema(schema: pa.Schema) -> bytes:
    """Encode a schema as an Arrow IPC message."""
    return schema.serialize().to_pybytes()


def unpack_schema(data: bytes) -> pa.Schema:
    """Decode the schema of `pack_schema`, which only our own servers send. Raises RequestError if it is invalid."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError) as error:
        raise RequestError(f"schema: not an Arrow schema ({error})") from None
