"""Match the texts with which a user selects variants and operations: full names, names of formats, or regular
expressions.

`parquet[codec=zstd]` is a full name and matches only itself. `parquet` is the name of a format and matches only that
format. Any other text is a regular expression, which is searched in names with and without settings. Each alternative
of an expression such as `csv|parquet` must match something.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache

from adapters.errors import RefusedSetting
from bench_runner.errors import PlanError
from bench_runner.operations import OPERATIONS
from bench_runner.registries import REGISTRIES, registry_of
from bench_runner.variants import variant_of

_ANCHORED = re.compile(r"\^([a-z0-9-]+)(\$?)")
"""Matches an anchored name, such as '^json' or '^json$'."""


def alternatives(texts: Iterable[str]) -> list[str]:
    """Return the texts, split at each '|' or ',' outside of brackets. For example, 'parquet|csv' and 'parquet,csv' are
    two alternatives. But a comma before a setting is part of a name, so 'pyarrow,codec=none' is one alternative."""
    found: list[str] = []
    for text in texts:
        start = depth = 0
        for place, letter in enumerate(text):
            depth += (letter in "([{") - (letter in ")]}")
            if depth == 0 and _separates(text, place):
                found.append(text[start:place])
                start = place + 1
        found.append(text[start:])
    return [text for text in dict.fromkeys(each.strip() for each in found) if text]


def _separates(text: str, place: int) -> bool:
    if text[place] == ",":
        name = re.split(r"[\[(|,]", text[place + 1 :], maxsplit=1)[0]
        return "=" not in name
    return text[place] == "|" and text[place - 1 : place] != "\\"


def check(parameter: str, texts: Iterable[str]) -> None:
    """Raise PlanError for a text that is neither a full name nor a valid regular expression."""
    for text in alternatives(texts):
        if is_spelled(text):
            continue
        try:
            re.compile(text)
        except re.error as error:
            raise PlanError(
                f"`{parameter}`: {text!r} is not a regular expression ({error}).",
                "A plain name such as 'parquet' is enough.",
                parameter=parameter,
                given=text,
                allowed="names and regular expressions",
            ) from None


def is_spelled(text: str) -> bool:
    """Return whether the text is the name of a format, storage or operation with settings, such as
    'parquet[engine=pyarrow]'."""
    name, bracket, settings = text.partition("[")
    known = name in OPERATIONS or any(name in registry.entries for registry in REGISTRIES.values())
    return known and bool(bracket) and settings.endswith("]") and "=" in settings


def names_in(texts: Iterable[str]) -> frozenset[str] | None:
    """Return the names of the formats that the texts can match, for texts such as 'csv', '^csv$', 'csv[engine=pandas]'
    and '^json'. Return None if any format can match: if `texts` is empty, or if a text is another regular expression,
    which may match a setting."""
    known = {name for registry in REGISTRIES.values() for name in registry.entries}
    names: set[str] = set()
    for text in alternatives(texts):
        anchored = _ANCHORED.fullmatch(text)
        if is_spelled(text) or text in known:
            names.add(text.partition("[")[0])
        elif anchored is None:
            return None
        else:
            start, end = anchored.groups()
            names |= {each for each in known if (each == start if end else each.startswith(start))}
    return frozenset(names) or None


def matches(text: str, variant: str) -> bool:
    """Return whether one alternative matches a variant. A full name, as printed in reports, matches only itself. A full
    name is not used as a regular expression, because brackets would then have another meaning."""
    if is_spelled(text):
        return variant in (text, _honoured(text))
    if any(text in registry.entries for registry in REGISTRIES.values()):
        return variant_of(variant).format_name == text
    return is_found(text, variant)


def is_found(pattern: str, name: str) -> bool:
    """Return whether a regular expression finds a name, with or without its settings. For example, '^csv$' finds
    'csv[engine=pandas]'."""
    return any(re.search(pattern, each) for each in (name, name.partition("[")[0]))


@cache
def _honoured(text: str) -> str:
    """Return the full name of the variant, including the engine and all settings that the text omits. Return the text
    unchanged if the engine refuses a setting."""
    try:
        engine, settings = registry_of(text.partition("[")[0]).engine(text)
        return engine(settings).variant
    except RefusedSetting:
        return text


def check_found(parameter: str, texts: Iterable[str], offered: Collection[str], names: Sequence[str]) -> None:
    """Raise PlanError for the first alternative that matches nothing in `offered`. The message has the nearest of the
    `names`."""
    for text in alternatives(texts):
        if not any(matches(text, variant) for variant in offered):
            near = difflib.get_close_matches(variant_of(text.strip("^$")).format_name, names, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise PlanError(
                f"`{parameter}`: {text!r} matches no variant{guess}.",
                f"There are {', '.join(names)}.",
                parameter=parameter,
                given=text,
                allowed=names,
            )
