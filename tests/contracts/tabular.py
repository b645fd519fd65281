"""Contract of tabular formats. A format's test file inherits it and names the variant:

    class TestParquet(TabularFormatContract):
        variant = "parquet[engine=pyarrow,codec=none]"

Formats declare their limits (refusals, losses, known faults); they do not override tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from adapters.contract import Native, TabularFormat
from adapters.offers import Parts
from adapters.registry import Registry
from bench_runner.machine.linux import file_mappings
from bench_runner.operations import targets
from bench_runner.operations.targets import Target
from bench_runner.results.records import Fidelity
from bench_runner.worker import fidelity, verify
from data_generator.generated.kinds import KINDS
from formats.registry import FORMATS
from tests.contracts import declarations
from tests.contracts.adapters import AdapterContract, left_open, only_for, open_below
from tests.contracts.fresh import run_fresh
from tests.contracts.one_duckdb import one_duckdb
from tests.contracts.projection import ProjectionContract, mixed_table, of_names
from tests.contracts.selection import SelectionContract
from tests.contracts.streams import StreamContract

TARGETS = (Target("pandas"), Target("arrow"))

HOSTILE_NAMES = (
    *("", " ", " padded ", "Key", "key", "*", "^a.*$", "1", "a.b", "a/b", "a:b", "a,b", "a;b", "a\tb", "a\nb", "a\rb"),
    *("a\0b", 'a"b', "a'b", "a`b", "[a]", "{a}", "null", "select", "index", "__index_level_0__", "rowid", "filename"),
    *("é", "e\u0301", "日本", "𝄞", "x" * 300),
)
"""Column names that are empty, padded, equal except for case, reserved, or contain characters with a special
meaning."""

_SPOILING: dict[str, set[str]] = {}
"""Format, or family of formats such as hdf5 -> kinds of columns that an earlier variant refused or changed undeclared.

Later variants try these kinds in separate tables, which saves the search for them."""

SHARED = """
import pyarrow as pa
from bench_runner.operations import targets
from formats.registry import FORMATS
"""

LOADS_NOTHING = """
import sys, warnings
from pathlib import Path
import pyarrow as pa
from bench_runner.operations import targets
from formats.registry import FORMATS

warnings.simplefilter("ignore")
variant, location = sys.argv[1:3]
adapter = FORMATS.build(variant)
adapter.load_library()
table = pa.table({"i": [1, 2], "f": [0.5, 1.5], "b": [True, False], "s": ["a", "b"]})
for kind in ("pandas", "arrow"):
    target = targets.Target(kind)
    targets.apply_strings(target)
    place = Path(location.replace("*", kind))
    held = targets.make(table, target)
    before = set(sys.modules)
    adapter.save(targets.to_native(held, target, adapter.native), place)
    targets.touch(targets.from_native(adapter.read(place), target, adapter.native_read))
    handle = adapter.open(place)
    if handle.project:
        targets.touch(targets.from_native(handle.project(["s", "i"]), target, adapter.native_read))
    handle.close()
    print(",".join(sorted(set(sys.modules) - before)))
"""


def ordinary_table(rows: int = 2_000) -> pa.Table:
    """Return a table that every format accepts, large enough for several pages and buffers."""
    return pa.table(
        {
            "i": pa.array(range(rows), pa.int64()),
            "f": pa.array([row * 0.25 for row in range(rows)], pa.float64()),
            "b": pa.array([row % 3 == 0 for row in range(rows)], pa.bool_()),
            "s": pa.array([f"word {row % 97}" for row in range(rows)], pa.string()),
        }
    )


def _is_mapped_from(result: Any, folder: Path) -> bool:
    """Return whether at least one buffer of the result is mapped from a file below the folder."""
    stored = [(start, end) for start, end, path in file_mappings() if path.startswith(str(folder))]
    return any(
        address < end and start < address + size_bytes
        for address, size_bytes in targets.buffers(result)
        for start, end in stored
    )


@pytest.mark.filterwarnings("ignore")
class SettingContract(AdapterContract):
    """Contract of a variant that differs from a tested variant only in a setting that does not change values.

    An example is a codec. Inherit it and set `variant`."""

    registry: ClassVar[Registry] = FORMATS

    @pytest.fixture(autouse=True, scope="class")
    def _databases(self) -> Iterator[None]:
        with one_duckdb():
            yield

    @pytest.fixture(params=TARGETS, ids=lambda target: target.kind)
    def target(self, request: pytest.FixtureRequest) -> Target:
        targets.apply_strings(request.param)
        return request.param

    def save(self, adapter: TabularFormat, target: Target, location: Path) -> None:
        held = targets.make(ordinary_table(), target)
        adapter.save(targets.to_native(held, target, adapter.native), location)

    def read(self, adapter: TabularFormat, target: Target, location: Path) -> Any:
        return targets.from_native(adapter.read(location), target, adapter.native_read)

    @pytest.mark.rule(6, 7)
    def test_an_ordinary_table_comes_back_and_leaves_nothing(
        self, adapter: TabularFormat, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Some readers treat a folder called name=value as a column, or overwrite stored values with it.
        place, working, temporary = (tmp_path / name for name in ("i=7/new=3", "working", "temporary"))
        for folder in (place, working, temporary):
            folder.mkdir(parents=True)
        monkeypatch.chdir(working)
        monkeypatch.setenv("TMPDIR", str(temporary))
        location = place / f"t{adapter.suffix}"
        self.save(adapter, target, location)
        assert list(open_below(place)) == []
        result = self.read(adapter, target, location)
        assert _is_mapped_from(result, place) == (
            # Text and booleans of a DataFrame are always copies, so a mapped variant has some private buffers too.
            adapter.values.get("mapped") == "true" and adapter.values["codec"] == "none"
        )
        assert verify.compare(ordinary_table(), result, target, adapter.losses).problems == ()
        del result
        assert left_open(place) == []
        stored = adapter.stored(location)
        assert left_open(place) == []
        assert stored.codec == adapter.values.get("codec", stored.codec)
        assert list(place.iterdir()) == [location]
        assert list(working.iterdir()) == []
        assert list(temporary.iterdir()) == []
        found = [location, *location.rglob("*")]
        assert all(path.is_dir() or path.is_file() for path in found)
        assert not any(path.is_symlink() for path in found)
        assert sum(path.stat().st_size for path in found if path.is_file()) > 0

    @pytest.mark.rule(4)
    def test_saves_again_at_another_place(self, adapter: TabularFormat, place: Path) -> None:
        target, table = Target("arrow"), mixed_table()
        places = [place / f"{name}{adapter.suffix}" for name in ("first", "second")]
        for location in places:
            adapter.save(targets.to_native(table, target, adapter.native), location)
        for location in places:
            result = self.read(adapter, target, location)
            assert verify.compare(table, result, target, adapter.losses).problems == ()

    # --- what it declares --------------------------------------------------------------------------------------------

    @pytest.mark.slow
    @pytest.mark.rule(2)
    def test_save_and_read_import_nothing(self, adapter: TabularFormat, place: Path) -> None:
        done = run_fresh(SHARED, LOADS_NOTHING, self.variant, str(place / f"*{adapter.suffix}"))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == ""

    def test_refuses_more_rows_than_it_holds(self, adapter: TabularFormat) -> None:
        schema = ordinary_table(1).schema
        assert adapter.refusal(schema, 1) is None
        if adapter.max_rows is not None:
            assert adapter.refusal(schema, adapter.max_rows) is None
            assert f"{adapter.max_rows:,}" in str(adapter.refusal(schema, adapter.max_rows + 1))


class WholeTableContract(SettingContract):
    """Contract of saving and reading all kinds of columns. Inherit it and set `variant`.

    It suffices for a variant whose calls for parts of a table are those of a variant with the full contract."""

    @pytest.fixture(scope="class")
    def outcomes(self, request: pytest.FixtureRequest, tmp_path_factory: Any) -> dict[str, list[Fidelity]]:
        """Return what the variant does to every kind of column, by target."""
        adapter = request.cls.registry.build(request.cls.variant)
        adapter.load_library()
        found: dict[str, list[Fidelity]] = {}
        for target in TARGETS:
            targets.apply_strings(target)
            folder = tmp_path_factory.mktemp("kinds")
            # Kinds that are refused with one target or variant are likely to be refused with other targets and
            # variants.
            alone = _SPOILING.setdefault(adapter.format.partition("-")[0], set())
            found[target.kind] = declarations.records(request.cls.variant, adapter, target, folder, alone)
            spoiling = (fidelity.REFUSED, fidelity.ERROR)
            alone.update(record.kind for record in found[target.kind] if record.outcome in spoiling)
        return found

    @only_for(lambda adapter: adapter.native in (Native.ARROW, Native.BUFFERS, Native.POLARS))
    def test_chunks_come_back_in_their_order(self, adapter: TabularFormat, place: Path) -> None:
        """Writers with several threads, such as DataFusion's, may reorder chunks."""
        table, target = ordinary_table(20_000).select(["i"]), Target("arrow")
        chunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 9_000), table.slice(9_001)])
        location = place / f"t{adapter.suffix}"
        adapter.save(targets.to_native(chunked, target, adapter.native), location)
        comparison = verify.compare(table, self.read(adapter, target, location), target, adapter.losses)
        assert comparison.problems == ()

    @only_for(lambda adapter: adapter.parts is Parts.FILES)
    def test_partitions_are_stored_in_any_order_and_read_in_theirs(
        self, adapter: TabularFormat, target: Target, place: Path
    ) -> None:
        table, folder = ordinary_table(), place / "parts"
        folder.mkdir()
        wanted = [table.slice(0, 700), table.slice(700, 700), table.slice(1_400)]
        for number in (2, 0, 1):
            of_part, path = adapter.part(folder, number)
            of_part.save(targets.to_native(targets.make(wanted[number], target), target, of_part.native), path)
        adapter.commit_parts(folder, len(wanted))
        assert adapter.count_parts(folder) == len(wanted)
        for number, expected in enumerate(wanted):
            of_part, path = adapter.part(folder, number)
            result = self.read(of_part, target, path)
            assert verify.compare(expected.combine_chunks(), result, target, adapter.losses).problems == ()
        if adapter.reads_folders:
            assert verify.compare(table, self.read(adapter, target, folder), target, adapter.losses).problems == ()

    @only_for(lambda adapter: adapter.parts is Parts.DASK)
    def test_twelve_partitions_by_dask_are_read_in_their_order(self, adapter: TabularFormat, place: Path) -> None:
        """Names of files may sort as text, 10 before 2."""
        table, target, folder = ordinary_table(120), Target("pandas"), place / "parts"
        targets.apply_strings(target)
        folder.mkdir()
        adapter.save_parts(targets.make(table, target), folder, 12)
        frame = adapter.parts_frame(folder)
        assert adapter.count_parts(folder) == frame.npartitions == 12
        result = frame.compute().reset_index(drop=True)
        assert verify.compare(table, result, target, adapter.losses).problems == ()

    def test_hostile_names_come_back_or_are_refused_in_the_plan(
        self, adapter: TabularFormat, target: Target, place: Path
    ) -> None:
        table = of_names(adapter, HOSTILE_NAMES)
        location = place / f"t{adapter.suffix}"
        adapter.save(targets.to_native(targets.make(table, target), target, adapter.native), location)
        back = self.read(adapter, target, location)
        assert list(back.column_names if hasattr(back, "column_names") else back.columns) == table.column_names
        assert verify.compare(table, back, target, adapter.losses).problems == ()

    @pytest.mark.slow
    @pytest.mark.rule(12)
    def test_every_kind_comes_back_as_declared(
        self, adapter: TabularFormat, outcomes: dict[str, list[Fidelity]], tmp_path: Path
    ) -> None:
        undeclared = []
        for records in outcomes.values():
            assert len(records) == sum(len(kind.nulls) for kind in KINDS.values())
            undeclared += [record for record in records if record.outcome == fidelity.ERROR and not record.cause]
        if undeclared:
            pytest.fail(declarations.report(adapter, undeclared, tmp_path), pytrace=False)

    @pytest.mark.slow
    @pytest.mark.rule(12)
    def test_known_faults_are_still_there(self, adapter: TabularFormat, outcomes: dict[str, list[Fidelity]]) -> None:
        seen = {record.kind for records in outcomes.values() for record in records if record.outcome == fidelity.ERROR}
        assert set(adapter.known_faults) - seen == set(), "no longer seen: remove fixed faults from `known_faults`"

    def test_losses_name_kinds_that_exist(self, adapter: TabularFormat) -> None:
        for loss in adapter.losses:
            assert loss.kinds, loss.what
            assert loss.kinds <= KINDS.keys(), loss.what
            if loss.lossless is not None:
                self.registry.build(loss.lossless)

    @pytest.mark.slow
    @pytest.mark.rule(8)
    def test_masked_columns_are_refused_only_where_it_is_declared(
        self, adapter: TabularFormat, outcomes: dict[str, list[Fidelity]]
    ) -> None:
        outcome = next(
            record.outcome for record in outcomes["pandas"] if (record.kind, record.nulls) == ("int64-exact", True)
        )
        assert (outcome == fidelity.REFUSED) == (not adapter.takes_masked)


class TabularFormatContract(WholeTableContract, ProjectionContract, SelectionContract, StreamContract):
    """Full contract of a tabular format. Inherit it and set `variant`."""
