"""Throughput as a function of selectivity: T(x) = a + b / (1 + c x**d), fitted with its errors.

The form and the way of fitting are those of Weigand, Enhancing Distributed Low-Cost Object Storage with Near Storage
Computation (TU Munich 2025), section 8.2. x is in percent: the share of row groups that a query has to read. T is in
GB/s: bytes of the whole data set over the time of the query.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

PARAMETERS = 4
"""So many are fitted: with as many points there is a curve through all of them, and no error."""


class NoFit(Exception):
    """The points do not decide a curve: why, and what would."""


@dataclass(frozen=True)
class Point:
    """What was measured: throughput in GB/s at a selectivity in percent."""

    percent: float
    gb_per_s: float


@dataclass(frozen=True)
class Fitted:
    """One row of the thesis's table 8.3: what was measured, what the curve says, and by how much that is off."""

    percent: float
    measured_gb_per_s: float
    fitted_gb_per_s: float

    @property
    def relative_error(self) -> float:
        """Of the curve against what was measured: 0.1 is 10 % too high."""
        return self.fitted_gb_per_s / self.measured_gb_per_s - 1


@dataclass(frozen=True)
class Curve:
    """The fitted function. `errors` are one standard deviation of a, b, c, d, by the covariance of the fit."""

    a: float
    b: float
    c: float
    d: float
    errors: tuple[float, float, float, float]

    def __call__(self, percent: float) -> float:
        """GB/s at a selectivity in percent, from 0 on."""
        # 0 to any power above 0 is 0: at 0 % the curve is a + b.
        powered = float(percent) ** self.d if percent > 0 else 0.0
        return self.a + self.b / (1 + self.c * powered)

    def table(self, points: Sequence[Point]) -> tuple[Fitted, ...]:
        """Table 8.3 of these points, in their order."""
        return tuple(Fitted(point.percent, point.gb_per_s, self(point.percent)) for point in points)


def fit(points: Sequence[Point]) -> Curve:
    """The curve through points, by least squares of the throughput itself.

    The absolute squares are the thesis's: what is large is fitted almost exactly, and errors of some percent are left
    where throughput is low. It starts from what the parameters mean, a at the highest selectivity and a + b at the
    lowest; from all ones, as scipy would, it ends in a curve that is no fit and says nothing.

    Raises NoFit for four points or fewer of different selectivities, where no curve of this form is found, and where b,
    c or d is less certain than it is large.
    """
    # Not needed by whoever only reads published curves.
    import numpy as np
    from scipy.optimize import OptimizeWarning, curve_fit

    ordered = sorted(points, key=lambda point: point.percent)
    if len({point.percent for point in ordered}) <= PARAMETERS:
        points_text = f"{len(ordered)} point{'s' * (len(ordered) != 1)}"
        raise NoFit(f"{points_text}: a curve of {PARAMETERS} parameters needs more; measure more selectivities")
    if any(point.percent < 0 or point.gb_per_s <= 0 for point in ordered):
        raise NoFit("a selectivity below 0, or a throughput of 0: no such thing was measured")
    percents = np.array([point.percent for point in ordered])
    measured = np.array([point.gb_per_s for point in ordered])

    def curve(x: np.ndarray, a: float, b: float, c: float, d: float) -> np.ndarray:
        return a + b / (1 + c * np.power(x, d))

    start = (measured[-1], max(measured[0] - measured[-1], measured[-1]), 1.0, 1.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", OptimizeWarning)
            # A trial step may go where the form has no value; the fit comes back from there, or fails.
            with np.errstate(all="ignore"):
                found, covariance = curve_fit(curve, percents, measured, p0=start, maxfev=20_000)
    except (RuntimeError, OptimizeWarning) as error:
        raise NoFit(f"no curve of the form a + b / (1 + c x^d) fits these {len(ordered)} points: {error}") from error
    a, b, c, d = (float(value) for value in found)
    errors = tuple(float(value) for value in np.sqrt(np.diag(covariance)))
    if not (np.isfinite([*found, *errors]).all() and b > 0 and c > 0 and d > 0):
        raise NoFit(
            f"the fit ends at b = {b:.3g}, c = {c:.3g}, d = {d:.3g}: throughput that does not fall as selectivity rises"
        )
    if a + b / (1 + c * 100**d) <= 0:
        raise NoFit(f"the fit ends at a = {a:.3g}: throughput that is none before all row groups are read")
    for name, value, off in (("b", b, errors[1]), ("c", c, errors[2]), ("d", d, errors[3])):
        if off > value:
            raise NoFit(f"these {len(ordered)} points do not decide it: {name} would be {value:.3g} ± {off:.2g}")
    return Curve(a, b, c, d, (errors[0], errors[1], errors[2], errors[3]))
