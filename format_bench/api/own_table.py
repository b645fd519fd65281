"""Tables in memory, given to calls that take the path of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Made = TypeVar("Made")


def takes_tables(verb: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let `data` be a table as well: the call gets a file that holds it, which is gone when it returns.

    Errors name the table, not the file.
    """

    @wraps(verb)
    def call(*positional: Given.args, **named: Given.kwargs) -> Made:
        from data_generator.imported.tables import in_memory

        bound = signature(verb).bind(*positional, **named)
        # A keyword of its own, or one of those that make a request.
        given = bound.arguments if "data" in bound.arguments else bound.arguments.get("wanted", {})
        data = given.get("data")
        if not in_memory.is_given(data):
            return verb(*positional, **named)
        with in_memory.held(data) as table:
            given["data"] = table
            try:
                return verb(*bound.args, **bound.kwargs)
            except Exception as error:
                if error.args and isinstance(error.args[0], str):
                    error.args = (error.args[0].replace(str(table.path), table.title), *error.args[1:])
                raise

    return call
