"""The register of figures. It lists every number that a sample may hold, with unit, direction and meaning.

To add a figure, add one row here. Figures are integers in the unit that their name ends with. Only reports convert them
to other units.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Direction(Enum):
    """Which direction is better. Some figures are only descriptive."""

    LOWER = "lower is better"
    NEITHER = "describes"


@dataclass(frozen=True)
class Figure:
    """One row of the register. `unit` is 'ns', 'bytes', 'count' or 'permille'."""

    unit: str
    direction: Direction
    title: str
    meaning: str
    exact: bool = False
    """Whether the figure depends only on data, versions and settings. Then one sample determines it. If samples differ,
    the values are treated like times."""


_LOW, _IS = Direction.LOWER, Direction.NEITHER

FIGURES: Mapping[str, Figure] = {
    "wall_ns": Figure(
        "ns",
        _LOW,
        "time",
        "wall clock with conversion; the median of calls; of streams and batches all of them over their number",
    ),
    "cpu_ns": Figure(
        "ns",
        _LOW,
        "CPU time",
        "user and system time of all threads during wall_ns, and of processes that they start",
    ),
    "engine_ns": Figure("ns", _LOW, "engine", "part of wall_ns spent in the engine's own call"),
    "accepted_ns": Figure(
        "ns",
        _LOW,
        "accepted",
        "part of wall_ns until a store has taken all documents; merges that are due may come after it",
    ),
    "input_bytes": Figure("bytes", _IS, "JSON stored", "bytes of the JSON Lines that were stored", exact=True),
    "convert_ns": Figure("ns", _LOW, "conversion", "part of wall_ns spent between the engine's object and the target"),
    "touch_ns": Figure("ns", _LOW, "touch", "part of wall_ns that reads one byte of each 4 KiB page of the result"),
    "sync_ns": Figure("ns", _LOW, "sync", "fsync of all files and folders of the save, after wall_ns"),
    "peak_private_bytes": Figure(
        "bytes",
        _LOW,
        "peak memory",
        "highest resident minus shared memory during wall_ns or just after it, with started processes, less "
        "the level before",
    ),
    "peak_process_bytes": Figure(
        "bytes",
        _LOW,
        "peak memory of a process",
        "highest growth of the private memory of one process that was started for the operation",
    ),
    "peak_rss_bytes": Figure(
        "bytes",
        _LOW,
        "peak RSS",
        "VmHWM after its reset, or the highest resident memory with started processes if more, less the level before; "
        "counts mapped file pages",
    ),
    "size_bytes": Figure("bytes", _LOW, "size", "size of all files of the stored copy, after fsync", exact=True),
    "allocated_bytes": Figure("bytes", _LOW, "allocated", "blocks of 512 bytes that those files take"),
    "files_count": Figure("count", _IS, "files", "number of files of the stored copy", exact=True),
    "p90_ns": Figure("ns", _LOW, "90th percentile", "of the calls, each by its own clock"),
    "latency_ns": Figure(
        "ns",
        _LOW,
        "latency",
        "median of the calls of streams, each by its own clock; wall_ns is what all took over them",
    ),
    "first_ns": Figure("ns", _LOW, "first", "the first call on the open copy, before the others; warm cells only"),
    "open_ns": Figure(
        "ns",
        _LOW,
        "open",
        "opening the copy that is kept open, before the first call, without making a store ready; for each stream, "
        "where they cannot share it",
    ),
    "open_private_bytes": Figure("bytes", _LOW, "open memory", "what opening adds to resident minus shared memory"),
    "open_asked_bytes": Figure("bytes", _LOW, "open reads", "bytes that read calls gave while the copy was opened"),
    "first_batch_ns": Figure("ns", _LOW, "first batch", "from opening the copy to the first batch of a training loop"),
    "gap_p99_ns": Figure(
        "ns", _LOW, "99th percentile gap", "from one batch of a training loop to the next, in both epochs"
    ),
    "epoch_1_ns": Figure("ns", _LOW, "epoch 1", "handing out epoch_rows rows in batches, with opening the copy"),
    "epoch_2_ns": Figure("ns", _LOW, "epoch 2", "handing out as many rows once more, in another order"),
    "epoch_rows": Figure("count", _IS, "rows of an epoch", "all, or as many as fit into time and memory"),
    "locality_permille": Figure(
        "permille",
        _LOW,
        "locality",
        "how often rows of a batch are stored less than a batch apart, over chance; 1000 is a full shuffle",
    ),
    "parts_permille": Figure(
        "permille",
        _LOW,
        "parts",
        "chi squared of a batch over 16 equal parts of the table, over chance; 1000 is a full shuffle",
    ),
    "repetitions": Figure("count", _IS, "calls", "how many calls or batches wall_ns is of"),
    "calls_ns": Figure(
        "ns", _IS, "all calls", "wall clock of those calls together; of streams from the first start to the last end"
    ),
    "empty_ns": Figure(
        "ns", _IS, "empty call", "what the clock takes around a call, with touching its result; median of 30"
    ),
    "result_bytes": Figure(
        "bytes", _IS, "result", "values, offsets and nulls of the Arrow table that a call gave, or of all batches"
    ),
    "asked_bytes": Figure(
        "bytes", _LOW, "bytes read", "rchar of /proc/self/io: given by read calls, cached or not; blind to mappings"
    ),
    "distinct_bytes": Figure(
        "bytes", _IS, "distinct", "pages of the stored copy in the page cache after a cold operation: each counts once"
    ),
    "paused_ns": Figure(
        "ns",
        _IS,
        "paused",
        "own work while the clock stood still, on the batches of a stream, less CPU time of other threads",
    ),
    "batches_count": Figure("count", _IS, "batches", "how many batches went through a stream"),
    "growth_bytes": Figure(
        "bytes", _LOW, "growth", "what the stored copy takes more than before; of a stream, what it has made"
    ),
    "dirtied_bytes": Figure("bytes", _IS, "dirtied", "write_bytes of /proc/self/io: page cache, not the device"),
    "device_read_bytes": Figure("bytes", _IS, "device reads", "read_bytes of /proc/self/io during the operation"),
    "resident_before_bytes": Figure("bytes", _IS, "cached before", "bytes of the stored copy in the page cache"),
    "node_cpu_ns": Figure(
        "ns", _LOW, "service CPU", "user and system time of the services that serve the copy, while the clock runs"
    ),
    "node_memory_bytes": Figure(
        "bytes", _LOW, "service memory", "resident minus shared memory of these services just before the clock"
    ),
    "node_peak_memory_bytes": Figure(
        "bytes", _LOW, "service peak memory", "highest resident minus shared memory of them during it, less that before"
    ),
    "node_device_bytes": Figure(
        "bytes", _IS, "service device reads", "read_bytes of /proc/<pid>/io of the services, while the clock runs"
    ),
    "wire_bytes": Figure(
        "bytes",
        _LOW,
        "wire",
        "bytes that the loopback interface carried meanwhile, with headers; behind a proxy those that passed it",
    ),
    "first_call_ns": Figure("ns", _LOW, "first call", "the same operation on 1,000 rows, first in a fresh process"),
    "first_call_rss_bytes": Figure("bytes", _LOW, "first-call memory", "growth of the peak RSS during the first call"),
    "import_ns": Figure("ns", _LOW, "import", "loading the engine's libraries, with pandas and pyarrow there already"),
    "import_rss_bytes": Figure("bytes", _LOW, "import memory", "growth of the RSS while loading them"),
    "control_write_ns": Figure("ns", _IS, "control write", "writing 64 MB to the working folder before the sample"),
    "control_allocate_ns": Figure("ns", _IS, "control memory", "touching 64 MB of fresh memory before the sample"),
    "settle_ns": Figure("ns", _IS, "settle", "bringing the machine to rest before the sample, control included"),
    "prepare_ns": Figure("ns", _IS, "prepare", "worker start, input into private memory, priming, clean slate"),
    "harness_ns": Figure("ns", _IS, "harness", "the rest of the sample's time: starting, asking, cleaning up"),
    "verify_ns": Figure(
        "ns", _IS, "verify", "after the clock: looking for mappings, comparing twice, the removal between"
    ),
}
