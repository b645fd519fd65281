"""The 93 columns of Snowset: name, type, share of values that are not 0, and range of values.

Names, types and units are from the data set's own description (schema.md of resource-disaggregation/snowset;
Vuppalapati et al., Building an elastic query engine on disaggregated storage, NSDI 2020). Shares and ranges are ours:
most counters are 0 in most rows, and a row takes about 200 bytes in Parquet, as in the original. The description lists
96 columns; the files that others measured have 93. We leave out totalMemory, totalMemoryMax and workerProcessMemory,
whose meaning the description does not state. This module contains only definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Counter:
    """A column of whole numbers. Some, most or nearly all of them are 0.

    `share` is the share of values that are not 0. These values are from 2**`low` to below 2**`high`, and each power of
    two is equally frequent. `nulls` is the share of rows without a value. `bits` is 64 or 32.
    """

    share: float
    low: int
    high: int
    nulls: float = 0.0
    bits: int = 64

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the column: int64 or int32."""
        return pa.int64() if self.bits == 64 else pa.int32()


_BYTES, _REQUESTS = (12, 36), (0, 14)
_MILLISECONDS, _MICROSECONDS = (0, 20), (10, 32)
_FILES, _ROWS = (0, 12), (0, 27)


def _moved(name: str, share: float) -> dict[str, Counter]:
    """Return two columns: the bytes that were moved, and the number of requests for moving them."""
    before, _, behind = name.partition("?")
    return {f"{before}Bytes{behind}": Counter(share, *_BYTES), f"{before}Requests{behind}": Counter(share, *_REQUESTS)}


def _profiled(share: float, *names: str) -> dict[str, Counter]:
    """Return the columns of times that the profiler measured, in milliseconds."""
    return {f"prof{name}": Counter(share, *_MILLISECONDS) for name in names}


IDENTITIES = ("queryId", "warehouseId", "databaseId", "createdTime", "endTime", "durationTotal")
"""Names of the first columns. snowset.py makes each of them by separate code; all other columns are counters."""

COUNTERS: Mapping[str, Counter] = {
    "durationExec": Counter(0.55, *_MILLISECONDS),
    "durationControlPlane": Counter(0.9, 0, 12),
    "durationCompiling": Counter(0.95, 3, 13),
    "compilationTime": Counter(0.95, 3, 13, nulls=0.02),
    "execTime": Counter(0.55, *_MILLISECONDS, nulls=0.02),
    "scheduleTime": Counter(0.4, 0, 10, nulls=0.02),
    "serverCount": Counter(0.6, 0, 7, bits=32),
    "warehouseSize": Counter(0.97, 0, 7, bits=32),
    "perServerCores": Counter(0.6, 3, 4, bits=32),
    **_moved("persistentRead?S3", 0.22),
    **_moved("persistentRead?Cache", 0.38),
    **_moved("persistentWrite?Cache", 0.18),
    **_moved("persistentWrite?S3", 0.18),
    **_moved("intDataWrite?LocalSSD", 0.03),
    **_moved("intDataRead?LocalSSD", 0.03),
    **_moved("intDataWrite?S3", 0.01),
    **_moved("intDataRead?S3", 0.01),
    "intDataWriteBytesUncompressed": Counter(0.03, *_BYTES),
    "readBytesRemoteExternal": Counter(0.02, *_BYTES),
    "readRequestsRemoteExternal": Counter(0.02, *_REQUESTS),
    "intDataNetReceivedBytes": Counter(0.2, *_BYTES),
    "intDataNetSentBytes": Counter(0.2, *_BYTES),
    "intDataNetSentRequests": Counter(0.2, *_REQUESTS),
    "intDataNetSentBytesUncompressed": Counter(0.2, *_BYTES),
    "producedRows": Counter(0.5, *_ROWS),
    "returnedRows": Counter(0.5, *_ROWS),
    "fileStolenCount": Counter(0.08, *_FILES),
    "remoteSeqScanFileOps": Counter(0.22, *_FILES),
    "localSeqScanFileOps": Counter(0.38, *_FILES),
    "localWriteFileOps": Counter(0.15, *_FILES),
    "remoteSkipScanFileOps": Counter(0.05, *_FILES),
    "remoteWriteFileOps": Counter(0.12, *_FILES),
    "filesCreated": Counter(0.15, *_FILES),
    "scanAssignedBytes": Counter(0.45, *_BYTES),
    "scanAssignedFiles": Counter(0.45, *_FILES),
    "scanBytes": Counter(0.45, *_BYTES),
    "scanFiles": Counter(0.45, *_FILES),
    "scanOriginalFiles": Counter(0.5, 0, 16),
    "userCpuTime": Counter(0.6, *_MICROSECONDS),
    "systemCpuTime": Counter(0.6, *_MICROSECONDS),
    "serverMemoryUsed": Counter(0.55, 20, 34, nulls=0.1),
    **_profiled(0.5, "Idle", "Cpu"),
    **_profiled(0.2, "PersistentReadCache", "PersistentWriteCache", "PersistentReadS3", "PersistentWriteS3"),
    **_profiled(0.02, "IntDataReadLocalSSD", "IntDataWriteLocalSSD", "IntDataReadS3", "IntDataWriteS3"),
    **_profiled(0.02, "RemoteExtRead", "RemoteExtWrite"),
    **_profiled(0.15, "ResWriteS3", "FsMeta", "DataExchangeNet", "DataExchangeMsg", "ControlPlaneMsg"),
    **_profiled(0.3, "Os", "Mutex", "Setup", "SetupMesh", "Teardown"),
    **_profiled(0.35, "ScanRso"),
    **_profiled(0.02, "XtScanRso"),
    **_profiled(0.15, "ProjRso", "SortRso", "FilterRso", "ResRso", "DmlRso", "HjRso"),
    **_profiled(0.08, "BufRso", "FlatRso", "BloomRso", "AggRso"),
    **_profiled(0.01, "BandRso", "PercentileRso", "UdtfRso", "OtherRso"),
}

SCHEMA = pa.schema(
    [
        ("queryId", pa.int64()),
        ("warehouseId", pa.int64()),
        ("databaseId", pa.string()),
        ("createdTime", pa.timestamp("us")),
        ("endTime", pa.timestamp("us")),
        ("durationTotal", pa.int64()),
        *((name, counter.type) for name, counter in COUNTERS.items()),
    ]
)
