"""The Arrow Flight server of a storage node. A node keeps partitions in a folder, and stores, reads, copies and removes
them.

Clients authenticate with a ticket that the catalog has signed. Other servers of the cluster authenticate with the
cluster's token. `node_streams` creates the stream that answers a ticket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage.errors import (
    BusyError,
    NotFoundError,
    RequestError,
    StaleError,
    TooLargeError,
    UnavailableError,
)
from libraries.near_storage.reading import by_ranges
from libraries.near_storage.serving import clock, security, usage
from libraries.near_storage.serving.guard import GuardedServer, from_flight
from libraries.near_storage.serving.limits import Gate, Limits, Request
from libraries.near_storage.serving.node_streams import Answering, Stream, describing_within
from libraries.near_storage.serving.protocol import (
    UPLOAD_BATCH_BYTES,
    Copy,
    Health,
    Message,
    NodeAddress,
    OfDigest,
    Registered,
    Removing,
    Report,
    Reported,
    Statistics,
    decode,
    encode,
)
from libraries.near_storage.serving.resident import Resident
from libraries.near_storage.serving.rpc import Caller
from libraries.near_storage.serving.security import Tls
from libraries.near_storage.serving.tickets import open_ticket, sign_receipt
from libraries.near_storage.storing.partition_metadata import DESCRIBED_PER_FOOTER
from libraries.near_storage.storing.partitions import PartitionStore

UPLOAD = pa.schema([pa.field("data", pa.large_binary(), nullable=False)])
"""Schema of an upload. Each row is a piece of a Parquet file, of at most `UPLOAD_BATCH_BYTES`."""
ENDING_S = 10.0
"""Seconds that running streams get when a server shuts down."""
DESCRIBING_S, DESCRIBING_PAUSE_S = 60.0, 0.2
"""Maximum wait of a received partition until the node has the memory to describe it, and the pause between attempts.
Each attempt also waits in the gate."""
COPIED_BYTES_PER_S = 1e6
"""Minimum rate of copies between nodes. A slower node counts as hung."""


def copy_s(stored_bytes: int) -> float:
    """Return the time limit for a node to receive one partition from another."""
    return 60 + stored_bytes / COPIED_BYTES_PER_S


class StorageNode(GuardedServer):
    """The Flight server of one node. It serves from construction on; `close` ends it and releases the folder."""

    def __init__(
        self,
        store: PartitionStore,
        name: str,
        secret: bytes,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: Tls | None = None,
        tls_roots: bytes | None = None,
        limits: Limits | None = None,
    ) -> None:
        security.check_secret(secret)
        self.name = name
        self._store = store
        self._secret = secret
        self._limits = limits or Limits()
        self.gate = Gate(self._limits, Resident(self._limits.memory_bytes).tidy)
        # Uploads have a separate gate, because an upload that stalls keeps its turn and must not block queries.
        self._uploads = Gate(self._limits)
        self._answering = Answering(store, self._limits)
        self.sent = self._answering.sent
        token = security.cluster_token(secret)
        self.peers = Caller(token, tls_roots)
        self._actions: dict[str, Callable[[memoryview], Message | bytes]] = {
            "statistics": self._statistics,
            "report": self._report,
            "describe": self._describe,
            "remove": self._remove,
            "copy": self._copy,
        }
        super().__init__(host, port, tls, {security.hash_token(token): "cluster"})

    def close(self, within_s: float = ENDING_S) -> bool:
        """Stop serving and release the folder. Return False if a stream still hangs after `within_s` seconds."""
        ended = self.end(within_s)
        self.peers.close()
        self._store.close()
        return ended

    def register(self, catalog: str, location: str | None = None) -> None:
        """Register this node at the catalog. The folder belongs to that catalog from now on.

        `location` is the address for clients, if it differs from the node's own address. Raises errors of near storage.
        """
        message = NodeAddress(self.name, location or self.location, self._store.identity(), self._store.owner())
        registered = self.peers.ask(catalog, "register", message, Registered)
        self._store.claim(registered.catalog)

    # --- methods of GuardedServer ------------------------------------------------------------------------

    def answer_get(self, context: flight.ServerCallContext, ticket: bytes) -> Stream:
        """Return rows, chunks or files for a ticket of the catalog."""
        grant, wish = open_ticket(self._secret, ticket, clock.now_s(), ("v1", "v2", "all"))
        request = Request(self.gate, context.is_cancelled)
        try:
            with request.admitted():
                schema, batches = self._answering.stream(grant, wish, request)
        except NotFoundError as error:
            raise StaleError(str(error)) from None
        return schema, self._admitted(request, batches)

    def _admitted(
        self, request: Request, batches: Iterator[tuple[pa.RecordBatch, bytes]]
    ) -> Iterator[tuple[pa.RecordBatch, bytes]]:
        # The request is admitted when the first batch is requested, so that an unread stream uses no resources.
        with request.admitted():
            try:
                yield from request.in_turns(batches)
            except NotFoundError as error:
                raise StaleError(str(error)) from None

    def answer_put(
        self,
        context: flight.ServerCallContext,
        command: bytes,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Store the partition that a permit (a ticket for an upload) names. Send the receipt once the partition is on
        disk."""
        grant, _ = open_ticket(self._secret, command, clock.now_s(), ("put",))
        if not reader.schema.equals(UPLOAD):
            raise RequestError(
                "upload: must have exactly one column, 'data', of type large_binary and not nullable "
                f"(got the columns {reader.schema.names})"
            )
        (piece,) = grant.pieces
        limit_bytes = min(grant.stored_bytes, self._limits.partition_bytes)
        if grant.stored_bytes > limit_bytes:
            raise RequestError(
                f"upload: the partition has {grant.stored_bytes:,} bytes, but this node allows {limit_bytes:,}: upload "
                "smaller partitions"
            )
        with self._uploads.admitting():
            info = self._store.put(_uploaded(reader), piece.digest, limit_bytes, self._describing_upload)
        writer.write(pa.py_buffer(sign_receipt(self._secret, grant.upload, self.name, info.encode())))

    def answer_action(self, context: flight.ServerCallContext, name: str, body: memoryview) -> bytes:
        """Run an action. Everyone may request `health`; other actions are for servers of the cluster."""
        if name == "health":
            return encode(Health("node", self.name))
        security.require(context, "cluster")
        action = self._actions.get(name)
        if action is None:
            raise RequestError(f"{name!r}: not an action of a node; the actions are {', '.join(self._actions)}")
        reply = action(body)
        return reply if isinstance(reply, bytes) else encode(reply)

    # --- actions -----------------------------------------------------------------------------------------

    def _statistics(self, body: memoryview) -> Statistics:
        return Statistics(*usage.of_this_process(), self.sent.batch_bytes, self.gate.admitted, self.gate.most_inside)

    def _report(self, body: memoryview) -> Reported:
        asked = decode(Report, body)
        # A report without `verify` only lists the folder. It does not wait for queries, so a busy node does not seem
        # gone.
        with self.gate.admitting() if asked.verify else nullcontext():
            report = self._store.report(clock.now_s(), asked.verify)
        held = {digest: (found.stored_bytes, found.age_s) for digest, found in report.held.items()}
        return Reported(held, tuple(sorted(report.damaged)))

    def _describe(self, body: memoryview) -> bytes:
        with self.gate.admitting() as request:
            return self._store.info(decode(OfDigest, body).digest, describing_within(request)).encode()

    def _remove(self, body: memoryview) -> bytes:
        asked = decode(Removing, body)
        self._store.remove(asked.digest, asked.number)
        return b""

    def _copy(self, body: memoryview) -> bytes:
        """Copy a partition from another node; return its description once it is on disk."""
        asked = decode(Copy, body)
        with self._uploads.admitting():
            info = self._store.put(self._from_node(asked), asked.digest, asked.stored_bytes, self._describing_copy)
        return info.encode()

    @contextmanager
    def _describing_upload(self, footer_bytes: int) -> Iterator[None]:
        """Hold the memory that describing an upload takes. Raises TooLargeError if no request may have that much."""
        try:
            claimed = self._claimed(
                DESCRIBED_PER_FOOTER * footer_bytes, f"an upload with a footer of {footer_bytes:,} bytes"
            )
        except TooLargeError as error:
            reason = str(error).partition(";")[0]
            raise TooLargeError(f"{reason}; write larger row groups, or smaller partitions") from None
        with claimed:
            yield

    @contextmanager
    def _describing_copy(self, footer_bytes: int) -> Iterator[None]:
        """Hold the memory that describing a copy takes, or all memory of requests if that is less.

        The cluster already has this partition, possibly from a release without this limit, and must be able to repair
        it.
        """
        needed = min(DESCRIBED_PER_FOOTER * footer_bytes, self.gate.memory_bytes)
        with self._claimed(needed, f"a copy with a footer of {footer_bytes:,} bytes"):
            yield

    def _claimed(self, needed: int, what: str) -> ExitStack:
        """Claim memory without keeping a turn, and return the context that releases it.

        While the node is busy, retry for up to `DESCRIBING_S`, because the caller would have to send the partition
        again.
        """
        until_s = clock.elapsed_s() + DESCRIBING_S
        while True:
            try:
                with ExitStack() as stack:
                    request = stack.enter_context(self.gate.admitting())
                    request.claim(needed, what)
                    # A child process computes, and a slow one must not block queries.
                    self.gate.give_turn(request)
                    return stack.pop_all()
            except BusyError:
                if clock.elapsed_s() > until_s:
                    raise
            if self._ending.wait(DESCRIBING_PAUSE_S):
                raise UnavailableError("the server is shutting down")

    def _from_node(self, asked: Copy) -> Iterator[memoryview]:
        client = self.peers.client(asked.location)
        try:
            options = self.peers.options(copy_s(asked.stored_bytes), with_token=False)
            for chunk in client.do_get(flight.Ticket(asked.ticket), options):
                if chunk.data is not None and chunk.data.num_rows:
                    yield from (part.data for part in by_ranges.each(chunk.data))
        except (pa.ArrowException, OSError) as error:
            raise from_flight(error) from None


def _uploaded(reader: flight.MetadataRecordBatchReader) -> Iterator[memoryview]:
    while True:
        try:
            batch = reader.read_chunk().data
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as error:
            raise UnavailableError(f"upload: interrupted ({type(error).__name__})") from None
        if batch is None:
            raise RequestError("upload: a message has no data")
        if batch.nbytes > UPLOAD_BATCH_BYTES + (1 << 16):
            raise RequestError(f"upload: a message has {batch.nbytes} bytes, at most {UPLOAD_BATCH_BYTES} are allowed")
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid:
            raise RequestError("upload: a message is not a valid batch") from None
        for value in batch.column(0):
            if not value.is_valid:
                raise RequestError("upload: a piece is null")
            yield memoryview(value.as_buffer())
