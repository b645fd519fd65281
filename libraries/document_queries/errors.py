"""The exception for plans that cannot be answered."""


class QueryError(Exception):
    """A plan is invalid, or a document store or an execution method does not support the plan."""
