"""The one error that F3 files and calls end in. It knows nothing of the format."""

from __future__ import annotations


class F3Error(Exception):
    """What is wrong, and where: a path, a section, a column, an EncUnit, an offset. The message is for the user."""
