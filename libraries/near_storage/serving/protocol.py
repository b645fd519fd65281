"""The messages between catalog, nodes and clients: requests and replies in JSON, and metadata for each batch of a
stream.

Every request is a frozen struct of this module. Bytes that do not decode to the struct are refused with the reason and
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
"""Maximum bytes of a node's receipt, which has 32 bytes per chunk of a partition, and the schema."""
UPLOAD_BATCH_BYTES = 4 << 20
"""Maximum bytes of one message of an upload."""

MOST_GROUPS = 1 << 24
"""Maximum row groups of one partition that a message may name."""

Way: TypeAlias = Literal["v1", "v2", "all"]
"""The access path. v1: the node reads Parquet, filters and aggregates. v2: the node sends chunks as stored, and the
client decodes and filters. all: the node sends whole files, like a store that cannot compute. The catalog never chooses
`all`."""
Footers: TypeAlias = Literal["cached", "parsed"]
"""cached: V1 keeps parsed footers between queries. parsed: V1 parses the footers of all partitions for each query, as
in Weigand 2025, 8.1."""

MessageT = TypeVar("MessageT")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with exactly the fields of its struct."""


# --- asking for rows -------------------------------------------------------------------------------------


class Ask(Message, frozen=True):
    """A request to the catalog for the endpoints of a query, sent as the command of a Flight descriptor.

    Without a `way` (access path) the catalog chooses. `version` and `positions` request partitions of one version;
    StaleError is raised if this version is no longer served. With `split`, each partition has its own endpoint. Nodes
    named in `avoid` are used last. `footers` and `filtered` are for measurements. `filtered=False` requests all rows of
    the row groups that remain after pruning.
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
    """The catalog's decision and estimates for a query, sent as `app_metadata` of a FlightInfo.

    `table_bytes` are the bytes of all files; `v1_bytes` and `v2_bytes` are estimates for the two access paths. `schema`
    is the table's schema, as an Arrow IPC message in base64. In a query that only counts rows, `groups_counted` row
    groups match entirely and have `rows_counted` rows. The catalog knows this number, so no endpoint has these row
    groups.
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
    """One partition's part of a ticket: the partition's position in the table, its digest, and two lists of row groups.

    `groups` are the row groups to read. `plain` are the row groups of `groups` in which every row passes the filter.
    Both are encoded by `to_runs`.
    """

    position: int
    digest: str
    groups: tuple[int, ...]
    plain: tuple[int, ...] = ()


class Share(Message, frozen=True):
    """The data against which a client checks a stream, sent as `app_metadata` of the stream's endpoint.

    `nodes` are the names of the nodes at the endpoint's locations, in the same order. If the client decodes, `footers`
    and `chunks` have one entry per piece: the blake2b digest of the footer, and the xxh3 of each chunk that the client
    may need (row groups x leaf columns, little-endian). For V2 these are the chunks of the row groups to read, for
    whole files the chunks of all row groups.
    """

    nodes: tuple[str, ...]
    pieces: tuple[Piece, ...]
    leaves: tuple[int, ...] = ()
    footers: tuple[str, ...] = ()
    chunks: tuple[bytes, ...] = ()


def to_runs(numbers: Sequence[int]) -> tuple[int, ...]:
    """Encode ascending numbers as runs of consecutive numbers: the first number and the length of each run."""
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
        raise RequestError(
            "row groups: must be pairs of a first number and a count, none of them negative, and at most "
            f"{MOST_GROUPS} groups in total"
        )
    return [number for first, count in zip(firsts, counts, strict=True) for number in range(first, first + count)]


# --- notes of the batches of a stream -------------------------------------------------------------------


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How far a client has read a stream: partition, row group, and number of rows of that row group's answer. The
    client has everything before this position. A group of -1 is before the first row group."""

    partition: int
    group: int
    rows: int


class Note(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="batch"):
    """The `app_metadata` of a batch: its number in the stream, its position, and a digest over number, position and
    batch.

    `rows` is the number of rows of the row group's answer before this batch. A batch without rows reports progress. The
    digest is 0 for chunks and whole files, which have other digests.
    """

    number: int
    partition: int
    group: int
    rows: int
    digest: int


class Totals(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="totals"):
    """The `app_metadata` of the last batch, which has no rows. A stream without totals is incomplete."""

    batches: int
    rows: int
    groups: int
    limited: bool


# --- uploads, removal, upkeep ----------------------------------------------------------------------------


class Begin(Message, frozen=True):
    """Begin a new version of a table. `avoid` names nodes that are down or full; they get no partition."""

    table: str
    avoid: tuple[str, ...] = ()


class Begun(Message, frozen=True):
    """The name of the upload that was begun."""

    upload: str


class Place(Message, frozen=True):
    """Request the nodes that will store this partition of an upload."""

    upload: str
    position: int
    digest: str
    stored_bytes: int


class Placement(Message, frozen=True):
    """A storage node: its name, and its current Flight address."""

    node: str
    location: str


class Placements(Message, frozen=True):
    """Nodes of a partition. For an upload, the nodes that still need the partition, and the permit to upload it."""

    nodes: tuple[Placement, ...]
    permit: bytes


class OfUpload(Message, frozen=True):
    """Commit or abort this upload."""

    upload: str


class OfTable(Message, frozen=True):
    """Delete this table."""

    table: str


class Committed(Message, frozen=True):
    """The version that is current from now on."""

    version: int


class TableSummary(Message, frozen=True):
    """One table of the catalog. `schema` is an Arrow IPC message in base64."""

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
    """The result of a repair: the findings before it, the numbers of replicas copied, recorded and removed, and the
    failed steps with reasons."""

    findings: tuple[Finding, ...]
    copied: int
    recorded: int
    removed: int
    failed: tuple[str, ...]


class NodeAddress(Message, frozen=True):
    """A registration of a storage node: its name, its address for clients, and its folder.

    `folder` is the identity of the folder. `catalog` is the identity of the catalog to which the folder belongs, or
    None if it belongs to none yet.
    """

    node: str
    location: str
    folder: str
    catalog: str | None


class Registered(Message, frozen=True):
    """The identity of the catalog, to which the node's folder belongs from now on."""

    catalog: str


class OfNode(Message, frozen=True):
    """Forget this node, which is lost permanently."""

    node: str


class Report(Message, frozen=True):
    """Request a report of the node's contents. With `verify`, the node reads every byte."""

    verify: bool = False


class Reported(Message, frozen=True):
    """A node's partitions (bytes and age in seconds by digest), and the damaged partitions."""

    held: dict[str, tuple[int, float]]
    damaged: tuple[str, ...] = ()


class OfDigest(Message, frozen=True):
    """Request the description of this partition."""

    digest: str


class Removing(Message, frozen=True):
    """Remove this partition. `number` is unique per removal; the catalog assigns it."""

    digest: str
    number: int


class Copy(Message, frozen=True):
    """Copy this partition from the node at `location`, which accepts the ticket."""

    digest: str
    stored_bytes: int
    location: str
    ticket: bytes


class Statistics(Message, frozen=True):
    """Resources that a node's process used since it started, for measurements.

    CPU seconds in user and system mode, peak resident bytes, bytes that the process read from and wrote to the device
    (Linux's /proc/self/io), bytes of sent batches, number of requests, maximum number of concurrent requests.
    """

    cpu_s: float
    peak_bytes: int
    device_read_bytes: int
    device_written_bytes: int
    sent_bytes: int
    requests: int
    most_at_once: int


class Health(Message, frozen=True):
    """The reply of a running server: the kind of server and its name."""

    kind: Literal["catalog", "node"]
    name: str


# --- encoding --------------------------------------------------------------------------------------------


def encode(message: msgspec.Struct) -> bytes:
    """Encode a message as JSON."""
    return msgspec.json.encode(message)


def decode(kind: type[MessageT], data: bytes | memoryview, most_bytes: int = REQUEST_BYTES) -> MessageT:
    """Decode a message of `kind` from JSON. Raises RequestError if the data are longer than `most_bytes`, or
    invalid."""
    name = getattr(kind, "__name__", "message")
    if len(data) > most_bytes:
        raise RequestError(
            f"{name}: has {len(data)} bytes, but at most {most_bytes} are allowed; request less per call"
        )
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"{name}: not a message of this protocol ({error})") from None


def decode_note(data: bytes | memoryview) -> Note | Totals:
    """Decode the metadata of a batch. Raises RequestError if the metadata are invalid."""
    try:
        return msgspec.json.decode(data, type=Note | Totals)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"the note in a batch's metadata is not a message of this protocol ({error})") from None


def pack_schema(schema: pa.Schema) -> bytes:
    """Encode a schema as an Arrow IPC message."""
    return schema.serialize().to_pybytes()


def unpack_schema(data: bytes) -> pa.Schema:
    """Decode the output of `pack_schema`, which only servers of near storage send. Raises RequestError if it is
    invalid."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError) as error:
        raise RequestError(f"schema: not an Arrow schema ({error})") from None
