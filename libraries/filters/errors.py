"""Errors about filters. Messages are for users: they name the problem and the next step."""


class ReportedError(Exception):
    """Base of all errors of filters and of near storage. Callers show the message to the user, who can often fix the
    cause."""


class RequestError(ReportedError):
    """The request is wrong: a name, an option, or a message that exceeds its limits."""


class PredicateError(RequestError):
    """An invalid filter or query: an unknown column, a literal that does not fit, unsupported SQL."""
