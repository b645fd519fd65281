"""The error that this package raises for data that cannot be used."""

from adapters.errors import UserError


class DataError(UserError):
    """Data that cannot be named, made, read or stored."""
