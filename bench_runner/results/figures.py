"""The register of figures. It lists every number that a sample may have, with its unit, direction and meaning.

To add a figure, add one row here. Figures are integers. The name of a figure ends with the figure's unit. Only reports
convert figures to other units.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Direction(Enum):
    """Whether lower values of a figure are better, or the figure only describes the sample."""

    LOWER = "lower is better"
    NEITHER = "describes"


@dataclass(frozen=True)
class Figure:
    """The description of one figure. `unit` is 'ns', 'bytes', 'count' or 'permille'."""

    unit: str
    direction: Direction
    title: str
    meaning: str
    exact: bool = False
    """Whether the figure depends only on data, versions and settings. Then one sample is enough. If samples have
    different values nevertheless, the values are treated like times."""


_LOW, _IS = Direction.LOWER, Direction.NEITHER

FIGURES: Mapping[str, Figure] = {
    "wall_ns": Figure(
        "ns",
        _LOW,
        "time",
        "wall time of the call, including conversion; the median of repeated calls; the mean of streams and batches",
    ),
    "cpu_ns": Figure(
        "ns", _LOW, "CPU time", "user and system time of all threads and started processes during wall_ns"
    ),
    "engine_ns": Figure("ns", _LOW, "engine", "part of wall_ns spent in the call of the library"),
    "accepted_ns": Figure(
        "ns",
        _LOW,
        "accepted",
        "part of wall_ns until a store has accepted all documents, before pending merges of its files",
    ),
    "input_bytes": Figure("bytes", _IS, "JSON stored", "bytes of the JSON Lines that were stored", exact=True),
    "convert_ns": Figure(
        "ns", _LOW, "conversion", "part of wall_ns spent on converting between the library's object and the target"
    ),
    "touch_ns": Figure("ns", _LOW, "touch", "part of wall_ns that reads one byte of each 4 KiB page of the result"),
    "sync_ns": Figure("ns", _LOW, "sync", "fsync of all files and folders of the save, after wall_ns"),
    "peak_private_bytes": Figure(
        "bytes",
        _LOW,
        "peak memory",
        "highest resident minus shared memory during wall_ns or just after it, including started processes, minus "
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
        "highest resident memory (VmHWM, or including started processes if that is more), minus the level before; "
        "includes mapped file pages",
    ),
    "size_bytes": Figure("bytes", _LOW, "size", "size of all files of the stored copy, after fsync", exact=True),
    "allocated_bytes": Figure(
        "bytes", _LOW, "allocated", "disk space of all files of the stored copy, in blocks of 512 bytes"
    ),
    "files_count": Figure("count", _IS, "files", "number of files of the stored copy", exact=True),
    "p90_ns": Figure("ns", _LOW, "90th percentile", "90th percentile of the durations of single calls"),
    "latency_ns": Figure(
        "ns",
        _LOW,
        "latency",
        "median duration of a call while several streams call at the same time; wall_ns is the total time per call",
    ),
    "first_ns": Figure("ns", _LOW, "first", "the first call on the open copy; only with a warm page cache"),
    "open_ns": Figure(
        "ns",
        _LOW,
        "open",
        "opening the stored copy before the first call, without preparing a store; once for each stream if streams "
        "cannot share an open copy",
    ),
    "open_private_bytes": Figure("bytes", _LOW, "open memory", "what opening adds to resident minus shared memory"),
    "open_asked_bytes": Figure("bytes", _LOW, "open reads", "bytes that read calls returned while the copy was opened"),
    "first_batch_ns": Figure("ns", _LOW, "first batch", "from opening the copy to the first batch of a training loop"),
    "gap_p99_ns": Figure(
        "ns",
        _LOW,
        "99th percentile gap",
        "99th percentile of the time from one batch of a training loop to the next, in both epochs",
    ),
    "epoch_1_ns": Figure(
        "ns", _LOW, "epoch 1", "time of the first epoch: opening the copy and reading epoch_rows rows in batches"
    ),
    "epoch_2_ns": Figure(
        "ns", _LOW, "epoch 2", "time of the second epoch: reading the same number of rows in another order"
    ),
    "epoch_rows": Figure(
        "count", _IS, "rows of an epoch", "all rows, or as many as fit into the available time and memory"
    ),
    "locality_permille": Figure(
        "permille",
        _LOW,
        "locality",
        "how often rows of a batch are stored near each other, relative to random order; 1000 is a full shuffle",
    ),
    "parts_permille": Figure(
        "permille",
        _LOW,
        "parts",
        "chi squared of a batch over 16 equal parts of the table, relative to random order; 1000 is a full shuffle",
    ),
    "repetitions": Figure("count", _IS, "calls", "number of calls or batches from which wall_ns was computed"),
    "calls_ns": Figure(
        "ns", _IS, "all calls", "total wall time of these calls; for streams from the first start to the last end"
    ),
    "empty_ns": Figure(
        "ns", _IS, "empty call", "time measured for an empty call, including touching its result; median of 30"
    ),
    "result_bytes": Figure(
        "bytes", _IS, "result", "bytes of values, offsets and nulls in the returned Arrow table, or in all batches"
    ),
    "asked_bytes": Figure(
        "bytes",
        _LOW,
        "bytes read",
        "bytes returned by read calls, cached or not (rchar of /proc/self/io); without mapped files",
    ),
    "distinct_bytes": Figure(
        "bytes", _IS, "distinct", "pages of the stored copy that are in the page cache after a cold operation"
    ),
    "paused_ns": Figure(
        "ns",
        _IS,
        "paused",
        "work of the runner on the batches of a stream while timing was paused, minus CPU time of other threads",
    ),
    "batches_count": Figure("count", _IS, "batches", "number of batches of a stream"),
    "growth_bytes": Figure(
        "bytes", _LOW, "growth", "growth of the stored copy; for a stream, the size of the files that it wrote"
    ),
    "dirtied_bytes": Figure("bytes", _IS, "dirtied", "write_bytes of /proc/self/io: page cache, not the device"),
    "device_read_bytes": Figure("bytes", _IS, "device reads", "read_bytes of /proc/self/io during the operation"),
    "resident_before_bytes": Figure("bytes", _IS, "cached before", "bytes of the stored copy in the page cache"),
    "node_cpu_ns": Figure(
        "ns", _LOW, "service CPU", "user and system time of the services that serve the copy, during the measured time"
    ),
    "node_memory_bytes": Figure(
        "bytes", _LOW, "service memory", "resident minus shared memory of the services just before the measured time"
    ),
    "node_peak_memory_bytes": Figure(
        "bytes",
        _LOW,
        "service peak memory",
        "highest resident minus shared memory of the services during the measured time, minus that before",
    ),
    "node_device_bytes": Figure(
        "bytes", _IS, "service device reads", "read_bytes of /proc/<pid>/io of the services, during the measured time"
    ),
    "wire_bytes": Figure(
        "bytes",
        _LOW,
        "wire",
        "bytes on the loopback interface in the measured time, with headers; with a proxy, the bytes that it forwarded",
    ),
    "first_call_ns": Figure("ns", _LOW, "first call", "the same operation on 1,000 rows, first in a fresh process"),
    "first_call_rss_bytes": Figure("bytes", _LOW, "first-call memory", "growth of the peak RSS during the first call"),
    "import_ns": Figure(
        "ns", _LOW, "import", "time of importing the libraries of the variant after pandas and pyarrow"
    ),
    "import_rss_bytes": Figure(
        "bytes", _LOW, "import memory", "growth of the resident memory while importing these libraries"
    ),
    "control_write_ns": Figure(
        "ns", _IS, "control write", "time of writing 64 MB to the working folder before the sample"
    ),
    "control_allocate_ns": Figure(
        "ns", _IS, "control memory", "time of touching 64 MB of fresh memory before the sample"
    ),
    "settle_ns": Figure(
        "ns", _IS, "settle", "time of bringing the machine to rest before the sample, including control measurements"
    ),
    "prepare_ns": Figure(
        "ns", _IS, "prepare", "time of starting the worker, loading the input, warming up the library and cleaning up"
    ),
    "harness_ns": Figure(
        "ns", _IS, "harness", "the rest of the sample's time, such as starting services and removing files"
    ),
    "verify_ns": Figure(
        "ns", _IS, "verify", "time of verification after the measured time, including the search for file mappings"
    ),
}
