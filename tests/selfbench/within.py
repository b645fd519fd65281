"""Measure how much the advice of `recommend --within parquet` loses: `make selfbench-within`.

For each table the advised variant, the default, the advice of parquet-linter (parquet_linter.json) and a grid of at
most 200 settings, made with a seed, are stored and read as DataFrames. First each is measured once, then the best of
the grid and the others in turns. The regret of a variant is how much worse its score is than the best score of all.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.column_numbers import spelled
from adapters.spelling import spell
from bench_runner.clock import now_ns
from bench_runner.machine import linux
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from data_generator import cache
from data_generator.catalogue import resolve
from format_bench import recommend
from format_bench.within.parquet import CODECS, USUAL
from formats.parquet.parquet_columns import encodings_of, is_flat
from formats.registry import FORMATS
from reports.analysis.recommendation.preferences import Preferences
from tests.selfbench.costs import Check, print_checks

USED_WHILE_BUILDING = ("core", "bi", "classic", "ml", "events")
HELD_OUT = ("geo", "log", "tpch-lineitem[scale=0.1]")
ROWS, BUDGET_S = 200_000, 150.0
MOST_SETTINGS, FINALISTS, ROUNDS = 200, 12, 7
MEDIAN_REGRET, WORST_REGRET, MOST_S = 0.03, 0.10, 180.0
LINTER = Path(__file__).with_name("parquet_linter.json")
PANDAS = Target("pandas")


@dataclass(frozen=True)
class Figures:
    """One measurement of a variant."""

    save: float
    read: float
    size: float

    def score(self, usual: Figures) -> float:
        """Return the score as a multiple of the usual one, with the usual weights."""
        weights = Preferences().weights
        total = sum(weights.values())
        logs = (share * math.log(getattr(self, name) / getattr(usual, name)) for name, share in weights.items())
        return math.exp(sum(logs) / total)


def grid(schema: pa.Schema, seed: int) -> list[str]:
    """Return at most MOST_SETTINGS variants: first codecs with one encoding for all columns that have it, then random
    settings."""
    source = random.Random(seed)
    found: dict[str, None] = {}
    flat = [number for number, field in enumerate(schema) if is_flat(field.type)]
    for codec, level in CODECS:
        coded = {"codec": codec, **({} if level is None else {"level": str(level)})}
        for encoding in ("", "plain", "split", "delta", "prefix", "lengths"):
            able = [number for number in flat if encoding in encodings_of(schema.field(number).type)]
            for layout in ({}, {"row_group_rows": "65536"}):
                encoded = {encoding: spelled(able)} if able else {}
                if able or not encoding:
                    found[_variant({**coded, **layout, **encoded})] = None
    while len(found) < MOST_SETTINGS:
        found[_variant(_random(schema, flat, source))] = None
    return list(found)[:MOST_SETTINGS]


def _random(schema: pa.Schema, flat: Sequence[int], source: random.Random) -> dict[str, str]:
    codec, level = source.choice(CODECS)
    settings = {"codec": codec, **({} if level is None else {"level": str(level)})}
    for name, values in (
        ("row_group_rows", (None, None, "65536", "131072")),
        ("page_bytes", (None, None, "65536", "8388608")),
        ("page_version", (None, "2.0")),
        ("dictionary", (None, None, "false")),
        ("dictionary_bytes", (None, "16777216")),
    ):
        if (value := source.choice(values)) is not None:
            settings[name] = value
    by_setting: dict[str, list[int]] = {}
    for number in flat:
        allowed = sorted(encodings_of(schema.field(number).type))
        if allowed and source.random() < 0.5:
            by_setting.setdefault(source.choice(allowed), []).append(number)
        if codec != "none" and source.random() < 0.1:
            by_setting.setdefault("raw", []).append(number)
    return settings | {name: spelled(numbers) for name, numbers in by_setting.items()}


def _variant(settings: Mapping[str, str]) -> str:
    return str(FORMATS.build(spell("parquet", settings)).variant)


def measured(variant: str, table: pa.Table, folder: Path) -> Figures:
    """Store and read a DataFrame once, and return the figures."""
    adapter = FORMATS.build(variant)
    adapter.load_library()
    held = targets.make(table, PANDAS)
    place = folder / "t.parquet"
    began_ns = now_ns()
    adapter.save(targets.to_native(held, PANDAS, adapter.native), place)
    save_ns = now_ns() - began_ns
    size_bytes = sum(path.stat().st_size for path in linux.files_below(place))
    read_ns = math.inf
    for _ in range(2):
        began_ns = now_ns()
        targets.from_native(adapter.read(place), PANDAS, adapter.native_read)
        read_ns = min(read_ns, now_ns() - began_ns)
    place.unlink()
    return Figures(save_ns, read_ns, size_bytes)


def regrets(name: str, seed: int, folder: Path) -> Iterator[tuple[str, float, str]]:
    """Yield (whose choice, regret, variant) for a table, and first ('time', seconds of the advice, '')."""
    base, _, inside = name.partition("[")
    parameters = dict(part.split("=") for part in inside.removesuffix("]").split(",") if part)
    made = resolve(base, parameters, rows=None if parameters else ROWS)
    # The rows of a table with a scale factor cannot be chosen, so that the first ones are advised on as own data.
    table = cache.read_table(cache.prepare(made, cache.default_folder()).path).slice(0, ROWS)
    own = folder / f"{base}.parquet"
    pq.write_table(table, own)
    began_ns = now_ns()
    answer = recommend(own, within="parquet", budget_s=BUDGET_S, out=folder / f"{base}-advice")
    yield "time", (now_ns() - began_ns) / 1e9, ""
    assert answer.within is not None
    advised = str(answer.within.advised.change.variant)
    usual = _variant({"codec": USUAL[0]})
    known = json.loads(LINTER.read_text()) if LINTER.exists() else {"tables": {}}
    linter = known["tables"].get(name)
    others = [usual, advised, *([linter] if linter else [])]
    once = {variant: measured(variant, table, folder) for variant in grid(table.schema, seed)}
    first = min(once.values(), key=lambda each: each.size)
    best = sorted(once, key=lambda variant: once[variant].score(first))[:FINALISTS]
    rounds: dict[str, list[Figures]] = {variant: [] for variant in dict.fromkeys((*best, *others))}
    for _ in range(ROUNDS):
        for variant, taken in rounds.items():
            taken.append(measured(variant, table, folder))
    medians = {variant: _median(taken) for variant, taken in rounds.items()}
    scores = {variant: figures.score(medians[usual]) for variant, figures in medians.items()}
    least = min(scores.values())
    yield from ((who, scores[variant] / least - 1, variant) for who, variant in zip(_WHO, others, strict=False))


_WHO = ("default", "advised", "parquet-linter")


def _median(several: Sequence[Figures]) -> Figures:
    return Figures(*(statistics.median(getattr(each, name) for each in several) for name in ("save", "read", "size")))


def checks(names: Sequence[str], seed: int, folder: Path) -> Iterator[Check]:
    """Yield the regrets of each table, and those of all tables together."""
    found: dict[str, list[float]] = {}
    slowest_s = 0.0
    for name in names:
        for who, value, variant in regrets(name, seed, folder):
            if who == "time":
                slowest_s = max(slowest_s, value)
                continue
            found.setdefault(who, []).append(value)
            held_out = " (not used while building)" if name in HELD_OUT else ""
            yield Check(f"{name}{held_out}: {who} {variant}"[:120], f"{value:.1%}", "-", True)
    for who, values in found.items():
        targets_of = (f"{MEDIAN_REGRET:.0%}", f"{WORST_REGRET:.0%}") if who == "advised" else ("-", "-")
        middle, worst = statistics.median(values), max(values)
        yield Check(f"{who}: median regret of {len(values)}", f"{middle:.1%}", targets_of[0], middle <= MEDIAN_REGRET)
        yield Check(f"{who}: worst regret", f"{worst:.1%}", targets_of[1], worst <= WORST_REGRET)
    yield Check("slowest advice", f"{slowest_s:.0f} s", f"{MOST_S:.0f} s", slowest_s <= MOST_S)


@click.command()
@click.option("--table", "names", multiple=True, help="Only this table (repeatable).")
@click.option("--seed", default=1, show_default=True, help="Seed of the grid.")
def main(names: tuple[str, ...], seed: int) -> None:
    """Print the regret of the advice, of the default, and of parquet-linter."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as folder:
        print_checks("within", checks(names or (*USED_WHILE_BUILDING, *HELD_OUT), seed, Path(folder)))


if __name__ == "__main__":
    main()
