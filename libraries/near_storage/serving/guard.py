"""No exception reaches Flight as it is: Flight would send its traceback, with every path, to the caller.

Errors of ours travel as their kind and their text, whatever else happens becomes a number here and the same number in
the server's log. The other direction is here too: from what Flight raises at a caller to an error of ours.
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
"""The most that is told of an error: a hostile request is not sent back whole."""

KINDS: dict[str, type[NearStorageError]] = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, NearStorageError)
}
"""The errors that keep their kind on the way."""

_PATH = re.compile(r"(?:(?<![\w.~/:])~?/+|(?<=:)/(?!/))[^\s'\":,;)]+|(?<!\w)[A-Za-z]:\\[^\s'\"]+")
_DETAIL = re.compile(r"\. Detail: |\. gRPC client debug context: ", re.DOTALL)
_GRPC = re.compile(r"Flight returned \w+ error, with message: (failed to connect to all addresses; last error: \w+: )?")
"""What stands before the reason for which a server cannot be reached."""

_ADDRESS_STEPS = {
    errno.EADDRINUSE: "another program does: name another port by --port, 0 for any that is free",
    errno.EACCES: "only root may at this port: name one from 1024 on by --port, 0 for any that is free",
}

ResultT = TypeVar("ResultT")


class Told(msgspec.Struct, frozen=True):
    """What travels beside a Flight error."""

    kind: str
    message: str


def to_flight(error: BaseException) -> flight.FlightError:
    """The Flight error that tells of an exception no more than a caller may know."""
    if isinstance(error, flight.FlightError):
        return error
    ours = error if isinstance(error, NearStorageError) else _ours(error)
    # Silence is of whom this server called: its caller would take it for the server's own.
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
        return errors.BusyError("out of memory for this request: come again, or ask for less at once")
    number = secrets.token_hex(4)
    LOG.error("failure %s", number, exc_info=error)
    return NearStorageError(f"failure {number} at the server: its log tells more under this number")


def pathless(text: str) -> str:
    """The text without anything that looks like a path, and not too long."""
    short = text if len(text) <= MESSAGE_CHARACTERS else text[:MESSAGE_CHARACTERS] + " ..."
    return _PATH.sub("[path]", short)


def from_flight(error: BaseException) -> NearStorageError:
    """The error of ours behind what a call to a server raised."""
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
        return errors.UnavailableError(f"the server's answer broke off: {text}")
    raise error


def from_call(location: str, error: BaseException) -> NearStorageError:
    """The same of a call to `location`: SilentError where the server told nothing itself."""
    ours = from_flight(error)
    if ours is error or type(ours) is not errors.UnavailableError or getattr(error, "extra_info", None):
        return ours
    return errors.SilentError(f"{location} does not answer ({_GRPC.sub('', str(ours))})")


def guarded(work: Callable[[], ResultT]) -> ResultT:
    """What `work` returns, or the Flight error of what it raises."""
    try:
        return work()
    except Exception as error:
        raise to_flight(error) from None


def guarded_stream(items: Iterable[ResultT]) -> Iterator[ResultT]:
    """The same items; closed with it, and with the Flight error of what it raises."""
    try:
        yield from items
    except Exception as error:
        raise to_flight(error) from None


def check_free(host: str, port: int) -> None:
    """RequestError where nobody can listen at this address now: asked before anything is made for a server there."""
    name = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listening:
            # As gRPC asks for it: what a server that has ended left behind is no hindrance.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
    except OSError as error:
        # One of names has no number of the system's.
        step = _ADDRESS_STEPS.get(error.errno or 0, "name an address of this machine by --host")
        raise RequestError(f"{host}:{port}: cannot listen there ({error.strerror or error})\n  {step}") from None


class GuardedServer(flight.FlightServerBase):
    """A Flight server of which every way in is guarded. Subclasses answer by the `answer_...` methods.

    GetSchema never gets here: `security.BearerFactory` refuses it.

    What they do not answer is refused by name, where Flight would answer with a traceback. It answers from construction
    on, so that subclasses make what they need first. `roles` are hashes of tokens and what they allow.
    """

    def __init__(self, host: str, port: int, tls: Tls | None, roles: Mapping[str, Role]) -> None:
        """Listen; port 0 takes any that is free. RequestError if the address cannot be had or must not be served."""
        check_address(host, tls)
        scheme = "grpc" if tls is None else "grpc+tls"
        # An address of IPv6 has colons itself.
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
                f"{host}:{port}: cannot listen there; another process may, or the certificate and key do not fit\n"
                "  name another port by --port, 0 for any that is free, or see to the certificate"
            ) from None
        self.location = f"{scheme}://{host}:{self.port}"

    def end(self, within_s: float) -> bool:
        """Stop answering: streams break off with an error. False if one still hangs after `within_s` seconds."""
        self._ending.set()
        ending = threading.Thread(target=self.shutdown, name="near-storage-ending", daemon=True)
        ending.start()
        ending.join(within_s)
        return not ending.is_alive()

    def answer_get(
        self, context: flight.ServerCallContext, ticket: bytes
    ) -> tuple[pa.Schema, Iterator[tuple[pa.RecordBatch, bytes]]]:
        """The stream of a ticket: its schema, and batches with what stands beside them."""
        raise RequestError("this server sends no data")

    def answer_put(
        self,
        context: flight.ServerCallContext,
        command: bytes,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Take an upload."""
        raise RequestError("this server takes no data")

    def answer_info(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
        """The endpoints of a query."""
        raise RequestError("this server plans no queries; ask the catalog")

    def answer_list(self, context: flight.ServerCallContext) -> list[flight.FlightInfo]:
        """All that can be asked for."""
        raise RequestError("this server lists no tables; ask the catalog")

    def answer_action(self, context: flight.ServerCallContext, name: str, body: memoryview) -> bytes:
        """Do something, and say how it went."""
        raise RequestError(f"{name!r}: no such action")

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Flight's DoGet."""

        def work() -> flight.FlightDataStream:
            schema, batches = self.answer_get(context, ticket.ticket)
            return flight.GeneratorStream(schema, guarded_stream(self._until_the_end(batches)))

        return guarded(work)

    def _until_the_end(self, batches: Iterator[tuple[pa.RecordBatch, bytes]]) -> Iterator[tuple[pa.RecordBatch, bytes]]:
        for batch in batches:
            if self._ending.is_set():
                raise errors.UnavailableError("the server is ending")
            yield batch

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Flight's DoPut."""
        guarded(lambda: self.answer_put(context, _command(descriptor), reader, writer))

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Flight's GetFlightInfo."""
        return guarded(lambda: self.answer_info(context, descriptor))

    def list_flights(self, context: flight.ServerCallContext, criteria: bytes) -> Iterator[flight.FlightInfo]:
        """Flight's ListFlights."""
        return guarded_stream(guarded(lambda: self.answer_list(context)))

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """Flight's DoAction: one result each."""
        return iter([guarded(lambda: self.answer_action(context, action.type, memoryview(action.body)))])

    def list_actions(self, context: flight.ServerCallContext) -> list[flight.ActionType]:
        """Flight's ListActions: none is told to strangers."""
        return []

    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> None:
        """Flight's DoExchange, which nothing here needs."""
        raise to_flight(RequestError("this server exchanges no streams"))


def _command(descriptor: flight.FlightDescriptor) -> bytes:
    return descriptor.command or b""
