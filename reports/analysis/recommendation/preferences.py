"""What a user wants of a format: weights, needs and limits, parsed from the command line's words.

This module knows neither samples nor formats.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

WEIGHED = {
    "read": "read time",
    "save": "save time",
    "size": "size",
    "read_memory": "read peak memory",
    "save_memory": "save peak memory",
}
"""What can be weighed, with its title in every report."""

NEEDS = ("append", "projection", "types", "nested", "no-pickle", "other-languages", "single-file")
"""What can be needed; the words are those of adapters.contract.Can."""

STAGES = ("established", "young", "experimental")
"""How far a format has come, the surest first; the words are those of adapters.contract.Stage."""

_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class PreferenceError(Exception):
    """A wish that makes no sense; the message is for the user."""


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """What decides. Weights are at least 0, and one of them is more; `reads_per_save` joins save and read time into the
    time of one save and so many reads; `bandwidth_bytes_per_s` adds the transfer of what is stored to both. `accept` is
    the last of the STAGES that may be recommended: what has not come so far is shown, and never recommended."""

    weights: Mapping[str, float] = field(default_factory=lambda: {"read": 3.0, "size": 2.0, "save": 1.0})
    needs: tuple[str, ...] = ()
    max_memory_bytes: int | None = None
    reads_per_save: float | None = None
    bandwidth_bytes_per_s: float | None = None
    accept: str = STAGES[0]

    def accepts(self, stage: str) -> bool:
        """Whether a format of this stage may be recommended; of one that this version does not know, if all may."""
        return stage in STAGES[: STAGES.index(self.accept) + 1] or self.accept == STAGES[-1]


def parse_weights(text: str) -> dict[str, float]:
    """'read=3,size=2' as {'read': 3.0, 'size': 2.0}. Raises PreferenceError."""
    weights: dict[str, float] = {}
    for part in _parts(text):
        name, sign, number = part.partition("=")
        name = name.strip().replace("-", "_")
        if name not in WEIGHED:
            raise PreferenceError(f"--prefer {part!r}: nothing is called {name!r}{_near(name, WEIGHED)}")
        if name in weights:
            raise PreferenceError(f"--prefer: {name} stands there twice; give it one weight")
        try:
            weight = float(number) if sign else 1.0
        except ValueError:
            weight = -1.0
        if not (math.isfinite(weight) and weight >= 0):
            raise PreferenceError(f"--prefer {part!r}: a weight is a number from 0 on, e.g. {name}=2")
        weights[name] = weight
    if not any(weights.values()):
        raise PreferenceError(f"--prefer {text!r}: gives nothing a weight; write e.g. read=3,size=2,save=1")
    return weights


def parse_needs(text: str) -> tuple[str, ...]:
    """'append,types' as a tuple. Raises PreferenceError."""
    needs = tuple(dict.fromkeys(part.replace("_", "-") for part in _parts(text)))
    for need in needs:
        if need not in NEEDS:
            raise PreferenceError(f"--need {need!r} is not known{_near(need, NEEDS)}")
    return needs


def parse_bytes(text: str) -> int:
    """'8G' or '500 MB' as bytes, in powers of 1000. Raises PreferenceError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip(), re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise PreferenceError(f"{text!r} is no amount of bytes; write e.g. 500M or 8G")
    return int(float(match[1]) * _BYTES[match[2].upper()])


def parse_bandwidth(text: str) -> float:
    """'200MB/s' as bytes a second. Raises PreferenceError."""
    try:
        return float(parse_bytes(text.strip().removesuffix("/s")))
    except PreferenceError:
        raise PreferenceError(f"{text!r} is no bandwidth; write e.g. 200MB/s") from None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{guess}; there are: {', '.join(names)}"
