"""Write the source of a function line by line, compile the source together with the values that it uses, and cache the
function.

Names and constants of plans and documents are passed as parameters with numbered names. They are never part of the
source, so they cannot become code.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

MOST_FUNCTIONS = 256
"""Maximum number of cached functions; the least recently used are evicted."""


class FunctionSource:
    """The lines of one function, and the values that it closes over."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._values: dict[str, Any] = {}
        self._indent = 1
        self._names = 0

    def line(self, text: str) -> None:
        """Append a line with the current indentation."""
        self._lines.append("    " * self._indent + text)

    def place(self) -> int:
        """Return the position of the next line."""
        return len(self._lines)

    def insert(self, place: int, text: str) -> None:
        """Insert a line at an earlier `place`, with the current indentation."""
        self._lines.insert(place, "    " * self._indent + text)

    def name(self, of: str) -> str:
        """Return a new variable name that begins with `of`."""
        self._names += 1
        return f"{of}{self._names}"

    def variable(self, of: str, expression: str) -> str:
        """Assign an expression to a new variable, and return the variable's name."""
        name = self.name(of)
        self.line(f"{name} = {expression}")
        return name

    def value(self, value: Any) -> str:
        """Return a name for a value. The value is passed to the function, not written into the function's source."""
        name = self.name("C")
        self._values[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines written inside the `with` block under a statement that begins with `head`."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def compiled(self, parameters: str, given: dict[str, Any]) -> Callable[..., Any]:
        """Compile the function with these parameters. `given` maps names that the source uses to modules and
        functions."""
        names = sorted(self._values)
        text = "\n".join((f"def generated({parameters}):", *self._lines, ""))
        scope: dict[str, Any] = {**given, **{name: self._values[name] for name in names}}
        exec(compile(text, "<generated query>", "exec"), scope)
        function: Callable[..., Any] = scope["generated"]
        function.__doc__ = text
        return function


class Cache:
    """Functions by key. Thread-safe."""

    def __init__(self, most: int = MOST_FUNCTIONS) -> None:
        self._functions: OrderedDict[Hashable, Any] = OrderedDict()
        self._most = most
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the function for this key. If it is not cached, create it with `make`."""
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
