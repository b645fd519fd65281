"""Propose settings of Parquet for a table, by storing each column alone under each encoding and codec.

The costs of a file are nearly the sums of the costs of its columns. Therefore the best encodings are found from these
sums, separately for each codec, by coordinate descent (changing one column at a time). Settings of the whole file, such
as the size of row groups, affect all columns, so they are tried on the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.column_numbers import spelled
from bench_runner.clock import now_ns
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from format_bench.within.costs import Costs, Objective, measured
from format_bench.within.proposal import Proposal
from formats.parquet.by_arrow import ParquetPyarrow
from formats.parquet.parquet_columns import ENCODINGS, encodings_of, is_flat

CODECS: Sequence[tuple[str, int | None]] = (
    *(("none", None), ("snappy", None), ("lz4", None), ("zstd", 1), ("zstd", 3), ("zstd", 9)),
)
SLOW_CODECS: Sequence[tuple[str, int | None]] = (("gzip", 6), ("brotli", 6), ("zstd", 19))
"""Codecs with which saving takes ten times as long as with CODECS. They are tried only if the save time has a small
weight."""
SLOW_WEIGHT = 0.1
USUAL = ("snappy", None)
DICTIONARY = "dictionary"
ROW_GROUPS = (65_536, 262_144)
LAYOUTS: Sequence[Mapping[str, str]] = (
    *({"row_group_rows": str(rows)} for rows in ROW_GROUPS),
    {"page_bytes": "65536"},
    {"page_bytes": "8388608"},
    {"page_version": "2.0"},
    {"dictionary_bytes": "16777216"},
    {"dictionary": "false"},
    {"statistics": "false"},
)
"""Settings of the whole file that are tried, one at a time."""
GAIN = 0.02
"""A setting of the whole file is used in a combination if it makes the score better by this share."""
COLUMN_GAIN = 0.0005
"""A column is stored in another way than the default only if this makes the score of the table better by this share."""
SINGLES, COMBINATIONS = 4, 3
"""Number of single changes and of combinations that are proposed."""
FEWEST_ROWS = 10_000
FEWEST_ROUNDS, LEAST_VARIANTS = 8, 4
"""The number of rounds that can distinguish a difference of a few per cent from noise, and the number of variants that
are measured even if the time is too short for these rounds: the default, a single change and two combinations."""
START_S, CONVERSIONS = 1.0, 2
"""To estimate the duration of a sample (one measurement in its own process): seconds to start the process, and how
often the process saves and reads in all."""


@dataclass(frozen=True)
class _Way:
    """A way to store one column: its encoding and its codec."""

    encoding: str
    codec: tuple[str, int | None]


@dataclass(frozen=True)
class _Column:
    """The costs of one column for each way to store it."""

    number: int
    costs: Mapping[_Way, Costs]


Settings = Mapping[str, str]


def proposals(
    table: pa.Table,
    weights: Mapping[str, float],
    target: Target,
    budget_s: float,
    race_s: float,
    *,
    reorder: bool = False,
) -> list[Proposal]:
    """Return the default variant of Parquet by pyarrow, the best changes of a single setting, and the best
    combinations.

    Trying the settings takes about `budget_s` seconds. The returned variants are later measured for `race_s` seconds;
    if this is too short for FEWEST_ROUNDS rounds of all variants, fewer are returned. `weights` has the weights of
    'size', 'read' and 'save'. With `reorder`, the rows may be sorted by a column. Raises ConversionError if a copy
    differs from the table.
    """
    study = _Study(table, weights, target)
    began_ns = now_ns()
    columns = list(study.columns(began_ns + int(budget_s * 0.6 * 1e9)))
    deadline_ns = began_ns + int(budget_s * 1e9)
    singles: list[tuple[Settings, str]] = [
        (_codec_settings(codec), _codec_text(codec)) for codec in study.codecs if codec != USUAL
    ]
    singles += study.encoded_alone(columns)
    singles += [(layout, _layout_text(layout)) for layout in LAYOUTS if study.applies(layout)]
    singles += [
        ({"order": str(number)}, f"sorted by {table.schema.names[number]!r}") for number in study.orders(reorder)
    ]
    scored = study.scored(singles, deadline_ns)
    best_singles = scored[:SINGLES]
    combined = study.scored(study.combinations(columns), deadline_ns)[:COMBINATIONS]
    useful = [
        settings for score, settings, _ in scored if score < -GAIN and not set(settings) & {"codec", "dictionary"}
    ]
    grown = study.grown(combined, [each for each in useful if not _names_columns(each)], deadline_ns)
    found = {study.variant({}): study.proposal({}, "")}
    # The best ones come first, because a slow table has time for few.
    for _, settings, text in chain.from_iterable(zip_longest(grown, best_singles, fillvalue=(0.0, {}, ""))):
        found.setdefault(study.variant(settings), study.proposal(settings, text))
    return list(found.values())[: study.most_variants(race_s)]


def _names_columns(settings: Settings) -> bool:
    return bool({"plain", "split", "delta", "prefix", "lengths", "raw"} & settings.keys())


def _codec_settings(codec: tuple[str, int | None]) -> dict[str, str]:
    name, level = codec
    return {"codec": name, **({} if level is None else {"level": str(level)})}


def _codec_text(codec: tuple[str, int | None]) -> str:
    name, level = codec
    return "no codec" if name == "none" else f"codec {name}{'' if level is None else f' at level {level}'}"


def _layout_text(layout: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in layout.items())


class _Study:
    """Stores a table and its columns under many settings."""

    def __init__(self, table: pa.Table, weights: Mapping[str, float], target: Target) -> None:
        self._table, self._weights = table.replace_schema_metadata(None), dict(weights)
        self._target = target
        slow = weights.get("save", 0) < SLOW_WEIGHT * sum(weights.values())
        self.codecs = (*CODECS, *(SLOW_CODECS if slow else ()))
        self._conversion = self._converted()
        self._known: dict[str, Costs] = {}
        self._objective = Objective(self._weights, Costs(1, 1, 1))
        self._objective = Objective(self._weights, self._whole({}))

    def variant(self, settings: Settings) -> str:
        return str(ParquetPyarrow(dict(settings)).variant)

    def proposal(self, settings: Settings, text: str) -> Proposal:
        """Return the variant with these settings, described by `text`."""
        adapter = ParquetPyarrow(dict(settings))
        adapter.load_library()
        order = settings.get("order")
        return Proposal(
            adapter.variant,
            text,
            len(settings.keys() - {"level"}),
            adapter.arguments(self._table.schema),
            None if order is None else self._table.schema.names[int(order)],
        )

    def _converted(self) -> Costs:
        """Return the times for converting between the user's object and Arrow. They are the same for every variant."""
        began_ns = now_ns()
        held = targets.make(self._table, self._target)
        read_ns = now_ns() - began_ns
        began_ns = now_ns()
        targets.to_native(held, self._target, ParquetPyarrow.native)
        return Costs(0, read_ns, now_ns() - began_ns)

    def _whole(self, settings: Settings) -> Costs:
        """Return the costs of the whole table under these settings, including the conversion to and from the user's
        object."""
        variant = self.variant(settings)
        if variant not in self._known:
            adapter = ParquetPyarrow(dict(settings))
            adapter.load_library()
            table = self._table
            began_ns = now_ns()
            if "order" in settings:
                table = table.sort_by(table.schema.names[int(settings["order"])])
            sort_ns = now_ns() - began_ns
            save = partial(_saved, arguments=adapter.arguments(table.schema))
            costs = measured(table, save, partial(_read, threads=True), adapter.losses)
            self._known[variant] = costs + self._conversion + Costs(0, 0, sort_ns)
        return self._known[variant]

    def most_variants(self, race_s: float) -> int:
        """Return how many variants can be measured in FEWEST_ROUNDS rounds each within `race_s` seconds, but at least
        LEAST_VARIANTS.

        The estimate for a sample includes the start of its process, and a second save and read to verify the result."""
        usual = self._whole({})
        sample_s = START_S + CONVERSIONS * (usual.save + usual.read) / 1e9
        return max(LEAST_VARIANTS, int(race_s / (FEWEST_ROUNDS * sample_s)))

    def score(self, settings: Settings) -> float:
        """Return the logarithm of the score of the whole table under these settings. It is 0 for the default; lower is
        better."""
        return self._objective.of(self._whole(settings))

    def scored(self, several: Sequence[tuple[Settings, str]], deadline_ns: int) -> list[tuple[float, Settings, str]]:
        """Return (score, settings, text) for each of `several`, the best first. Settings that are not tried before the
        deadline are left out."""
        found = []
        for settings, text in several:
            if now_ns() > deadline_ns:
                break
            found.append((self.score(settings), settings, text))
        return sorted(found, key=lambda each: each[0])

    def applies(self, layout: Settings) -> bool:
        """Return whether a setting of the whole file is possible for this table and can change anything."""
        rows = layout.get("row_group_rows")
        if rows is not None and int(rows) >= self._table.num_rows:
            return False
        return ParquetPyarrow(dict(layout)).refusal(self._table.schema, self._table.num_rows) is None

    def orders(self, reorder: bool) -> list[int]:
        """Return the numbers of the columns by which the rows may be sorted: columns that are not nested and whose
        values repeat. The list is empty if `reorder` is False."""
        if not reorder:
            return []
        found = []
        for number, column in enumerate(self._table.columns):
            plain = (
                is_flat(column.type) and not pa.types.is_dictionary(column.type) and not pa.types.is_null(column.type)
            )
            if plain and len(pc.unique(column)) <= self._table.num_rows / 2:
                found.append(number)
        return found

    # --- columns -------------------------------------------------------------------------------------------------

    def columns(self, deadline_ns: int) -> Iterator[_Column]:
        """Yield the costs of each column that is not nested. If time is short, costs are measured on fewer rows, and
        columns that are not reached before the deadline are left out."""
        flat = [number for number, field in enumerate(self._table.schema) if is_flat(field.type)]
        for place, number in enumerate(flat):
            left_ns = (deadline_ns - now_ns()) / (len(flat) - place)
            if left_ns <= 0:
                return
            yield _Column(number, self._ways(number, left_ns))

    def _ways(self, number: int, left_ns: float) -> dict[_Way, Costs]:
        table = self._table.select([number])
        name = table.schema.names[0]
        encodings = (DICTIONARY, *sorted(encodings_of(table.schema.field(0).type)))
        ways = [_Way(encoding, codec) for codec in self.codecs for encoding in encodings]
        began_ns = now_ns()
        self._costs(table, name, ways[0])
        # The slowest ways take several times as long as the first.
        rows = int(min(1.0, left_ns / max(now_ns() - began_ns, 1) / (3 * len(ways))) * table.num_rows)
        part = table.slice(0, max(rows, min(FEWEST_ROWS, table.num_rows)))
        factor = table.num_rows / max(part.num_rows, 1)
        empty = self._costs(part.slice(0, 0), name, ways[0])
        return {way: (self._costs(part, name, way) - empty) * factor for way in ways}

    def _costs(self, table: pa.Table, name: str, way: _Way) -> Costs:
        codec, level = way.codec
        arguments: dict[str, Any] = {"compression": codec, "compression_level": level}
        if way.encoding != DICTIONARY:
            arguments |= {"use_dictionary": False, "column_encoding": {name: ENCODINGS[way.encoding]}}
        losses = ParquetPyarrow().losses
        return measured(table, partial(_saved, arguments=arguments), partial(_read, threads=False), losses)

    def encoded_alone(self, columns: Sequence[_Column]) -> Iterator[tuple[Settings, str]]:
        """Yield (settings, text) for each encoding that improves at least one column. The settings use the encoding for
        all columns that it improves. A column is improved if the modelled score gets better when only this column
        changes to the encoding. All columns have the usual codec."""
        usual = Costs.sum(column.costs[_Way(DICTIONARY, USUAL)] for column in columns)
        for encoding in ENCODINGS:
            better = []
            for column in columns:
                way = _Way(encoding, USUAL)
                if way not in column.costs:
                    continue
                total = usual - column.costs[_Way(DICTIONARY, USUAL)] + column.costs[way]
                if self._modelled(total, usual) < 0:
                    better.append(column.number)
            if better:
                yield {encoding: spelled(better)}, f"{encoding} in {len(better):,} columns"

    def _modelled(self, total: Costs, usual: Costs) -> float:
        return Objective(self._weights, usual + self._conversion).of(total + self._conversion)

    def combinations(self, columns: Sequence[_Column]) -> list[tuple[Settings, str]]:
        """Return (settings, text) for each codec, with the best encodings of all columns under this codec. The codec
        with the best modelled score comes first."""
        usual = Costs.sum(column.costs[_Way(DICTIONARY, USUAL)] for column in columns)
        found: list[tuple[float, Settings, str]] = []
        for codec in self.codecs:
            chosen, score = self._descended(columns, codec, usual)
            settings = {**_codec_settings(codec), **_column_settings(chosen, codec)}
            encoded = sum(way.encoding != DICTIONARY for way in chosen.values())
            found.append((score, settings, f"{_codec_text(codec)}, encodings of {encoded:,} columns"))
        found.sort(key=lambda each: each[0])
        return [(settings, text) for _, settings, text in found]

    def _descended(
        self, columns: Sequence[_Column], codec: tuple[str, int | None], usual: Costs
    ) -> tuple[dict[int, _Way], float]:
        """Return two results: the best way to store each column (encoding and codec), by the column's number, and the
        modelled score of the table. The best ways are found by coordinate descent, which changes one column at a
        time."""
        chosen = {column.number: _Way(DICTIONARY, codec) for column in columns}
        total = Costs.sum(column.costs[chosen[column.number]] for column in columns)
        for _ in range(_SWEEPS):
            before = dict(chosen)
            for column in columns:
                rest = total - column.costs[chosen[column.number]]
                ways = [way for way in column.costs if way.codec in (codec, ("none", None))]
                default = _Way(DICTIONARY, codec)
                scores = {
                    way: self._modelled(rest + column.costs[way], usual) + COLUMN_GAIN * (way != default)
                    for way in ways
                }
                chosen[column.number] = min(ways, key=scores.__getitem__)
                total = rest + column.costs[chosen[column.number]]
            if chosen == before:
                break
        return chosen, self._modelled(total, usual)

    def grown(
        self, combined: Sequence[tuple[float, Settings, str]], useful: Sequence[Settings], deadline_ns: int
    ) -> list[tuple[float, Settings, str]]:
        """Return the combinations, the best first. Until the deadline, each combination is extended by the settings in
        `useful` that make the score of the combination better by more than GAIN."""
        found = []
        for start, settings, text in combined:
            score = start
            for more in useful:
                if now_ns() > deadline_ns or set(more) & set(settings):
                    continue
                tried = {**settings, **more}
                if (better := self.score(tried)) < score - GAIN:
                    score, settings, text = better, tried, f"{text}, {_layout_text(more)}"
            found.append((score, settings, text))
        return sorted(found, key=lambda each: each[0])


_SWEEPS = 10


def _column_settings(chosen: Mapping[int, _Way], codec: tuple[str, int | None]) -> dict[str, str]:
    """Return the settings whose values are numbers of columns: the encodings in `chosen`, and 'raw' for columns without
    the codec."""
    by_setting: dict[str, list[int]] = {}
    for number, way in chosen.items():
        if way.encoding != DICTIONARY:
            by_setting.setdefault(way.encoding, []).append(number)
        if way.codec != codec:
            by_setting.setdefault("raw", []).append(number)
    return {name: spelled(numbers) for name, numbers in sorted(by_setting.items())}


def _saved(table: pa.Table, *, arguments: Mapping[str, Any]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **arguments)
    return sink.getvalue()


def _read(stored: pa.Buffer, *, threads: bool) -> pa.Table:
    return pq.read_table(pa.BufferReader(stored), use_threads=threads)
