"""Reading what the kernel tells in files: /proc, /sys and the like. What is not there is None, never an error."""

from __future__ import annotations

import re
from pathlib import Path

SYSTEM = Path("/")
"""Where /proc and /sys are looked for; tests name another folder."""


def text_of(path: Path) -> str | None:
    """The file's text without the blanks around it; None when there is none to be had."""
    try:
        return path.read_text(errors="replace").strip("\0\n ") or None
    except OSError:
        return None


def field_of(path: Path, name: str) -> str | None:
    """The first `name: value` of a file of such lines."""
    for line in (text_of(path) or "").splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip() or None
    return None


def choice_of(path: Path) -> str | None:
    """The choice that the kernel puts in brackets: 'always [madvise] never'."""
    match = re.search(r"\[(\w+)\]", text_of(path) or "")
    return match[1] if match else None


def unescaped(text: str) -> str:
    """mountinfo writes blank, tab, newline and backslash as octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
