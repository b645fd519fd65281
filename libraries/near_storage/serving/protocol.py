"""What catalog, nodes and clients say to each other: JSON messages, and the notes beside each batch of a stream.

A request of any of them is a frozen struct here; whatever does not decode to exactly that is refused with what and
where. Filters and queries travel inside as the JSON of `predicates.wire`, which has limits of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from libraries.near_storage.errors import RequestError

REQUEST_BYTES = 4 << 20
"""The most bytes of a request: descriptors, actions, tickets."""
RECEIPT_BYTES = 256 << 20
"""The most bytes of a node's receipt: 32 bytes for each chunk of a partition, and its schema."""
UPLOAD_BATCH_BYTES = 4 << 20
"""The most bytes of one message of an upload."""

MOST_GROUPS = 1 << 24
"""The most row groups of one partition that a message may name."""

Way: TypeAlias = Literal["v1", "v2", "all"]
"""v1: the node reads Parquet, filters and aggregates. v2: the node sends chunks as they lie, the client does the rest.
all: the node sends whole files, as a store without computation would; only who asks for it gets it."""
Footers: TypeAlias = Literal["cached", "parsed"]
"""Whether V1 keeps parsed footers from one query to the next, or parses those of all partitions for each, as the
thesis's chapter 8.1 does."""

MessageT = TypeVar("MessageT")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with exactly the fields of its struct."""


# --- asking for rows -------------------------------------------------------------------------------------


class Ask(Message, frozen=True):
    """The command of a descriptor: how one asks the catalog for the endpoints of a query.

    Without a `way` the catalog chooses. `version` and `positions` name the partitions of one version again (StaleError
    if it is no longer the current one); `split` gives an endpoint to each partition; `avoid` are names of nodes to go
    to last. For measurements: `footers`, and without `filtered` all rows of the row groups that the filter leaves.
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
    """`app_metadata` of a FlightInfo: what the catalog decided, and by which figures.

    Bytes are of this query: `table_bytes` what fetching all files takes, `v1_bytes` and `v2_bytes` what the two ways
    are estimated to send. `schema` is the table's, as an Arrow IPC message in base64. `rows_counted` are those of
    `groups_counted` row groups that all match where nothing but their number is asked: the catalog knows it, and no
    endpoint has them.
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
    """One partition's part of a ticket: its place in the table, its digest, the row groups to read, and those of them
    of which every row passes the filter. Row groups are told by `to_runs`.
    """

    position: int
    digest: str
    groups: tuple[int, ...]
    plain: tuple[int, ...] = ()


class Share(Message, frozen=True):
    """`app_metadata` of an endpoint: what a client checks its stream against.

    `nodes` are the names of the endpoint's locations, in their order. Where the client decodes, `footers` and
    `chunks` have an entry a piece: the blake2b digest of the footer, and the xxh3 of each chunk that it may need (row
    groups x leaf columns, little-endian): of the row groups to read for V2, of all of them for whole files.
    """

    nodes: tuple[str, ...]
    pieces: tuple[Piece, ...]
    leaves: tuple[int, ...] = ()
    footers: tuple[str, ...] = ()
    chunks: tuple[bytes, ...] = ()


def to_runs(numbers: Sequence[int]) -> tuple[int, ...]:
    """Ascending numbers as runs of neighbours: first and count of each, one behind the other."""
    runs: list[int] = []
    for number in numbers:
        if runs and runs[-2] + runs[-1] == number:
            runs[-1] += 1
        else:
            runs += (number, 1)
    return tuple(runs)


def from_runs(runs: Sequence[int]) -> list[int]:
    """The numbers of `to_runs`; RequestError for what it never makes, and for more than any partition has."""
    firsts, counts = runs[::2], runs[1::2]
    if len(firsts) != len(counts) or min(runs, default=0) < 0 or sum(counts) > MOST_GROUPS:
        raise RequestError(f"row groups: runs of first and count are meant, at most {MOST_GROUPS} groups in all")
    return [number for first, count in zip(firsts, counts, strict=True) for number in range(first, first + count)]


# --- notes beside the batches of a stream ----------------------------------------------------------------


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The last that a client has of a stream: partition, row group, and rows of that group's answer (all: -1)."""

    partition: int
    group: int
    rows: int


class Note(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="batch"):
    """`app_metadata` of a batch: the how manieth of the stream it is, where it belongs, a digest of all that and of it.

    `rows` are the rows of the row group's answer before this batch. A batch without rows says how far the node is.
    """

    number: int
    partition: int
    group: int
    rows: int
    digest: int


class Totals(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="totals"):
    """`app_metadata` of the last batch, which has no rows. A stream without it has not ended."""

    batches: int
    rows: int
    groups: int
    limited: bool


# --- uploads, removal, upkeep ----------------------------------------------------------------------------


class Begin(Message, frozen=True):
    """Begin a new version of a table, leaving out nodes that are known to be down, or full."""

    table: str
    avoid: tuple[str, ...] = ()


class Begun(Message, frozen=True):
    """The name of an upload that has begun."""

    upload: str


class Place(Message, frozen=True):
    """Where does this partition go?"""

    upload: str
    position: int
    digest: str
    stored_bytes: int


class Placement(Message, frozen=True):
    """A storage node: its name, and where Flight finds it now."""

    node: str
    location: str


class Placements(Message, frozen=True):
    """Nodes; for an upload those that must still get the partition, and the permit to put it there."""

    nodes: tuple[Placement, ...]
    permit: bytes


class OfUpload(Message, frozen=True):
    """Commit or abort this upload."""

    upload: str


class OfTable(Message, frozen=True):
    """Describe or delete this table."""

    table: str


class Committed(Message, frozen=True):
    """The version that is the current one from now on."""

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
    """Compare what nodes hold with what the catalog knows; `verify` reads every byte again."""

    verify: bool = False


class Finding(Message, frozen=True):
    """One thing that is not as it should be: its kind, node, partition, a sentence, tables, and whether `repair` mends
    it (`storing.checking`)."""

    kind: str
    node: str | None
    digest: str | None
    text: str
    tables: tuple[str, ...]
    mendable: bool


class Checked(Message, frozen=True):
    """All findings of a check, and how many steps would mend what can be mended."""

    findings: tuple[Finding, ...]
    steps: int


class Repaired(Message, frozen=True):
    """What a repair did: findings before, replicas copied, recorded and removed, steps that failed and why."""

    findings: tuple[Finding, ...]
    copied: int
    recorded: int
    removed: int
    failed: tuple[str, ...]


class NodeAddress(Message, frozen=True):
    """A storage node tells its name, the address that clients reach it by, and what folder it has.

    `folder` is its identity, `catalog` that of the catalog that it belongs to, if it belongs to one already.
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
    """Say what is there; `verify` reads every byte."""

    verify: bool = False


class Reported(Message, frozen=True):
    """A node's partitions (bytes and age in seconds by digest), and which of them are damaged."""

    held: dict[str, tuple[int, float]]
    damaged: tuple[str, ...] = ()


class OfDigest(Message, frozen=True):
    """Describe this partition."""

    digest: str


class Removing(Message, frozen=True):
    """Remove this partition; `number` is the catalog's, for each removal another."""

    digest: str
    number: int


class Copy(Message, frozen=True):
    """Fetch this partition from another node."""

    digest: str
    stored_bytes: int
    location: str
    ticket: bytes


class Statistics(Message, frozen=True):
    """What a node's process used since it started, for measurements.

    CPU seconds of user and system, peak resident bytes, bytes that the device gave and took for this process (Linux's
    /proc/self/io), bytes of batches sent, requests answered, most requests at once.
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
    """The JSON of a message."""
    return msgspec.json.encode(message)


def decode(kind: type[MessageT], data: bytes | memoryview, most_bytes: int = REQUEST_BYTES) -> MessageT:
    """The message of `kind` that the JSON holds; RequestError if it is longer than allowed or anything else."""
    name = getattr(kind, "__name__", "message")
    if len(data) > most_bytes:
        raise RequestError(f"{name}: {len(data)} bytes, at most {most_bytes} are taken; ask for less at once")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"{name}: not a message of this protocol ({error})") from None


def decode_note(data: bytes | memoryview) -> Note | Totals:
    """What stands beside a batch; RequestError if that is no note of ours."""
    try:
        return msgspec.json.decode(data, type=Note | Totals)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"note of a batch: not of this protocol ({error})") from None


def pack_schema(schema: pa.Schema) -> bytes:
    """A schema as the bytes of its Arrow IPC message."""
    return schema.serialize().to_pybytes()


def unpack_schema(data: bytes) -> pa.Schema:
    """The schema of `pack_schema`, which only our own servers send; RequestError if it is none."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError) as error:
        raise RequestError(f"schema: not an Arrow schema ({error})") from None
