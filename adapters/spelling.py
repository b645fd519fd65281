"""Parse and write names with parameters, such as `parquet[codec=zstd,level=3]` or `synthetic[int=5,str=1]`.

Names of variants (a format with its settings) and names of data sets have this form. This module does not check which
keys and values are allowed.
"""

import re
from collections.abc import Mapping

from adapters.errors import SpellingError

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
_KEY = re.compile(r"[a-z][a-z0-9_]*\Z")


def parse(spelled: str) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters of a text such as `name[key=value,...]`, in the order of the text.

    Values stay text and may contain any character except ',', '[' and ']'. Raises SpellingError for other texts.
    """
    name, bracket, rest = spelled.strip().partition("[")
    if not _NAME.match(name):
        raise SpellingError(f"{spelled!r}: a name is lower-case letters, digits and '-', e.g. 'hdf5-table'")
    if not bracket:
        return name, {}
    if not rest.endswith("]") or "[" in rest or "]" in rest[:-1]:
        raise SpellingError(f"{spelled!r}: write parameters in one pair of brackets at the end: name[key=value,...]")
    parameters: dict[str, str] = {}
    for part in rest[:-1].split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not _KEY.match(key) or not value:
            raise SpellingError(f"{spelled!r}: {part!r} is not of the form key=value (a key has only a-z, 0-9 and '_')")
        if key in parameters:
            raise SpellingError(f"{spelled!r}: {key!r} is given twice")
        parameters[key] = value
    return name, parameters


def spell(name: str, parameters: Mapping[str, object]) -> str:
    """Return `name[key=value,...]`, the inverse of `parse`. Booleans become 'true' and 'false'."""
    if not parameters:
        return name
    return f"{name}[{','.join(f'{key}={_text(value)}' for key, value in parameters.items())}]"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
