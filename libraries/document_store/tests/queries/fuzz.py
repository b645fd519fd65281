"""Random plans over random documents, all ways of execution compared with the reference: few in the tests, many in
`make fuzz-documents`.

python -m libraries.document_store.tests.queries.fuzz 20000
"""

import sys

from hypothesis import HealthCheck, given, settings

from libraries.document_queries.errors import QueryError
from libraries.document_queries.reference import run_over_documents
from libraries.document_queries.tests.strategies import documents, plans
from libraries.document_store.queries.executor import WAYS, execute
from libraries.document_store.tests.queries.memory import MemorySnapshot


def told(rows):
    """Return rows as text that distinguishes 1, 1.0 and True and ignores the order of fields."""

    def ordered(value):
        if isinstance(value, dict):
            return {name: ordered(value[name]) for name in sorted(value)}
        return [ordered(item) for item in value] if isinstance(value, list) else value

    return [repr(ordered(row)) for row in rows]


def answer(make):
    """Return an answer as text, or the message of its error."""
    try:
        return told(make())
    except QueryError as error:
        return f"QueryError: {error}"


def check(found, plan, ways=WAYS, **snapshot):
    """Assert that these ways give the answer of the reference."""
    expected = answer(lambda: run_over_documents(found, plan))
    for way in ways:
        given_answer = answer(lambda way=way: execute(MemorySnapshot(found, **snapshot), plan, way))
        assert given_answer == expected, way


def runs(most):
    """Make a test of `most` random plans, with and without a column of the paths beyond a schema's limit."""

    @settings(max_examples=most, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(documents(), plans())
    def run(found, plan):
        check(found, plan)
        check(found, plan, ways=["columns", "generated-columns"], limit=3)

    return run


if __name__ == "__main__":
    runs(int(sys.argv[1]))()
