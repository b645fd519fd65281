"""Generated source: how its lines are written, how values get into it, how it becomes a function, and how that is
kept.

Whatever comes from a plan or a document enters as a parameter named by a number, never as text of the source: no name
and no constant can become code.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

MOST_FUNCTIONS = 256
"""Compiled functions that are kept, the latest used ones."""


class FunctionSource:
    """The lines of one function, and the values that it closes over."""

    def __init__(self) -> None:
        """With no lines."""
        self._lines: list[str] = []
        self._values: dict[str, Any] = {}
        self._indent = 1
        self._names = 0

    def line(self, text: str) -> None:
        """One more line, indented as what is around it."""
        self._lines.append("    " * self._indent + text)

    def place(self) -> int:
        """Where the next line will stand."""
        return len(self._lines)

    def insert(self, place: int, text: str) -> None:
        """A line before those that came since `place`, indented as what is around it."""
        self._lines.insert(place, "    " * self._indent + text)

    def name(self, of: str) -> str:
        """A new name for a variable, which begins with `of`."""
        self._names += 1
        return f"{of}{self._names}"

    def variable(self, of: str, expression: str) -> str:
        """A new variable with the value of an expression; gives its name."""
        name = self.name(of)
        self.line(f"{name} = {expression}")
        return name

    def value(self, value: Any) -> str:
        """A name for a value that is given to the function, not written into it."""
        name = self.name("C")
        self._values[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """The lines within belong to a statement that begins with `head`."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def compiled(self, parameters: str, given: dict[str, Any]) -> Callable[..., Any]:
        """The function with these parameters; `given` are modules and functions that it calls by name."""
        names = sorted(self._values)
        text = "\n".join((f"def generated({parameters}):", *self._lines, ""))
        scope: dict[str, Any] = {**given, **{name: self._values[name] for name in names}}
        exec(compile(text, "<generated query>", "exec"), scope)
        function: Callable[..., Any] = scope["generated"]
        function.__doc__ = text
        return function


class Cache:
    """Functions by what they were made for; safe for several threads."""

    def __init__(self, most: int = MOST_FUNCTIONS) -> None:
        """Empty."""
        self._functions: OrderedDict[Hashable, Any] = OrderedDict()
        self._most = most
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made for this key, made now if need be."""
        with self._lock:
            if key in self._functions:
                self._functions.move_to_end(key)
                return self._functions[key]
        made = make()
        with self._lock:
            self._functions[key] = made
            while len(self._functions) > self._most:
                self._functions.popitem(last=False)
        return made
