"""Collect reasons to trust a run less, such as too few rounds, an unfinished run, drift, or samples that are not
counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bench_runner.networks import network_text
from bench_runner.results.records import Cell, Run, RunInfo
from bench_runner.results.statistics import FEWEST_ROUNDS, CellSummary, Effect, position_effect, raw_io_drift


@dataclass(frozen=True)
class Remark:
    """A fact that limits or explains the figures of a run, and what to do about it ('' if nothing can be done)."""

    text: str
    remedy: str = ""
    warns: bool = True
    """Whether the remark limits the trust in the figures. If not, it explains how the figures were obtained."""


def remarks(run: Run, summaries: Mapping[Cell, CellSummary]) -> list[Remark]:
    """Return stored warnings and remarks on too few rounds, an unfinished run, drift and position effects."""
    info = run.info
    found = []
    if info.quick:
        found.append(Remark("quick run: one round, no intervals, no verdicts", "repeat it without --quick"))
    elif summaries and max(summary.rounds for summary in summaries.values()) < FEWEST_ROUNDS:
        found.append(
            Remark(
                f"under {FEWEST_ROUNDS} rounds: spreads are minimum and maximum, and no variant is marked as best",
                f"repeat with --rounds {FEWEST_ROUNDS} or more",
            )
        )
    if info.partial:
        found.append(Remark("the run did not finish", "run the same command with --resume"))
    found.extend(Remark(warning.text, warning.remedy) for warning in info.warnings)
    found.extend(_drift_remark(info, effect) for effect in raw_io_drift(summaries.values()) if effect.warns)
    found.extend(_position_remark(info, effect) for effect in position_effect(run.samples) if effect.warns)
    unsettled = sum(sample.unsettled for sample in run.samples)
    if unsettled:
        found.append(
            Remark(
                f"{unsettled} of {len(run.samples)} samples are not counted: the machine was busy, a warm read was not"
                " served by the page cache, or a full garbage collection ran during the call",
                "stop other work on the machine",
            )
        )
    found.extend(_sample_warnings(summaries.values()))
    found.extend(_kept_remark(info))
    found.extend(_calibration_remarks(info))
    found.extend(_account(run))
    return found


def _calibration_remarks(info: RunInfo) -> Iterator[Remark]:
    for each in info.calibrations:
        found = f"{each.found_bits_per_s / 1e6:,.0f} Mbit/s"
        yield Remark(f"{network_text(each.network)}: {found}, measured before the first round", warns=False)


def _kept_remark(info: RunInfo) -> list[Remark]:
    """Return a remark that lists the facts reused from earlier runs, grouped by the day on which the facts were
    measured. Return no remark if no fact was reused. Facts are properties that do not change between runs on the same
    machine."""
    names: dict[str, list[str]] = {}
    for name, fact in sorted(info.facts.items()):
        if fact.kept:
            names.setdefault(fact.measured, []).append(name)
    if not names:
        return []
    told = "; ".join(f"{' and '.join(known)} (measured {day})" for day, known in names.items())
    text = f"reused from an earlier run on this machine with the same versions: {told}"
    return [Remark(text, "--fresh measures them again", warns=False)]


def _account(run: Run) -> list[Remark]:
    """Return a remark on how the time of the run was spent: the share of measured calls, and the shares of waiting,
    preparing and verifying."""
    whole_ns = sum(run.info.stages_ns.values())
    timed_ns = sum(sample.clocked_ns for sample in run.samples)
    if not whole_ns or not timed_ns:
        return []
    rest = {
        "waiting for the machine to settle": _sum_of(run, "settle_ns"),
        "preparing": _sum_of(run, "prepare_ns"),
        "verifying results": _sum_of(run, "verify_ns"),
    }
    told = ", ".join(f"{name} {spent_ns / whole_ns:.0%}" for name, spent_ns in rest.items())
    text = f"measured calls took {timed_ns / 1e9:.0f} of {whole_ns / 1e9:.0f} s ({timed_ns / whole_ns:.0%}); {told}"
    return [Remark(text, warns=False)]


def _sum_of(run: Run, *figures: str) -> int:
    return sum(sample.figures.get(figure, 0) for sample in run.samples for figure in figures)


def _drift_remark(info: RunInfo, effect: Effect) -> Remark:
    text = f"{info.operation(effect.operation).title} of raw I/O became {_amount(effect)} over the rounds"
    return Remark(f"{text} on {effect.machine}", "compare multiples of raw I/O, or repeat on an idle machine")


def _position_remark(info: RunInfo, effect: Effect) -> Remark:
    text = f"{info.operation(effect.operation).title} is {_amount(effect)} late in a round than early in it"
    return Remark(f"{text} on {effect.machine}", "see 'format-bench doctor'")


def _amount(effect: Effect) -> str:
    return f"{abs(effect.change):.0%} {'slower' if effect.change > 0 else 'faster'}"


def _sample_warnings(summaries: Iterable[CellSummary]) -> list[Remark]:
    cells: dict[str, list[str]] = {}
    for summary in summaries:
        for warning in summary.warnings:
            if not warning.startswith("not counted"):
                cells.setdefault(warning, []).append(summary.cell.variant.format_name)
    return [Remark(f"{', '.join(dict.fromkeys(names))}: {warning}") for warning, names in cells.items()]
