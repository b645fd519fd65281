"""Where the winner of a chart changes, in words."""

from __future__ import annotations

from reports.analysis.varied.charts import Chart
from reports.analysis.varied.crossovers import Behind, Change


def value_text(value: float) -> str:
    """A value of an axis: '1,000', '0.01', '3.16'."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def crossover_texts(chart: Chart) -> list[str]:
    """What there is to say of the winner, in sentences without a full stop."""
    winners = chart.crossovers
    if winners is None:
        return []
    first = chart.label(winners.first)
    if not winners.told:
        return ["where the winner changes cannot be told: under 5 rounds"]
    if not winners.found:
        tied = " and ".join(chart.label(name) for name in winners.equals)
        others = f", not to be told from {tied}" if tied else ""
        return [f"no crossing in what was measured: {first} at every value{others}"]
    return [_change_text(chart, change) for change in winners.found]


def _change_text(chart: Chart, change: Change | Behind) -> str:
    unit = chart.axis.unit
    if isinstance(change, Behind):
        before, after = chart.label(change.before), chart.label(change.after)
        return f"{after} is ahead from {value_text(change.since)}{unit} on; below it cannot be told from {before}"
    before, after = chart.label(change.before), chart.label(change.after)
    if change.at is None or change.at.low is None or change.at.high is None:
        between = f"between {value_text(change.ahead_at)} and {value_text(change.behind_at)}{unit}"
        return f"{before} below, {after} above: {between} (too few rounds have both)"
    at, low, high = (value_text(value) for value in (change.at.median, change.at.low, change.at.high))
    # Sizes are the same in every round.
    between = "" if low == at == high else f" ({low} to {high}{unit})"
    return f"{before} below, {after} above: they cross at {at}{unit}{between}"
