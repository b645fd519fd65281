"""The command line, with one module per command, and the Python API that the commands call.

from format_bench import run, recommend, report, compare, ask, document_store, f3, near_storage
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from format_bench.thread_variables import make_readable

_OFFERED = {
    "ReadOptions": "data_generator.imported.read_options",
    "ask": "format_bench.api.ask",
    "compare": "format_bench.api.compare",
    "convert": "format_bench.api.convert",
    "document_store": "libraries.document_store",
    "f3": "libraries.f3",
    "inspect": "format_bench.api.inspect",
    "near_storage": "libraries.near_storage",
    "recommend": "format_bench.api.recommend",
    "report": "format_bench.api.report",
    "run": "format_bench.api.run",
}

__all__ = [
    *("ReadOptions", "ask", "compare", "convert", "document_store", "f3", "inspect", "near_storage", "recommend"),
    *("report", "run"),
]


def __getattr__(name: str) -> Any:
    """Import a name of the API when it is first used, so that `--help` does not load pandas."""
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    make_readable()
    module = import_module(_OFFERED[name])
    return module if _OFFERED[name].startswith("libraries.") else getattr(module, name)
