"""The constants of bench_runner as a table: their names, their values in people's units, where, and what they decide.

All of it comes from the code. A constant is a public name in capitals at the top of a module that stands for numbers
written there; what it decides says the docstring below it, up to its first full stop or colon. No rule is known here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "bench_runner"

_NUMBERS = (ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Tuple, ast.expr_context)
_BYTES = {"kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}
_COUNTED = ("ROWS", "IMAGES", "ROUNDS", "FILES", "COLUMNS", "CORES")


@dataclass(frozen=True)
class Constant:
    """One assignment: the names that it gives, each with its number."""

    place: str
    numbers: dict[str, int | float]
    decides: str


def constants() -> Iterator[Constant]:
    """All of the package, by module and then in the order of the code."""
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        yield from constants_of(path.relative_to(ROOT).as_posix(), path.read_text())


def constants_of(place: str, text: str) -> Iterator[Constant]:
    """Those of a module. Raises ValueError for one without a docstring, as nobody would learn what it decides."""
    body = ast.parse(text).body
    for node, below in zip(body, [*body[1:], None], strict=True):
        numbers = _numbers(node)
        if not numbers:
            continue
        said = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if not isinstance(said, str):
            raise ValueError(f"{place}: {', '.join(numbers)} has no docstring\n  say below it what it decides")
        yield Constant(place, numbers, re.split(r"[.:]\s", " ".join(said.split()))[0].rstrip("."))


def _numbers(node: ast.stmt) -> dict[str, int | float]:
    """What a statement gives to public names in capitals, if it is numbers that are written there."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name | ast.Tuple):
        return {}
    target = node.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    if not all(name.isupper() and not name.startswith("_") for name in names):
        return {}
    if not all(isinstance(part, _NUMBERS) for part in ast.walk(node.value)):
        return {}
    value = eval(compile(ast.Expression(node.value), "<constant>", "eval"), {"__builtins__": {}})
    values = value if isinstance(target, ast.Tuple) else (value,)
    if not all(type(each) in (int, float) for each in values):
        return {}
    return dict(zip(names, values, strict=True))


def in_peoples_units(name: str, number: int | float) -> str:
    """'64 MiB' of CONTROL_BYTES, '10 s' of DEAR_NS, '90 %' of DISK_SHARE: the unit is the end of the name."""
    last = name.rpartition("_")[2]
    if name.endswith("_BYTES_PER_S"):
        return f"{_size(number)} a second"
    if last == "BYTES":
        return _size(number)
    if last in ("NS", "S"):
        return f"{number / 1e9 if last == 'NS' else number:,g} s"
    if last in ("MS", "DB"):
        return f"{number:g} {'ms' if last == 'MS' else 'dB'}"
    if last == "FACTOR":
        return f"{number:g} times"
    if last in _COUNTED:
        return f"{number:,} {last.lower() if number != 1 else last.lower()[:-1]}"
    return f"{100 * number:g} %" if 0 < number < 1 else f"{number:,}"


def _size(size_bytes: int | float) -> str:
    whole = {unit: size_bytes // size for unit, size in _BYTES.items() if size_bytes % size == 0}
    if not whole:
        return f"{size_bytes:,} bytes"
    unit = min(whole, key=lambda unit: whole[unit])
    return f"{whole[unit]:,} {unit}"


def table() -> str:
    """One row for each assignment."""
    lines = ["", "| constant | value | where | what it decides |", "| --- | --- | --- | --- |"]
    for constant in constants():
        names = ", ".join(f"`{name}`" for name in constant.numbers)
        values = ", ".join(in_peoples_units(name, number) for name, number in constant.numbers.items())
        lines.append(f"| {names} | {values} | `{constant.place}` | {constant.decides} |")
    return "\n".join([*lines, ""])
