"""The one error of this room: printed to the user without a traceback, so the message carries everything."""


class DataError(Exception):
    """Data that cannot be named, made, read or kept: where, what, got against allowed, the next step."""
