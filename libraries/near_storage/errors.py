"""What near storage ends in when it does not end in an answer. Messages are for users: where, what, and what next."""

from __future__ import annotations


class NearStorageError(Exception):
    """Something went wrong that the caller can read about, and often mend."""


class RequestError(NearStorageError):
    """The request itself is wrong: a name, an option, a message that breaks its limits."""


class TooLargeError(RequestError):
    """The request alone needs more memory than the server gives to all of them."""


class PredicateError(RequestError):
    """A filter or query that cannot be meant: an unknown column, a literal that does not fit, SQL beyond ours."""


class FooterError(NearStorageError):
    """The footer of a Parquet file is broken, hostile, or of a kind that is refused."""


class DamagedError(NearStorageError):
    """Bytes are not those that were stored: a digest differs, a stream ended early."""


class NotFoundError(NearStorageError):
    """There is no such table, version or partition."""


class StaleError(NearStorageError):
    """The version that was asked for is no longer served: ask the catalog again."""


class BusyError(NearStorageError):
    """A limit of requests or bytes is reached: come again."""


class FullError(NearStorageError):
    """A disk is full: nothing of the request was kept."""


class UnauthenticatedError(NearStorageError):
    """The token or the ticket is missing, wrong or expired."""


class UnavailableError(NearStorageError):
    """No node that holds what was asked for can be reached."""


class SilentError(UnavailableError):
    """Nobody answers at the address that was called, with which the text begins. To others it is UnavailableError."""
