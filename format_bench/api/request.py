"""Check the arguments of `run` and `recommend`, and convert them to a bench_runner.request.Request.

The checks in this module need neither suites nor data; bench_runner.plan checks everything else. A single string is
accepted where a sequence of strings is expected; other values must have the right type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, Unpack, get_type_hints

from bench_runner.networks import ALLOWED, FRESH, WARM, named
from bench_runner.request import Over, Request
from data_generator.imported.read_options import ReadOptions
from data_generator.imported.tables.held_table import HeldTable
from format_bench.errors import RequestError

Texts = str | Sequence[str]
"""A sequence of strings, or a single string."""
Varied = str | Mapping[str, Sequence[str | int | float]] | None
"""A property of the data to vary: its name, or a mapping from its name to its values; None varies nothing."""
Item = TypeVar("Item", str, int)
Number = TypeVar("Number", int, float)
TRACKS = ("plain", "default", "equal")
RESULTS = Path("results")
"""Default parent of result folders, relative to the current folder."""
UNSAID = ("suites", "runs", "watcher", "command", "began_ns")
"""Parameters that the recorded text of a call does not show as keywords: positional ones, and those that the command
line sets."""


class SharedFields(TypedDict, total=False):
    """The keywords that `run` and `recommend` share, with functions that check them.

    The docstring of `run` explains the keywords.
    """

    formats: Annotated[Texts, _texts("formats")]
    formats_not: Annotated[Texts, _texts("formats_not")]
    datasets: Annotated[Texts, _texts("datasets")]
    options: Annotated[ReadOptions, ReadOptions.checked]
    key: Annotated[str | None, _as_given]
    rows: Annotated[int | None, lambda given: at_least("rows", given, 1)]
    cache: Annotated[str, _one_of("cache", "warm", "cold")]
    threads: Annotated[str | None, _one_of_or_none("threads", "default", "1")]
    target: Annotated[str | None, _one_of_or_none("target", "pandas", "arrow")]
    strings: Annotated[str, _one_of("strings", "str", "object")]
    work_dirs: Annotated[Sequence[Path | str], _folders]


class RequestFields(SharedFields, total=False):
    """The keywords of `run` that become fields of a Request. Their defaults are those of Request."""

    operations: Annotated[Texts, _texts("operations")]
    webface: Annotated[Path | str | None, _webface]
    generated_webface: Annotated[bool, bool]
    data: Annotated[Path | str | HeldTable | None, _data]
    tracks: Annotated[Texts, lambda given: tuple(map(_one_of("tracks", *TRACKS), texts("tracks", given)))]
    codecs: Annotated[Sequence[str], lambda given: several("codecs", given, str, "('zstd', 'gzip')")]
    levels: Annotated[Sequence[int], lambda given: several("levels", given, int, "(1, 3, 9)")]
    networks: Annotated[Texts, lambda given: tuple(dict.fromkeys(map(_network, texts("networks", given))))]
    service: Annotated[str, _one_of("service", WARM, FRESH)]
    over: Annotated[Varied, _over]


def requested(**wanted: Unpack[RequestFields]) -> Request:
    """Check the keywords and return them as a Request. Raises RequestError for an invalid value."""
    refuse_unknown(wanted, RequestFields)
    checked = {name: _fields()[name](value) for name, value in wanted.items()}
    data = wanted.get("data")
    return Request(**checked, data_title=data.title if isinstance(data, HeldTable) else None)


def refuse_unknown(wanted: Mapping[str, object], fields: type) -> None:
    """Raise TypeError, as Python does for an unexpected keyword argument, if `fields` (a TypedDict) lacks a keyword."""
    if unknown := wanted.keys() - get_type_hints(fields).keys():
        raise TypeError(f"got an unexpected keyword argument: {', '.join(sorted(unknown))}")


def texts(parameter: str, given: Texts) -> tuple[str, ...]:
    """Return the strings as a tuple; a single string becomes a tuple with one item.

    Raises RequestError for any other type.
    """
    return (given,) if isinstance(given, str) else several(parameter, given, str, "('one', 'another')")


def several(parameter: str, given: Sequence[Item], kind: type[Item], example: str) -> tuple[Item, ...]:
    """Return the items of a list or tuple as a tuple.

    Raises RequestError if `given` is not a collection, is a string, or has an item that is not of type `kind`.
    """
    if isinstance(given, str) or not isinstance(given, Collection) or not all(type(each) is kind for each in given):
        allowed = f"a list or tuple of {kind.__name__}, e.g. {example}"
        raise RequestError(parameter=parameter, given=given, allowed=allowed)
    return tuple(given)


def _over(given: Varied) -> Over | None:
    """Return the property to vary, with its values as strings; None if none was given. Raises RequestError for an
    invalid value."""
    if given is None or isinstance(given, str):
        return Over(given) if given else None
    if not isinstance(given, Mapping) or len(given) != 1 or any(isinstance(each, str) for each in given.values()):
        allowed = "one trait with its values, e.g. {'nulls': (0, 0.5)}"
        raise RequestError(parameter="over", given=given, allowed=allowed)
    ((trait, points),) = given.items()
    return Over(trait, tuple(map(str, points)))


def _network(name: str) -> str:
    """Return the name of a network in the form that bench_runner's Conditions use. Raises RequestError for an unknown
    name."""
    try:
        return named(name)
    except ValueError:
        raise RequestError(parameter="networks", given=name, allowed=ALLOWED) from None


def _folders(given: Sequence[Path | str]) -> tuple[str, ...]:
    """Return the absolute paths of the working folders without duplicates; ('default',) if no folder was given.

    Raises RequestError if a folder does not exist.
    """
    if isinstance(given, str | Path):
        raise RequestError(
            next_step=f"Write `work_dirs=({str(given)!r},)`.",
            parameter="work_dirs",
            given=given,
            allowed="a list or tuple of folders",
        )
    for folder in given:
        if not Path(folder).is_dir():
            raise RequestError(
                next_step="Create the folder first.",
                parameter="work_dirs",
                given=str(folder),
                allowed="folders that exist",
            )
    return tuple(dict.fromkeys(str(Path(folder).resolve()) for folder in given)) or ("default",)


def one_of(parameter: str, given: str, allowed: Collection[str]) -> str:
    """Return `given` if it is one of the allowed values. Raises RequestError otherwise."""
    if given not in allowed:
        raise RequestError(parameter=parameter, given=given, allowed=allowed)
    return given


def at_least(parameter: str, given: int | None, least: int) -> int | None:
    """Return `given` if it is None or a whole number of at least `least`. Raises RequestError otherwise."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < least):
        raise RequestError(
            next_step="Omit it to use the default.",
            parameter=parameter,
            given=given,
            allowed=f"a whole number of at least {least}",
        )
    return given


def above_zero(parameter: str, given: Number, unit: str) -> Number:
    """Return `given` if it is a number above 0. Raises RequestError otherwise; the message names the `unit`."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not (math.isfinite(given) and given > 0):
        raise RequestError(parameter=parameter, given=given, allowed=f"a number of {unit} above 0")
    return given


def checked_machine(name: str | None) -> str | None:
    """Return `name`, the user's name for this machine, if it is valid or None. Raises RequestError otherwise."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise RequestError(
            parameter="machine",
            given=name,
            allowed="letters, digits, '.', '_' and '-', beginning with a letter or a digit",
        )
    return name


def result_folder(out: Path | str | None, resume: bool, make: Callable[[], Path]) -> Path:
    """Return the result folder: `out`, or if `out` is None a new folder from `make`.

    Raises RequestError if `out` is neither new nor empty (unless `resume`), if `out` cannot be created, or if `resume`
    is given without `out`.
    """
    if out is None:
        if resume:
            raise RequestError(
                "`resume` needs `out`.", "Name the result folder of the run to continue.", parameter="out", given=out
            )
        return make()
    folder = Path(out)
    if resume:
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(
            next_step="To continue the run in it, add `resume=True`.",
            parameter="out",
            given=str(out),
            allowed="a new or empty folder",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"`out`: the folder {out} cannot be created ({error.strerror}).",
            "Name another folder.",
            parameter="out",
            given=str(out),
        ) from None
    return folder


def usual_values(verb: Callable[..., object]) -> dict[str, object]:
    """Return the default of each parameter of `verb` (`run` or `recommend`) and of each keyword of RequestFields."""
    own = {name: each.default for name, each in signature(verb).parameters.items() if each.kind is not each.VAR_KEYWORD}
    return {name: getattr(Request(), name) for name in _fields()} | own


def call_text(verb: Callable[..., object], positional: Sequence[object], given: Mapping[str, object]) -> str:
    """Return the call as Python text, e.g. "run('tabular', rows=1000)", for the records of a run.

    Arguments that equal their defaults are omitted.
    """
    usual = usual_values(verb)
    named = [name for name in usual if name in given and name not in UNSAID]
    said = [f"{name}={given[name]!r}" for name in named if given[name] != usual[name]]
    return f"{verb.__name__}({', '.join([*map(repr, positional), *said])})"


# --- checks and conversions ----------------------------------------------------------------------------------------


def _as_given(given: object) -> object:
    return given


def _texts(option: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda given: texts(option, given)


def _one_of(option: str, *allowed: str) -> Callable[[Any], str]:
    return lambda given: one_of(option, given, allowed)


def _one_of_or_none(option: str, *allowed: str) -> Callable[[Any], str | None]:
    return lambda given: None if given is None else one_of(option, given, allowed)


def _webface(given: Path | str | None) -> Path | None:
    path = None if given is None else Path(given)
    if path is not None and not path.is_file():
        raise RequestError(
            next_step="To measure a generated table instead, omit the path.",
            parameter="webface",
            given=str(path),
            allowed="an existing HDF5 file",
        )
    return path


def _data(given: Path | str | HeldTable | None) -> Path | None:
    path = None if given is None else Path(given)
    if path is not None and not path.exists():
        raise RequestError(
            next_step="To measure a built-in data set, use `datasets`.",
            parameter="data",
            given=str(path),
            allowed="an existing file or folder",
        )
    return path


@cache
def _fields() -> dict[str, Callable[[Any], Any]]:
    """Return a mapping from each keyword to the function that checks and converts its value, in the order of Request's
    fields."""
    hints = get_type_hints(RequestFields, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in Request.__struct_fields__ if name in hints}
