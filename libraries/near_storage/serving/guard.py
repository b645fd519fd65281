"""Convert exceptions at the network boundary, because Flight would send a traceback with file paths to the caller.

Errors of near storage are sent as kind and text. Any other exception is logged under a number, and only the number is
sent. On the calling side, this module converts Flight's exceptions back to errors of near storage.
"""

from __future__ import annotations

import errno
import logging
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.flight as flight

from libraries.near_storage import errors
from libraries.near_storage.errors import NearStorageError, RequestError
from libraries.near_storage.serving.security import BEARER, BearerFactory, Role, Tls, check_address

LOG = logging.getLogger("near_storage")

MESSAGE_CHARACTERS = 2_000
"""Maximum length of an error text, so that a hostile request is not sent back completely."""

KINDS: dict[str, type[NearStorageError]] = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, NearStorageError)
}
"""Error classes by name. An error of these classes arrives at the caller as an error of the same class."""

_PATH = re.compile(r"(?:(?<![\w.~/:])~?/+|(?<=:)/(?!/))[^\s'\":,;)]+|(?<!\w)[A-Za-z]:\\[^\s'\"]+")
_DETAIL = re.compile(r"\. Detail: |\. gRPC client debug context: ", re.DOTALL)
_GRPC = re.compile(r"Flight returned \w+ error, with message: (failed to connect to all addresses; last error: \w+: )?")
"""Matches the text that Flight and gRPC write before the reason why a server cannot be reached."""

_ADDRESS_STEPS = {
    errno.EADDRINUSE: "another program uses the port: give another one with --port (0: any free port)",
    errno.EACCES: "only root can use this port: give one of at least 1024 with --port (0: any free port)",
}

ResultT = TypeVar("ResultT")


class Told(msgspec.Struct, frozen=True):
    """Metadata of a Flight error: the name of the error's class, and the message."""

    kind: str
    message: str


def to_flight(error: BaseException) -> flight.FlightError:
    """Return the Flight error to send for an exception. It contains only what the caller may know, e.g. no file
    paths."""
    if isinstance(error, flight.FlightError):
        return error
    ours = error if isinstance(error, NearStorageError) else _ours(error)
    # A SilentError is about a server that this server called. The caller would think that this server is silent.
    kind = errors.UnavailableError if isinstance(ours, errors.SilentError) else type(ours)
    told = Told(kind.__name__, pathless(str(ours)))
    extra = msgspec.json.encode(told)
    if isinstance(ours, errors.UnauthenticatedError):
        return flight.FlightUnauthenticatedError(told.message, extra)
    if isinstance(ours, errors.BusyError | errors.UnavailableError):
        return flight.FlightUnavailableError(told.message, extra)
    return flight.FlightServerError(told.message, extra)


def _ours(error: BaseException) -> NearStorageError:
    if isinstance(error, MemoryError):
        return errors.BusyError("not enough memory for this request: retry later, or request less at once")
    number = secrets.token_hex(4)
    LOG.error("internal error %s", number, exc_info=error)
    return NearStorageError(f"internal error {number} at the server: its log has details under this number")


def pathless(text: str) -> str:
    """Return the text, shortened to the limit, without parts that look like paths."""
    short = text if len(text) <= MESSAGE_CHARACTERS else text[:MESSAGE_CHARACTERS] + " ..."
    return _PATH.sub("[path]", short)


def from_flight(error: BaseException) -> NearStorageError:
    """Return the error of near storage for an exception that a call to a server raised."""
    if isinstance(error, NearStorageError):
        return error
    extra = getattr(error, "extra_info", None)
    if extra:
        try:
            told = msgspec.json.decode(extra, type=Told)
        except msgspec.DecodeError:
            told = Told("", "")
        if told.kind in KINDS:
            return KINDS[told.kind](told.message)
    text = pathless(_DETAIL.split(str(error))[0])
    if isinstance(error, flight.FlightUnauthenticatedError):
        return errors.UnauthenticatedError(text)
    if isinstance(error, flight.FlightUnavailableError | flight.FlightTimedOutError | flight.FlightCancelledError):
        return errors.UnavailableError(text)
    if isinstance(error, flight.FlightError | pa.ArrowException | OSError):
        return errors.UnavailableError(f"the server's answer was interrupted: {text}")
    raise error


def from_call(location: str, error: BaseException) -> NearStorageError:
    """Return the error of near storage for a failed call to `location`. This is a SilentError if no server sent the
    error."""
    ours = from_flight(error)
    if ours is error or type(ours) is not errors.UnavailableError or getattr(error, "extra_info", None):
        return ours
    return errors.SilentError(f"{location} does not answer ({_GRPC.sub('', str(ours))})")


def guarded(work: Callable[[], ResultT]) -> ResultT:
    """Return the result of `work`, or raise the Flight error for its exception."""
    try:
        return work()
    except Exception as error:
        raise to_flight(error) from None


def guarded_stream(items: Iterable[ResultT]) -> Iterator[ResultT]:
    """Yield the items. Convert an exception to its Flight error. Closing this iterator closes `items`."""
    try:
        yield from items
    except Exception as error:
        raise to_flight(error) from None


def check_free(host: str, port: int) -> None:
    """Raise RequestError if no server can listen at this address. Called before files for a server are created."""
    name = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listening:
            # Set by gRPC too, so that connections left by a server that has ended do not block the port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
    except OSError as error:
        # Errors of name resolution have no errno.
        step = _ADDRESS_STEPS.get(error.errno or 0, "give an address of this machine with --host")
        raise RequestError(f"{host}:{port}: cannot listen there ({error.strerror or error})\n  {step}") from None


class GuardedServer(flight.FlightServerBase):
    """A Flight server that converts the exceptions of all its calls to errors that may be sent.

    Subclasses override the `answer_...` methods. A call is refused with an error if the subclass does not override the
    method for this call. GetSchema is refused earlier, by `security.BearerFactory`. The server accepts calls from
    construction on, so subclasses create their state first. `roles` maps hashes of tokens to roles.
    """

    def __init__(self, host: str, port: int, tls: Tls | None, roles: Mapping[str, Role]) -> None:
        """Listen at the address; port 0 means any free port. Raises RequestError for an unavailable or forbidden
        address."""
        check_address(host, tls)
        scheme = "grpc" if tls is None else "grpc+tls"
        # IPv6 addresses contain colons.
        host = f"[{host.strip('[]')}]" if ":" in host else host
        self._ending = threading.Event()
        try:
            super().__init__(
                f"{scheme}://{host}:{port}",
                tls_certificates=None if tls is None else [(tls.certificate, tls.key)],
                middleware={BEARER: BearerFactory(roles)},
            )
        except pa.ArrowException:
            raise RequestError(
                f"{host}:{port}: cannot listen there; the port is in use, or the certificate and key do not match\n"
                "  give another port with --port (0: any free port), or check the certificate"
            ) from None
        self.location = f"{scheme}://{host}:{self.port}"

    def end(self, within_s: float) -> bool:
        """Stop serving; streams end with an error. Return False if a stream still hangs after `within_s` seconds."""
        self._ending.set()
        ending = threading.Thread(target=self.shutdown, name="near-storage-ending", daemon=True)
        ending.start()
        ending.join(within_s)
        return not ending.is_alive()

    def answer_get(
        self, context: flight.ServerCallContext, ticket: bytes
    ) -> tuple[pa.Schema, Iterator[tuple[pa.RecordBatch, bytes]]]:
        """Return the stream of a ticket: its schema, and batches with their metadata."""
        raise RequestError("this server sends no data")

    def answer_put(
        self,
        context: flight.ServerCallContext,
        command: bytes,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Receive an upload."""
        raise RequestError("this server takes no data")

    def answer_info(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        """Return the endpoints of a query."""
        raise RequestError("this server does not plan queries; send the query to the catalog")

    def answer_list(self, context: flight.ServerCallContext) -> list[flight.FlightInfo]:
        """Return all tables that can be requested."""
        raise RequestError("this server lists no tables; ask the catalog")

    def answer_action(self, context: flight.ServerCallContext, name: str, body: memoryview) -> bytes:
        """Run an action and return its reply."""
        raise RequestError(f"{name!r}: unknown action")

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Serve Flight's DoGet."""

        def work() -> flight.FlightDataStream:
            schema, batches = self.answer_get(context, ticket.ticket)
            return flight.GeneratorStream(schema, guarded_stream(self._until_the_end(batches)))

        return guarded(work)

    def _until_the_end(self, batches: Iterator[tuple[pa.RecordBatch, bytes]]) -> Iterator[tuple[pa.RecordBatch, bytes]]:
        for batch in batches:
            if self._ending.is_set():
                raise errors.UnavailableError("the server is shutting down")
            yield batch

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Serve Flight's DoPut."""
        guarded(lambda: self.answer_put(context, _command(descriptor), reader, writer))

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Serve Flight's GetFlightInfo."""
        return guarded(lambda: self.answer_info(context, descriptor))

    def list_flights(self, context: flight.ServerCallContext, criteria: bytes) -> Iterator[flight.FlightInfo]:
        """Serve Flight's ListFlights."""
        return guarded_stream(guarded(lambda: self.answer_list(context)))

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """Serve Flight's DoAction with one result per action."""
        return iter([guarded(lambda: self.answer_action(context, action.type, memoryview(action.body)))])

    def list_actions(self, context: flight.ServerCallContext) -> list[flight.ActionType]:
        """Serve Flight's ListActions with an empty list, because callers may be unauthenticated."""
        return []

    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> None:
        """Refuse Flight's DoExchange, which is not used."""
        raise to_flight(RequestError("this server does not support DoExchange"))


def _command(descriptor: flight.FlightDescriptor) -> bytes:
    return descriptor.command or b""
