"""Return the text that a terminal shows of a run."""

from __future__ import annotations

import io

from rich.console import Console

from bench_runner.results.records import Run
from reports.text.terminal import show


def shown(run: Run) -> str:
    """Return all tables of a run as text without colours."""
    stream = io.StringIO()
    show(run, Console(file=stream))
    return stream.getvalue()
