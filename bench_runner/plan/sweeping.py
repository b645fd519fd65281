"""Vary one trait, a property of the data, of an operation or of variants. A request to vary a trait is converted into
an ordinary request with one data set, operation or variant for each value of the trait. Everything else stays equal.

bench_runner.suites.sweep has the traits and their default values.
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
"""Smallest number of different values of a varied trait."""


def swept(suites: Sequence[Suite], request: Request) -> Request:
    """Return the request with a data set, operation or variant for each value of the varied trait. If no trait is
    varied, return the request unchanged. Raises PlanError for a trait that cannot be varied."""
    over = request.over
    if over is None:
        return request
    if len(suites) != 1 or not suites[0].kind.has_columns:
        raise PlanError(
            "`over` needs exactly one suite, which must measure tables.",
            "Run suites one after the other, or use the suite sweep, which is made for `over`.",
            parameter="over",
            given=over.trait,
        )
    (suite,) = suites
    trait = TRAITS.get(over.trait)
    if trait is not None and trait.operation:
        return _over_use(suite, request, over, trait)
    if trait is not None and trait.variants:
        return _over_settings(suite, request, over, trait)
    return _over_data(suite, request, over, trait)


def _over_use(suite: Suite, request: Request, over: Over, trait: Trait) -> Request:
    """Return the request with one operation for each value of the trait. The operations share the stored copies of each
    data set."""
    if request.operations:
        raise PlanError(
            f"`over={over.trait!r}` already chooses the operation: {trait.operation.format('...')}.",
            "Omit `operations`.",
            parameter="operations",
            given=request.operations,
        )
    ours = not request.datasets and request.data is None and BASE in suite.datasets
    points = over.points or _possible(trait, _rows(request, trait) if ours else request.rows)
    operations = [operation_of(trait.operation.format(point)).spelled for point in points]
    _check_several(over, operations)
    datasets = (spell(BASE, _base(request, trait)),) if ours else request.datasets
    return changed(request, operations=(VERIFYING, *dict.fromkeys(operations)), datasets=datasets)


def _over_settings(suite: Suite, request: Request, over: Over, trait: Trait) -> Request:
    """Return the request with variants for each value of a setting, on the same data."""
    if request.formats or request.formats_not:
        raise PlanError(
            f"`over={over.trait!r}` already chooses the variants.",
            "Omit `formats` and `formats_not`.",
            parameter="over",
            given=over.trait,
        )
    points = over.points or _possible(trait, request.rows)
    formats = [name.format(point) for name in trait.variants for point in points]
    _check_several(over, formats)
    operations = request.operations or suite.operations_over_settings
    return changed(request, formats=tuple(dict.fromkeys(formats)), operations=operations)


def _over_data(suite: Suite, request: Request, over: Over, trait: Trait | None) -> Request:
    """Return the request with one data set for each value of the trait."""
    if request.data is not None:
        raise PlanError(
            f"`over={over.trait!r}` generates its own tables, so it cannot be combined with `data`.",
            "Omit one of them.",
            parameter="over",
            given=over.trait,
        )
    if over.trait == "rows" and request.rows is not None:
        raise PlanError(
            "`over='rows'` already sets the number of rows.", "Omit `rows`.", parameter="rows", given=request.rows
        )
    datasets = [name for each in request.datasets or (BASE,) for name in _points(each, request, over, trait)]
    _check_several(over, datasets)
    return changed(request, datasets=tuple(datasets), operations=request.operations or suite.operations_over_data)


def _points(spelled: str, request: Request, over: Over, trait: Trait | None) -> list[str]:
    """Return the name of a data set for each value. Raises PlanError for a data set without a parameter of the trait's
    name."""
    try:
        name, given = parse(spelled)
    except SpellingError as error:
        raise PlanError(
            f"`datasets`: {error}",
            "With `over`, name data sets in full, without patterns.",
            parameter="datasets",
            given=spelled,
        ) from None
    parameters = {parameter.name: parameter for parameter in CATALOGUE[name].parameters} if name in CATALOGUE else {}
    if over.trait not in parameters:
        raise _unknown(over.trait, name, list(parameters))
    if name != BASE or trait is None:
        if not over.points:
            raise PlanError(
                f"`over`: {over.trait} has no default values for the data set {name}.",
                f"Name the values, e.g. `over={{{over.trait!r}: (1, 2)}}`.",
                parameter="over",
                given=over.trait,
            )
        base, points = given, over.points
    else:
        base, points = {**_base(request, trait), **given}, over.points or _possible(trait, _rows(request, trait))
    return [spell(name, {**base, over.trait: _canonical(parameters[over.trait], point)}) for point in points]


def _canonical(parameter: Parameter, point: str) -> str:
    """Return a value in canonical form, such as '0.1' for '0.10'. Return an invalid value unchanged. An error is raised
    later, when the data are made."""
    try:
        return parameter.canonical(point)
    except ValueError:
        return point


def _unknown(trait: str, name: str, parameters: Sequence[str]) -> PlanError:
    near = difflib.get_close_matches(trait, [*TRAITS, *parameters], n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    about = f"of the data set {name}" if name != BASE else "that can be varied"
    allowed = list(TRAITS) if name == BASE else parameters
    return PlanError(
        f"`over`: {trait!r} is not a trait {about}{guess}.",
        f"There are {', '.join(allowed)}." if allowed else "",
        parameter="over",
        given=trait,
        allowed=allowed,
    )


def _rows(request: Request, trait: Trait) -> int:
    return request.rows or int(trait.base.get("rows", BASE_ROWS))


def _base(request: Request, trait: Trait) -> dict[str, str]:
    """Return the parameters that all points share. If the request has a number of rows, this number replaces the
    trait's number of rows."""
    rows = _rows(request, trait)
    return {
        name: value.format(rows=rows) for name, value in trait.base.items() if name != "rows" or request.rows is None
    }


def _possible(trait: Trait, rows: int | None) -> tuple[str, ...]:
    """Return the default values of the trait, except values for which the table has too few rows."""
    if rows is None or not trait.rows_each:
        return trait.points
    return tuple(point for point in trait.points if int(point) * trait.rows_each <= rows)


def _check_several(over: Over, found: Sequence[str]) -> None:
    number = len(set(found))
    if number < FEWEST_POINTS:
        usual = TRAITS[over.trait].points[:FEWEST_POINTS] if over.trait in TRAITS else ("1", "10")
        given = f"(given: {', '.join(over.points)})" if over.points else "for this few rows"
        raise PlanError(
            f"`over`: {over.trait} has {number} distinct value{'' if number == 1 else 's'} {given}; a comparison "
            f"needs at least {FEWEST_POINTS}.",
            f"Name the values, e.g. `over={ {over.trait: usual}!r}`.",
            parameter="over",
            given=over.points,
        )
