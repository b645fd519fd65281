"""Turning a varied trait into data sets or operations: one for each of its values, everything else equal.

bench_runner.suites.sweep has the traits and their default values. The result is an ordinary request, which a user could
have spelled.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from msgspec.structs import replace as changed

from adapters.errors import SpellingError
from adapters.spelling import parse, spell
from bench_runner.errors import PlanError
from bench_runner.operations import VERIFYING, operation_of
from bench_runner.request import Over, Request
from bench_runner.suites import Suite
from bench_runner.suites.sweep import BASE, BASE_ROWS, TRAITS, Trait
from data_generator.catalogue import CATALOGUE, Parameter

FEWEST_POINTS = 2
"""Varying needs several values."""


def swept(suites: Sequence[Suite], request: Request) -> Request:
    """Return the request with a data set or operation for each value of the varied trait; unchanged without a trait.
    Raises PlanError for a trait that cannot be varied."""
    over = request.over
    if over is None:
        return request
    if len(suites) != 1 or not suites[0].kind.has_columns:
        raise PlanError(f"--over {over.trait} goes with one suite of tables\n  run one after the other, e.g. run sweep")
    (suite,) = suites
    trait = TRAITS.get(over.trait)
    if trait is not None and trait.operation:
        return _over_use(suite, request, over, trait)
    return _over_data(suite, request, over, trait)


def _over_use(suite: Suite, request: Request, over: Over, trait: Trait) -> Request:
    """Turn the values into operations on each data set, which share its stored copies."""
    if request.operations:
        raise PlanError(
            f"--over {over.trait} says what is timed: {trait.operation.format('...')}\n  leave out --operations"
        )
    ours = not request.datasets and request.data is None and BASE in suite.datasets
    points = over.points or _possible(trait, _rows(request, trait) if ours else request.rows)
    operations = [operation_of(trait.operation.format(point)).spelled for point in points]
    _check_several(over, operations)
    datasets = (spell(BASE, _base(request, trait)),) if ours else request.datasets
    return changed(request, operations=(VERIFYING, *dict.fromkeys(operations)), datasets=datasets)


def _over_data(suite: Suite, request: Request, over: Over, trait: Trait | None) -> Request:
    """Turn the values into data sets."""
    if request.data is not None:
        raise PlanError(f"--over {over.trait} makes its own tables, and --data names one\n  leave out one of them")
    if over.trait == "rows" and request.rows is not None:
        raise PlanError("--over rows says how many rows there are\n  leave out --rows")
    datasets = [name for each in request.datasets or (BASE,) for name in _points(each, request, over, trait)]
    _check_several(over, datasets)
    return changed(request, datasets=tuple(datasets), operations=request.operations or suite.operations_over_data)


def _points(spelled: str, request: Request, over: Over, trait: Trait | None) -> list[str]:
    """Return a data set for each value. Raises PlanError for a data set without such a parameter."""
    try:
        name, given = parse(spelled)
    except SpellingError as error:
        raise PlanError(f"--datasets {error}\n  --over takes data sets by their names, without patterns") from None
    parameters = {parameter.name: parameter for parameter in CATALOGUE[name].parameters} if name in CATALOGUE else {}
    if over.trait not in parameters:
        raise PlanError(_unknown(over.trait, name, list(parameters)))
    if name != BASE or trait is None:
        if not over.points:
            raise PlanError(f"--over {over.trait}: has no usual values on {name}\n  name some: --over {over.trait}=...")
        base, points = given, over.points
    else:
        base, points = {**_base(request, trait), **given}, over.points or _possible(trait, _rows(request, trait))
    return [spell(name, {**base, over.trait: _canonical(parameters[over.trait], point)}) for point in points]


def _canonical(parameter: Parameter, point: str) -> str:
    """Return a value in canonical form: '0.10' as '0.1'. Invalid values stay, and are reported when data are made."""
    try:
        return parameter.canonical(point)
    except ValueError:
        return point


def _unknown(trait: str, name: str, parameters: Sequence[str]) -> str:
    near = difflib.get_close_matches(trait, [*TRAITS, *parameters], n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    if name != BASE:
        return f"--over {trait}: {name} has no such parameter{guess}\n  it has: {', '.join(parameters) or 'none'}"
    return f"--over {trait}: is no trait{guess}\n  there are: {', '.join(TRAITS)}"


def _rows(request: Request, trait: Trait) -> int:
    return request.rows or int(trait.base.get("rows", BASE_ROWS))


def _base(request: Request, trait: Trait) -> dict[str, str]:
    """Return the parameters that all points share; rows that the user names replace the trait's own."""
    rows = _rows(request, trait)
    return {
        name: value.format(rows=rows) for name, value in trait.base.items() if name != "rows" or request.rows is None
    }


def _possible(trait: Trait, rows: int | None) -> tuple[str, ...]:
    """Return the default values, without those for which a table has too few rows."""
    if rows is None or not trait.rows_each:
        return trait.points
    return tuple(point for point in trait.points if int(point) * trait.rows_each <= rows)


def _check_several(over: Over, found: Sequence[str]) -> None:
    number = len(set(found))
    if number < FEWEST_POINTS:
        usual = TRAITS[over.trait].points[:FEWEST_POINTS] if over.trait in TRAITS else ("1", "10")
        given = ",".join(over.points) or "with so few rows"
        raise PlanError(
            f"--over {over.trait}: {given} gives {number} to measure, and {FEWEST_POINTS} or more are to be compared\n"
            f"  name them: --over {over.trait}={','.join(usual)}"
        )
