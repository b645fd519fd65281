"""Read facts from files of the kernel in /proc and /sys. If a fact is missing, functions return None instead of raising
an error."""

from __future__ import annotations

import re
from pathlib import Path

SYSTEM = Path("/")
"""Root of /proc and /sys. Tests use another folder."""


def text_of(path: Path) -> str | None:
    """Return the file's text without surrounding blanks, or None if the file is empty or cannot be read."""
    try:
        return path.read_text(errors="replace").strip("\0\n ") or None
    except OSError:
        return None


def field_of(path: Path, name: str) -> str | None:
    """Return the first value of the field `name` in a file with lines `name: value`, or None."""
    for line in (text_of(path) or "").splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip() or None
    return None


def choice_of(path: Path) -> str | None:
    """Return the choice that the kernel marks with brackets, such as 'madvise' in 'always [madvise] never'."""
    match = re.search(r"\[(\w+)\]", text_of(path) or "")
    return match[1] if match else None


def unescaped(text: str) -> str:
    """Return the text with octal escapes replaced by their characters. The kernel escapes blanks, tabs, newlines and
    backslashes in mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
