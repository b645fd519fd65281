"""Fit throughput as a function of selectivity: T(x) = a + b / (1 + c x**d), with errors.

The formula and the fitting method are from Weigand, Enhancing Distributed Low-Cost Object Storage with Near Storage
Computation (TU Munich 2025), section 8.2. x is the share of row groups that a query has to read, in percent. T is the
throughput in GB/s: the bytes of the whole data set divided by the time of the query.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

PARAMETERS = 4
"""Number of fitted parameters. A curve passes exactly through this many points, so its error is then unknown."""


class NoFit(Exception):
    """Raised if the points do not determine a curve. The message states why, and what would help."""


@dataclass(frozen=True)
class Point:
    """A measurement: throughput in GB/s at a selectivity in percent."""

    percent: float
    gb_per_s: float


@dataclass(frozen=True)
class Fitted:
    """One row of the thesis's table 8.3: the measured value, the curve's value, and its error."""

    percent: float
    measured_gb_per_s: float
    fitted_gb_per_s: float

    @property
    def relative_error(self) -> float:
        """Error of the curve relative to the measured value: 0.1 is 10 % too high."""
        return self.fitted_gb_per_s / self.measured_gb_per_s - 1


@dataclass(frozen=True)
class Curve:
    """The fitted function, which can be called. `errors` are the standard deviations of a, b, c and d, taken from the
    covariance of the fit."""

    a: float
    b: float
    c: float
    d: float
    errors: tuple[float, float, float, float]

    def __call__(self, percent: float) -> float:
        """Return the throughput in GB/s at a selectivity in percent. The result is at least 0."""
        # 0 to the power of `d` is 0, so the curve is a + b at 0 %.
        powered = float(percent) ** self.d if percent > 0 else 0.0
        return self.a + self.b / (1 + self.c * powered)

    def table(self, points: Sequence[Point]) -> tuple[Fitted, ...]:
        """Return the rows of table 8.3 for these points, in the order of the points."""
        return tuple(Fitted(point.percent, point.gb_per_s, self(point.percent)) for point in points)


def fit(points: Sequence[Point]) -> Curve:
    """Fit a curve to the points by least squares of the throughput itself.

    As in the thesis, absolute errors are minimized. High throughput is therefore fitted almost exactly, and errors of
    some percent remain where throughput is low. The start values follow from the meaning of the parameters: a is the
    throughput at the highest selectivity, a + b at the lowest. With scipy's default start values (all ones), the fit
    fails.

    Raises NoFit if the points do not determine a curve. Examples are four or fewer different selectivities, a curve
    that would rise or reach 0, and an error of b, c or d that is larger than the parameter.
    """
    # Imported here because code that only reads published curves does not need numpy and scipy.
    import numpy as np
    from scipy.optimize import OptimizeWarning, curve_fit

    ordered = sorted(points, key=lambda point: point.percent)
    different = len({point.percent for point in ordered})
    if different <= PARAMETERS:
        raise NoFit(f"a curve needs at least {PARAMETERS + 1} different selectivities (got {different})")
    for point in ordered:
        if point.percent < 0 or point.gb_per_s <= 0:
            got = f"(got {point.percent:g} % with {point.gb_per_s:g} GB/s)"
            raise NoFit(f"a selectivity must be at least 0 and a throughput above 0 {got}")
    percents = np.array([point.percent for point in ordered])
    measured = np.array([point.gb_per_s for point in ordered])

    def curve(x: np.ndarray, a: float, b: float, c: float, d: float) -> np.ndarray:
        return a + b / (1 + c * np.power(x, d))

    start = (measured[-1], max(measured[0] - measured[-1], measured[-1]), 1.0, 1.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", OptimizeWarning)
            # A trial step may use parameters for which the formula has no value. The fit then recovers, or fails.
            with np.errstate(all="ignore"):
                found, covariance = curve_fit(curve, percents, measured, p0=start, maxfev=20_000)
    except (RuntimeError, OptimizeWarning) as error:
        raise NoFit(f"no curve of the form a + b / (1 + c x^d) fits these {len(ordered)} points: {error}") from error
    a, b, c, d = (float(value) for value in found)
    errors = tuple(float(value) for value in np.sqrt(np.diag(covariance)))
    if not (np.isfinite([*found, *errors]).all() and b > 0 and c > 0 and d > 0):
        raise NoFit(
            f"the fit gives b = {b:.3g}, c = {c:.3g}, d = {d:.3g}: throughput would not fall as selectivity rises"
        )
    if a + b / (1 + c * 100**d) <= 0:
        raise NoFit(
            f"the fitted curve is impossible: with its parameter a={a:.3g}, throughput is 0 before all row groups "
            "are read"
        )
    for name, value, off in (("b", b, errors[1]), ("c", c, errors[2]), ("d", d, errors[3])):
        if off > value:
            uncertain = f"the error of {name} is too large, {value:.3g} ± {off:.2g}"
            raise NoFit(f"{len(ordered)} points do not determine a curve: {uncertain}")
    return Curve(a, b, c, d, (errors[0], errors[1], errors[2], errors[3]))
