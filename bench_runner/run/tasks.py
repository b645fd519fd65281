"""Create the tasks for workers, and the folders to which workers may write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench_runner.operations import operation_of
from bench_runner.plan.chain import Chain
from bench_runner.worker.messages import FidelityTask, ImportTask, MeasureTask, ProbeTask
from bench_runner.worker.settle import Settler
from data_generator.cache import StoredDataset


def make_places(folder: Path) -> None:
    """Create the subfolders of `folder` that the workers of a chain expect."""
    for name in ("stored", "primer", "scratch"):
        (folder / name).mkdir(parents=True)


def stored_at(chain: Chain, folder: Path) -> Path:
    """Return the path below `folder` at which the chain's save stores the data."""
    return folder / "stored" / f"table{chain.suffix}"


def measure_task(
    chain: Chain,
    operation: str,
    dataset: StoredDataset,
    folder: Path,
    *,
    rows: int,
    need_bytes: int,
    last: bool,
    settler: Settler,
    thorough: bool = True,
    block_ns: int | None = None,
) -> MeasureTask:
    """Return the task of measuring one operation of the chain in `folder`. Call `make_places` for this folder
    before."""
    return MeasureTask(
        scratch=folder / "scratch",
        confine=folder,
        printed=folder / "printed",
        starts_processes=bool(operation_of(operation).needs),
        operation=operation,
        variant=chain.spelled,
        target=chain.target,
        dataset=dataset.path,
        dataset_name=chain.dataset,
        dataset_digest=dataset.digest,
        rows=rows,
        whole=rows == dataset.rows,
        location=stored_at(chain, folder),
        primer=folder / "primer" / f"table{chain.suffix}",
        last_reader=last,
        need_bytes=need_bytes,
        best_control=settler.best,
        readiness=settler.readiness,
        thorough=thorough,
        cold=chain.conditions.cache == "cold",
        block_ns=block_ns,
    )


def import_task(chain: Chain, scratch: Path) -> ImportTask:
    """Return the task of loading the libraries of a chain's variant."""
    return ImportTask(variant=chain.spelled, scratch=scratch, confine=scratch, printed=scratch.with_name("printed"))


def fidelity_task(chain: Chain, scratch: Path) -> FidelityTask:
    """Return the task of testing which values a chain's variant changes."""
    return FidelityTask(
        variant=chain.spelled,
        target=chain.target,
        location=scratch,
        scratch=scratch,
        confine=scratch,
        printed=scratch.with_name("printed"),
    )


def probe_task(how: str, size_bytes: int, scratch: Path) -> ProbeTask:
    """Return the task of allocating `size_bytes` bytes by the method `how`, to test the memory probe."""
    printed = scratch.with_name("printed")
    return ProbeTask(how=how, size_bytes=size_bytes, scratch=scratch, confine=scratch, printed=printed)


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder for a task that measures no operation. Afterwards, remove the folder, and the file with the
    output that the task printed."""
    with TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as folder:
        scratch = Path(folder, "scratch")
        scratch.mkdir()
        yield scratch
