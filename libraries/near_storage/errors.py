"""Errors of near storage. Messages are for users and name the location, the problem and the next step."""

from libraries.filters.errors import PredicateError as PredicateError
from libraries.filters.errors import ReportedError as NearStorageError
from libraries.filters.errors import RequestError as RequestError


class TooLargeError(RequestError):
    """The request alone needs more memory than the server has for all requests."""


class FooterError(NearStorageError):
    """The footer of a Parquet file is broken, hostile or unsupported."""


class DamagedError(NearStorageError):
    """Bytes differ from the stored bytes: a digest is wrong, or a stream ended early."""


class NotFoundError(NearStorageError):
    """The table, version or partition does not exist."""


class StaleError(NearStorageError):
    """The requested version is no longer served. Ask the catalog for the current version."""


class BusyError(NearStorageError):
    """A limit of requests or bytes is reached. Retry later."""


class FullError(NearStorageError):
    """A disk is full. Nothing of the request was kept."""


class UnauthenticatedError(NearStorageError):
    """The token or the ticket is missing, wrong or expired."""


class UnavailableError(NearStorageError):
    """No node that holds the requested data can be reached."""


class SilentError(UnavailableError):
    """No server answers at the called address. The error message begins with this address. Most callers handle this
    error like any UnavailableError."""
