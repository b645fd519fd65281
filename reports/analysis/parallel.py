"""Show tables that are stored in partitions: whether several processes are faster than one, and how much CPU time and
memory several processes need.

The time with partitions is compared with the time of the plain call, by which the same variant reads or writes one
file. Processes of a warm pool, processes of a cold pool and a library's own threads are measured separately and never
mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench_runner.results.information import READ, SAVE, MachineInfo
from bench_runner.results.records import Run
from bench_runner.results.statistics import FEWEST_ROUNDS, Interval, Ratio, Ratios, median_interval
from bench_runner.variants import OperationName, Variant, operation_name_of
from reports.analysis.access.uses import NO_VERDICT
from reports.analysis.columns import IN_A_SECTION, Column, Role
from reports.analysis.engines import ratio_text
from reports.analysis.figures import Figures
from reports.analysis.tables import Row, Table, unit_for, value_text
from reports.analysis.units import MEGABYTES, Unit, number_text
from reports.analysis.words import NOTHING, fallback_mark, why_none

SAVES, READS = IN_A_SECTION[:2]
COLD, THREADS = "cold", "threads"
WAYS = {"": "processes of a warm pool", COLD: "processes of a cold pool", THREADS: "the library's own threads"}
YES, NO, OPEN = "yes", "no", "open"
FEWEST_COUNTS = 4
"""The serial fraction is the share of the time that partitions cannot shorten. This share is computed only from
measurements with at least this many different numbers of partitions, none above the number of cores."""
NO_ANSWER = f"no verdict: it needs {FEWEST_ROUNDS} rounds with partitions and of the plain call"
MEANING = (
    "one file: the plain call, by one process, whose library may use several threads. 4: four partitions, each by its "
    f"own process of a warm pool; 4 {COLD}: by processes that have done no work before; 4 {THREADS}: by the library's "
    "own threads, in one process. gathered: into one process; left: in the processes that read them",
    f"speed-up: time of one file / time. It pays if the 95 % interval is above 1 ({YES}), and not if it is below 1 "
    f"({NO}); {OPEN}: it contains 1; {NO_VERDICT}: under {FEWEST_ROUNDS} rounds. Where times are equal, 1 comparison "
    f"in 40 says {YES} by chance. efficiency: time of 1 partition / (partitions x time). CPU, peak: of all processes; "
    "peak of one: of the process that grew most",
)


@dataclass(frozen=True)
class Series:
    """Operations that differ only in their number of partitions. `work` is what the operations do, such as a save.
    `way` is what runs in parallel: warm processes (''), cold processes or threads."""

    work: str
    way: str
    plain: OperationName | None
    """The operation that does the same work on one file, or None if the table does not have it."""
    counts: Mapping[int, OperationName]

    @property
    def title(self) -> str:
        """Title of the work, such as 'save'. Unless warm processes run it, what runs in parallel is added: 'save,
        cold'."""
        return f"{self.work}, {self.way}" if self.way else self.work

    def head(self, count: int) -> str:
        """Return a short header for a number of partitions: '4', or '4 cold' for cold processes."""
        return f"{count} {self.way}".strip()


@dataclass(frozen=True)
class Answer:
    """Whether partitions make a variant faster. The verdict is based on `count` partitions, with which the variant has
    the speed-up `speed_up`."""

    label: str
    verdict: str
    count: int
    speed_up: Ratio
    series: Series


class Times:
    """The times of all operations and variants of a table, to compare the operations of a variant."""

    def __init__(self, table: Table) -> None:
        values = {
            (row.variant, name): cell.by_round.get(Role.TIME.figure, {})
            for row in table.rows
            for name, cell in row.cells.items()
        }
        self._ratios: Ratios[tuple[Variant, OperationName]] = Ratios(values)

    def ratio(self, row: Row, one: OperationName | None, other: OperationName) -> Ratio | None:
        """Return the time of `one` divided by the time of `other`. Return None if one of the two operations has no time
        or gave a wrong answer."""
        if one is None or not {one, other} <= row.cells.keys() or row.wrong(one) or row.wrong(other):
            return None
        return self._ratios.of((row.variant, one), (row.variant, other))

    def speed_up(self, row: Row, series: Series, count: int) -> Ratio | None:
        """Return the speed-up by `count` partitions: the time of the plain call divided by the time with these
        partitions. Without a plain call, the time with one partition is divided instead. Return None if a time is
        missing."""
        base, operation = series.plain or series.counts.get(1), series.counts[count]
        return self.ratio(row, base, operation) if base != operation else None


def has_parallel(table: Table) -> bool:
    """Return whether operations on partitions were tried in a table."""
    return any(name.name in IN_A_SECTION for name in table.columns.operations)


def parallel_of(run: Run, table: Table) -> Iterator[Figures]:
    """Yield several `Figures` (tables of numbers): whether partitions pay (are faster than one file), the figures of
    each kind of work, the sizes, and the serial fractions."""
    times, found, cores = Times(table), series_of(table), _cores(run.info.machine)
    fractions = _fractions(table, found, cores)
    yield _answer(table, times, found, MEANING if fractions else (_why_no_fraction(cores), *MEANING))
    for work in dict.fromkeys(series.work for series in found):
        yield _figures(table, times, [series for series in found if series.work == work])
    yield from _sizes(table, [series for series in found if series.work == "save"])
    yield from fractions


def series_of(table: Table) -> list[Series]:
    """Return the `Series` of a table: saves, then reads, then scans, each with the warm pool first."""
    found: dict[tuple[int, str, str, OperationName], dict[int, OperationName]] = {}
    for name in (name for name in table.columns.operations if name.name in IN_A_SECTION):
        way = " ".join(word for word in (COLD, THREADS) if word in name.parameters.values())
        work, plain = _work(name)
        counts = found.setdefault((IN_A_SECTION.index(name.name), work, way, plain), {})
        counts[int(name.parameters["partitions"])] = name
    return [
        Series(work, way, plain if plain in table.columns.operations else None, dict(sorted(counts.items())))
        for (_, work, way, plain), counts in sorted(found.items())
    ]


def _work(name: OperationName) -> tuple[str, OperationName]:
    """Return the kind of work of an operation, and the operation that does the same work without partitions."""
    if name.name == SAVES:
        return "save", SAVE
    if name.name == READS:
        return f"read, {name.parameters['result']}", READ
    share = name.parameters["selectivity"]
    return f"scan of {100 * float(share):g} %", operation_name_of(f"scan[selectivity={share}]")


# --- does it pay? -------------------------------------------------------------------------------------------------


def _verdict(speed_up: Ratio | None) -> str:
    if speed_up is None:
        return NOTHING
    if speed_up.tied is None:
        return NO_VERDICT
    return OPEN if speed_up.tied else YES if speed_up.ratio > 1 else NO


def answers_of(table: Table, times: Times, series: Series) -> Iterator[Answer]:
    """Yield the answer for each variant with a verdict. Partitions pay if they are faster for at least one number of
    partitions. They do not pay if they are slower for every number. One partition is not considered, because it is not
    parallel."""
    for row in table.rows:
        counts = [count for count in series.counts if count > 1 and not row.variant.is_raw_io]
        found = [(count, ratio) for count in counts if (ratio := times.speed_up(row, series, count)) is not None]
        by_verdict = {_verdict(ratio): (count, ratio) for count, ratio in sorted(found, key=lambda each: each[1].ratio)}
        if by_verdict.keys() - {NO_VERDICT}:
            best = next(verdict for verdict in (YES, OPEN, NO_VERDICT, NO) if verdict in by_verdict)
            yield Answer(row.label, OPEN if best == NO_VERDICT else best, *by_verdict[best], series)


def _answer(table: Table, times: Times, found: Sequence[Series], notes: Sequence[str]) -> Figures:
    lines: list[tuple[str, tuple[str, ...]]] = []
    compared: list[Answer] = []
    for series in found:
        own = list(answers_of(table, times, series))
        compared += own if series.plain else []
        counts = [str([each.verdict for each in own].count(verdict)) for verdict in (YES, NO, OPEN)]
        texts = (f"{counts[0]} of {len(own)}", *counts[1:]) if own else (NO_VERDICT,) * 3
        best = _best(own)
        most = f"{best.label}, {best.count}: {number_text(best.speed_up.ratio)}" if best else NOTHING
        lines.append((series.title if series.plain else f"{series.title}, against 1 partition", (*texts, most)))
    ways = sorted({each.series.way for each in compared})
    told = [summary(way, [each for each in compared if each.series.way == way]) for way in ways] or [NO_ANSWER]
    headers = ("pays for", "does not\npay for", "open for", "most for")
    return Figures("does it pay?", "work", headers, tuple(lines), (*told, *notes))


def _best(answers: Sequence[Answer]) -> Answer | None:
    """Return the answer with the largest speed-up among the variants for which partitions pay, or None if they pay for
    none."""
    paying = [each for each in answers if each.verdict == YES]
    return max(paying, key=lambda each: each.speed_up.ratio, default=None)


def summary(way: str, answers: Sequence[Answer]) -> str:
    """Return a sentence about one way to run in parallel, such as warm processes. The sentence states for how many
    variants this way pays (is faster than one process) in at least one kind of work, and for which variant it pays
    most."""
    paying, unsure, all_of_them = (
        len({each.label for each in answers if each.verdict in verdicts})
        for verdicts in ((YES,), (OPEN,), (YES, OPEN, NO))
    )
    named, best = f"by {WAYS.get(way, way)}", _best(answers)
    if best is None:
        return f"{named}, it does not pay for any variant ({all_of_them} compared, open for {unsure or 'none'})"
    return (
        f"{named}, it pays for {paying} of {all_of_them} variants, most for {best.label} ({best.series.work}, "
        f"{best.count} partitions): {ratio_text(best.speed_up)} times as fast as one process"
    )


# --- figures of one kind of work ----------------------------------------------------------------------------------


def _figures(table: Table, times: Times, several: Sequence[Series]) -> Figures:
    unit, plain = unit_for(table, Role.TIME.figure), several[0].plain
    lines: list[tuple[str, tuple[str, ...]]] = []
    without: dict[str, list[str]] = {}
    for row in table.rows:
        if plain is not None and plain in row.cells:
            lines.append((f"{row.label}, one file", _texts(table, row, plain, unit, ("",) * 4)))
        for series, count, name in ((each, *pair) for each in several for pair in each.counts.items()):
            if name not in row.cells:
                continue
            label, cell = f"{row.label}, {series.head(count)}", row.cells[name]
            for failure in cell.failures:
                without.setdefault(f"{failure.kind}: {failure.reason}", []).append(label)
            # A refused operation has no row, because the note below the figures gives the reason.
            if cell.rounds or not cell.failures or cell.failures[0].is_failure:
                lines.append((label, _texts(table, row, name, unit, _compared(times, row, series, count))))
    headers = (
        *(f"time\n{unit.name}", "speed-up", "95 %\ninterval", "pays?", "efficiency"),
        *(f"CPU\n{unit.name}", "peak\nMB", "peak of\none MB"),
    )
    notes = tuple(f"reason for {'; '.join(labels)}: {why}" for why, labels in without.items())
    return Figures(several[0].work, "format, partitions", headers, tuple(lines), notes, abreast=len(headers))


def _compared(times: Times, row: Row, series: Series, count: int) -> tuple[str, ...]:
    speed_up = times.speed_up(row, series, count)
    one = times.ratio(row, series.counts.get(1), series.counts[count])
    return (
        NOTHING if speed_up is None else number_text(speed_up.ratio),
        NOTHING if speed_up is None else _interval(speed_up),
        _verdict(speed_up),
        NOTHING if one is None else f"{one.ratio / count:.2f}",
    )


def _interval(found: Ratio) -> str:
    if found.low is None or found.high is None:
        return NOTHING
    return f"{number_text(found.low)}-{number_text(found.high)}"


def _texts(table: Table, row: Row, name: OperationName, unit: Unit, compared: tuple[str, ...]) -> tuple[str, ...]:
    time = _column(name, Role.TIME)
    text = value_text(table, row, time, unit)
    marks = table.mark(time, row.variant) + fallback_mark(row, time)
    memory = [_column(name, Role.MEMORY, figure) for figure in (Role.MEMORY.figure, "peak_process_bytes")]
    return (
        why_none(row, time) if text is None else text + marks,
        *compared,
        value_text(table, row, _column(name, Role.TIME, "cpu_ns"), unit) or NOTHING,
        *(value_text(table, row, column, MEGABYTES) or NOTHING for column in memory),
    )


def _column(name: OperationName, role: Role, figure: str = "") -> Column:
    return Column(name, figure or role.figure, role, "")


def _sizes(table: Table, saves: Sequence[Series]) -> Iterator[Figures]:
    columns = {series.head(count): name for series in saves for count, name in series.counts.items()}
    lines = []
    for row in table.rows:
        texts = [_size(table, row, name) for name in columns.values()]
        if {*texts} - {NOTHING}:
            lines.append((row.label, (_size(table, row, SAVE, Role.SIZE.figure), *texts)))
    if lines:
        title = "save: MB of all partitions, and number of files"
        yield Figures(title, "format", ("one file", *columns), tuple(lines))


def _size(table: Table, row: Row, name: OperationName, figure: str = "growth_bytes") -> str:
    text = value_text(table, row, _column(name, Role.SIZE, figure), MEGABYTES)
    files = row.interval(_column(name, Role.SIZE, "files_count"))
    return NOTHING if text is None else f"{text} ({files.median:,.0f})" if files else text


# --- the serial fraction ------------------------------------------------------------------------------------------


def serial_fraction(times: Mapping[int, Mapping[int, float]]) -> Interval | None:
    """Return the serial fraction s of T(N) = T(1) * (s + (1 - s) / N), where T(N) is the time with N partitions.
    `times` maps the number of partitions to the time of each round.

    s is fitted to the ratios T(N) / T(1) of each round by least squares. The result is the median over rounds with the
    usual interval of a median, because the interval of a bootstrap is too narrow with few rounds (`median_interval`).
    """
    fitted = []
    for number in sorted(set.intersection(*(set(of_count) for of_count in times.values()))):
        points = [(1 - 1 / count, of_count[number] / times[1][number] - 1 / count) for count, of_count in times.items()]
        fitted.append(sum(x * y for x, y in points) / sum(x * x for x, _ in points))
    return median_interval(fitted) if fitted else None


def _fractions(table: Table, found: Sequence[Series], cores: float) -> tuple[Figures, ...]:
    fitted = {
        series.title: {count: name for count, name in series.counts.items() if count <= cores} for series in found
    }
    columns = {title: counts for title, counts in fitted.items() if 1 in counts and len(counts) >= FEWEST_COUNTS}
    lines = [(row.label, tuple(_fraction(row, counts) for counts in columns.values())) for row in table.rows]
    lines = [(label, texts) for label, texts in lines if {*texts} - {NOTHING}]
    note = (
        f"s of T(N) = T(1) (s + (1 - s) / N) with its 95 % interval, fitted to at least {FEWEST_COUNTS} numbers of "
        f"partitions up to the {cores:g} cores. Over 1: several are slower than one. It is no forecast for more cores"
    )
    title = "serial fraction by Amdahl's law"
    return (Figures(title, "format", tuple(columns), tuple(lines), (note,)),) if lines else ()


def _fraction(row: Row, counts: Mapping[int, OperationName]) -> str:
    cells = {count: row.cells[name] for count, name in counts.items() if name in row.cells and not row.wrong(name)}
    times = {count: cell.by_round[Role.TIME.figure] for count, cell in cells.items() if cell.rounds}
    found = serial_fraction(times) if 1 in times and len(times) >= FEWEST_COUNTS else None
    if found is None:
        return NOTHING
    if found.low is None or found.high is None:
        return NO_VERDICT
    # Adding 0.0 turns -0.0 into 0.0.
    middle, low, high = (f"{round(each, 2) + 0.0:.2f}" for each in (found.median, found.low, found.high))
    return f"{middle} ({low} to {high})"


def _why_no_fraction(cores: float) -> str:
    known = f"the {cores:g} cores" if cores else "the number of cores, which is unknown"
    return f"no serial fraction by Amdahl's law: fewer than {FEWEST_COUNTS} numbers of partitions up to {known}"


def _cores(machine: MachineInfo) -> float:
    """Return the number of cores that the run could use, or 0 if it is unknown."""
    return min((each for each in (machine.cores, machine.cpu_limit_cores) if each), default=0)
