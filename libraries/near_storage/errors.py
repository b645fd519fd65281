"""Errors of near storage. Messages address users: where, what, and what to do next."""

from __future__ import annotations


class NearStorageError(Exception):
    """Base of all errors that a caller can report and often fix."""


class RequestError(NearStorageError):
    """The request is wrong: a name, an option, or a message that exceeds its limits."""


class TooLargeError(RequestError):
    """The request alone needs more memory than the server has for all requests."""


class PredicateError(RequestError):
    """An invalid filter or query: an unknown column, a literal that does not fit, unsupported SQL."""


class FooterError(NearStorageError):
    """The footer of a Parquet file is broken, hostile or unsupported."""


class DamagedError(NearStorageError):
    """Bytes differ from those that were stored: a wrong digest, a stream that ended early."""


class NotFoundError(NearStorageError):
    """The table, version or partition does not exist."""


class StaleError(NearStorageError):
    """The requested version is no longer served: ask the catalog again."""


class BusyError(NearStorageError):
    """A limit of requests or bytes is reached: retry later."""


class FullError(NearStorageError):
    """A disk is full. Nothing of the request was kept."""


class UnauthenticatedError(NearStorageError):
    """The token or the ticket is missing, wrong or expired."""


class UnavailableError(NearStorageError):
    """No node that holds the requested data can be reached."""


class SilentError(UnavailableError):
    """Nothing answers at the address, which begins the message. Other callers treat it as UnavailableError."""
