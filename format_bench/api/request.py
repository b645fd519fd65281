"""A request with typed values: checked, and put as bench_runner takes it.

What can be told without looking at suites or data is told here; what a plan needs is bench_runner.plan's to refuse.
Nothing is parsed, and nothing is made of another type but one text where several are taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TypeVar

from bench_runner.networks import FRESH, WARM, named
from bench_runner.plan.request import Over, Request
from data_generator.imported.read_options import AS_FOUND, ReadOptions
from data_generator.imported.tables.in_memory import HeldTable
from format_bench.errors import RequestError

Texts = str | Sequence[str]
"""Several texts, or one of them alone."""
Varied = str | Mapping[str, Sequence[str | int | float]] | None
"""A trait that is varied, with its values or alone."""
Item = TypeVar("Item", str, int)
Number = TypeVar("Number", int, float)
RESULTS = Path("results")
"""Below the current folder: where results go that are given no folder."""
UNSAID = ("suites", "runs", "watcher", "command", "began_ns")
"""What a call is told that is no wish of the user's, or that stands before the keywords."""


def requested(
    *,
    formats: Texts = (),
    formats_not: Texts = (),
    datasets: Texts = (),
    operations: Texts = (),
    webface: Path | str | None = None,
    generated_webface: bool = False,
    data: Path | str | HeldTable | None = None,
    options: ReadOptions = AS_FOUND,
    key: str | None = None,
    rows: int | None = None,
    tracks: Texts = (),
    codecs: Sequence[str] = (),
    levels: Sequence[int] = (),
    cache: str = "warm",
    threads: str | None = None,
    target: str | None = None,
    strings: str = "str",
    work_dirs: Sequence[Path | str] = (),
    networks: Texts = (),
    service: str = WARM,
    over: Varied = None,
) -> Request:
    """What is to be measured, and under which conditions; `format_bench.api.run.run` says what each keyword means.
    Raises RequestError."""
    wanted = Request(
        formats=texts("--formats", formats),
        formats_not=texts("--formats-not", formats_not),
        datasets=texts("--datasets", datasets),
        operations=texts("--operations", operations),
        webface=None if webface is None else Path(webface),
        generated_webface=generated_webface,
        data=None if data is None else Path(data),
        data_title=data.title if isinstance(data, HeldTable) else None,
        options=options.checked(),
        key=key,
        rows=at_least("--rows", rows, 1),
        cache=one_of("--cache", cache, ("warm", "cold")),
        threads=None if threads is None else one_of("--threads", threads, ("default", "1")),
        target=None if target is None else one_of("--target", target, ("pandas", "arrow")),
        tracks=tuple(one_of("--track", track, ("plain", "default", "equal")) for track in texts("--track", tracks)),
        codecs=several("--codecs", codecs, str, "('zstd', 'gzip')"),
        levels=several("--levels", levels, int, "(1, 3, 9)"),
        strings=one_of("--strings", strings, ("str", "object")),
        work_dirs=_folders(work_dirs),
        networks=tuple(dict.fromkeys(_network(name) for name in texts("--network", networks))),
        service=one_of("--service", service, (WARM, FRESH)),
        over=_over(over),
    )
    if wanted.webface is not None and not wanted.webface.is_file():
        raise RequestError(f"--webface {wanted.webface}: no such file\n  without a path a generated table is measured")
    if wanted.data is not None and not wanted.data.exists():
        raise RequestError(
            f"--data {wanted.data}: no such file or folder\n  name one of yours; --datasets names data of ours"
        )
    return wanted


def texts(option: str, given: Texts) -> tuple[str, ...]:
    """As a tuple; one text alone is one of them. Raises RequestError for anything else."""
    return (given,) if isinstance(given, str) else several(option, given, str, "('one', 'another')")


def several(option: str, given: Sequence[Item], kind: type[Item], example: str) -> tuple[Item, ...]:
    """As a tuple. Raises RequestError for one alone, and for values of another type."""
    if isinstance(given, str) or not isinstance(given, Collection) or not all(type(each) is kind for each in given):
        raise RequestError(f"{option} {given!r}: takes several values of {kind.__name__}\n  write e.g. {example}")
    return tuple(given)


def _over(given: Varied) -> Over | None:
    """A trait with its values as they are spelled. Raises RequestError."""
    if given is None or isinstance(given, str):
        return Over(given) if given else None
    if not isinstance(given, Mapping) or len(given) != 1 or any(isinstance(each, str) for each in given.values()):
        raise RequestError(f"--over {given!r}: takes one trait with its values\n  write e.g. {{'nulls': (0, 0.5)}}")
    ((trait, points),) = given.items()
    return Over(trait, tuple(map(str, points)))


def _network(name: str) -> str:
    """As conditions have it. Raises RequestError."""
    try:
        return named(name)
    except ValueError as error:
        raise RequestError(f"--network {error}") from None


def _folders(given: Sequence[Path | str]) -> tuple[str, ...]:
    """Each working folder once, by its whole path."""
    if isinstance(given, str | Path):
        raise RequestError(f"--work-dir {given}: takes several folders\n  put it into a tuple or list")
    for folder in given:
        if not Path(folder).is_dir():
            raise RequestError(f"--work-dir {folder}: no such directory\n  make it first")
    return tuple(dict.fromkeys(str(Path(folder).resolve()) for folder in given)) or ("default",)


def one_of(option: str, given: str, allowed: Collection[str]) -> str:
    """`given`, if it is one of the values that the option takes. Raises RequestError."""
    if given not in allowed:
        raise RequestError(f"{option} {given!r}: is not known\n  there are: {', '.join(map(repr, allowed))}")
    return given


def at_least(option: str, given: int | None, least: int) -> int | None:
    """`given`, if it is a whole number from `least` on, or None. Raises RequestError."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < least):
        raise RequestError(f"{option} {given!r}: is no whole number from {least} on\n  leave it out for the usual")
    return given


def above_zero(option: str, given: Number, unit: str) -> Number:
    """`given`, if it is a number above 0; `unit` is what it counts. Raises RequestError."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not (math.isfinite(given) and given > 0):
        raise RequestError(f"{option} {given!r}: is no number above 0\n  give {unit}, as a number")
    return given


def checked_machine(name: str | None) -> str | None:
    """A name that records may carry in place of the host's. Raises RequestError."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise RequestError(f"--machine {name!r}: is no name\n  a name is letters, digits, '.', '_' and '-'")
    return name


def result_folder(out: Path | str | None, resume: bool, make: Callable[[], Path]) -> Path:
    """Where results go: `out`, which is new, empty, or gone on with; or what `make` makes. Raises RequestError."""
    if out is None:
        if resume:
            raise RequestError("--resume needs --out DIR\n  it is the result folder of the run to go on with")
        return make()
    folder = Path(out)
    if resume:
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"--out {out} is there already and not an empty folder\n  name another, or add --resume")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"--out {out} cannot be made ({error.strerror})\n  name another folder") from None
    return folder


def call_text(verb: Callable[..., object], positional: Sequence[object], given: Mapping[str, object]) -> str:
    """How a program asked for it, for the records: "run('tabular', rows=1000)". What is as usual is left out."""
    usual = {name: parameter.default for name, parameter in signature(verb).parameters.items()}
    said = [f"{name}={value!r}" for name, value in given.items() if name not in UNSAID and value != usual[name]]
    return f"{verb.__name__}({', '.join([*map(repr, positional), *said])})"
