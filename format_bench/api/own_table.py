"""Make functions that take the path of a table also accept a table in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Made = TypeVar("Made")


def takes_tables(verb: Callable[Given, Made]) -> Callable[Given, Made]:
    """Decorate a function so that its argument `data` may be a table in memory.

    The table is written to a temporary file for the duration of the call. Error messages name the table instead of this
    file.
    """

    @wraps(verb)
    def call(*positional: Given.args, **named: Given.kwargs) -> Made:
        from data_generator.imported.tables import in_memory

        bound = signature(verb).bind(*positional, **named)
        # `data` is a parameter of the function, or a part of its keyword arguments **wanted.
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
