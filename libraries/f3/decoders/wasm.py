"""Run the decoder module of a file in a sandbox, with separate memory and limits on memory and time.

The module is as untrusted as the file, and has no access to files, clocks or the network. Compilers make modules import
WASI's functions, so the host provides these functions, without any effect. Addresses and lengths that the module
returns are checked against the module's memory. The results are copied or moved out of this memory and then checked as
Arrow data, so that no offset points outside. A fault discards the instance, which is the loaded module with its memory.

An EncUnit is the smallest part of a column that can be decoded. Modules with this package's exports (`f3_room`,
`f3_decode_part`, docs/f3-encodings.md) decode several EncUnits per call and let the host take over the memory of their
results. Other modules are called through F3's guest interface, one EncUnit at a time.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from libraries.f3.columns.memory_layout import BITS, TEXT, Shape, shape_of
from libraries.f3.decoders import native, pages
from libraries.f3.decoders.modules import compiled_module, is_function_of
from libraries.f3.decoders.returned import array_of, check_strings
from libraries.f3.decoders.runtime import TICK_SECONDS, last_line, running, runtime_here, runtime_of, wasmtime_package
from libraries.f3.encodings.nodes import HEADER_BYTES
from libraries.f3.errors import F3Error

_NOT_SUPPORTED = 52
_MEMORY_BYTES_OF_ARRAY = 8
_OWN = {"f3_room": (1, 1), "f3_decode_part": (1, 1)}
_PICK = "f3_pick_part"
_RESULT = struct.Struct("<III")
_ARGUMENTS, _ARGUMENTS_AT = struct.Struct("<IIII"), 65_472
_ANSWER = struct.Struct("<I")
_PAGE_BYTES = 65_536
_MOST_BUFFERS = 5000
_HEADER = struct.Struct("<BBBBIQ")
_UNIT = struct.Struct("<III")
_REQUEST = struct.Struct("<15I")
_PICKED_UNIT, _PICKING = struct.Struct("<5I"), struct.Struct("<12I")
_GUESSED_TEXT_BYTES = 64
_INPUT_BYTES = 1 << 20
"""Maximum payload bytes per call: enough that the call itself costs little, and few enough for the processor's
cache."""
_RESULT_BYTES = 1 << 26
"""Maximum result bytes in the memory of the module (the guest) at a time. The guest allocates blocks of at most twice
this size."""
_POOL_BYTES = 1 << 27
"""Maximum bytes of freed results that are kept for the next results of a module."""
_MOST_MEMORY_BYTES = 1 << 32
"""Address space that the runtime reserves for a module's memory, so that this memory can grow in place."""
_LEAST_MEMORY_BYTES = 1 << 27
"""With a lower memory limit, large pages are not used."""


@dataclass(frozen=True)
class Limits:
    """Limits of a module: bytes of memory, and seconds of time.

    A module starts with `seconds`. Each call adds `seconds_per_call`, and time in proportion to the bytes that it reads
    and returns. Returned bytes add less time, because a file may claim any number of rows.
    """

    memory_bytes: int = 1 << 29
    seconds: float = 0.5
    seconds_per_call: float = 0.002
    seconds_per_mebibyte_in: float = 0.05
    seconds_per_mebibyte_out: float = 0.01


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class _Signature:
    """wasmtime's description of a function's parameters and results is slow. This replacement describes a function that
    has neither parameters nor results."""

    params: tuple[()] = ()
    results: tuple[()] = ()


_NOTHING = _Signature()


_seconds = time.monotonic


def _harmless(name: str, results: int) -> Any:
    """Return a Python function that replaces the WASI function `name` and has no effect.

    A call reports an empty environment, no arguments, or that the function is not supported. If the WASI function has
    no results, like `proc_exit`, a call raises _RefusedError.
    """

    def answer(caller: Any, *arguments: int) -> Any:
        if name in ("environ_sizes_get", "args_sizes_get"):
            memory = caller.get("memory")
            for address in arguments:
                memory.write(caller, bytearray(4), address % (1 << 32))
            return 0
        if results == 0:
            raise _RefusedError(f"calls {name}, which is not allowed")
        return 0 if name in ("environ_get", "args_get", "random_get") else _NOT_SUPPORTED

    return answer


_living: weakref.WeakSet[Sandbox] = weakref.WeakSet()


@atexit.register
def _release_all() -> None:
    """Free wasmtime's objects before the interpreter unloads wasmtime."""
    for sandbox in list(_living):
        sandbox.release()
    compiled_module.cache_clear()
    runtime_of.cache_clear()


def _renew_all() -> None:
    """Give each sandbox of a forked process a new lock, because a thread of the parent may have held the old one. Drop
    the instances, which belong to the parent."""
    for sandbox in list(_living):
        sandbox.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


class Sandbox:
    """The sandbox of one module. The module is compiled on first use. A fault discards the instance (the loaded module
    with its memory), and the next call makes another instance."""

    def __init__(self, wasm: bytes, limits: Limits) -> None:
        self._wasm, self._limits = bytes(wasm), limits
        self._lock = threading.Lock()
        self._module: Any = None
        self._instance: _Instance | None = None
        self._process = 0
        _living.add(self)

    def renew(self) -> None:
        """Replace the lock, and drop the compiled module and the instance."""
        self._lock = threading.Lock()
        self.release()

    def release(self) -> None:
        """Free the compiled module and the instance. The next call loads the module again."""
        self._module = self._instance = None

    def prepare(self) -> None:
        """Compile the module or load it from the cache. Raises F3Error if the module is not a decoder."""
        if self._process != os.getpid():
            self._module = self._instance = None
            self._process = os.getpid()
        if self._module is None:
            self._module = compiled_module(self._wasm, self._process)

    def decode(self, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]) -> pa.Array:
        """Decode EncUnits of one column into one array. Raises F3Error."""
        with self._lock, self._running() as instance:
            return instance.decode(payloads, arrow_type, rows)

    @property
    def picks_rows(self) -> bool:
        """Whether the module can decode some rows of an EncUnit. Raises F3Error."""
        with self._lock, self._running() as instance:
            return instance.picks_rows

    def pick(
        self, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int], wanted: Sequence[np.ndarray]
    ) -> pa.Array:
        """Decode some rows of EncUnits into one array. `wanted` has an array for each EncUnit: the numbers of its
        wanted rows (uint32). Raises F3Error."""
        with self._lock, self._running() as instance:
            return instance.pick(payloads, arrow_type, rows, wanted)

    @contextmanager
    def _running(self) -> Iterator[_Instance]:
        """Yield the instance, made on first use, and discard it after an error. The caller holds the lock in this
        block."""
        self.prepare()
        try:
            if self._instance is None:
                self._instance = _Instance(self._module, self._limits)
            yield self._instance
        except BaseException:
            self._instance = None
            raise


def _stopped(limits: Limits) -> str:
    return f"the decoder in the file was stopped after its time limit: {limits.seconds} s, and more for each call"


class _RefusedError(Exception):
    """A module called a function that the host refuses."""


class _Faults:
    """Convert a module's faults in a `with` block to F3Error. In the block the module counts as running, so that its
    time limit applies."""

    __slots__ = ("_limits",)

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def __enter__(self) -> None:
        running.change(1)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        running.change(-1)
        if error is None:
            return
        wasmtime = wasmtime_package()
        if isinstance(error, wasmtime.Trap) and error.trap_code == wasmtime.TrapCode.INTERRUPT:
            raise F3Error(_stopped(self._limits)) from None
        if isinstance(error, (wasmtime.Trap, wasmtime.WasmtimeError, IndexError)):
            raise F3Error(f"the decoder in the file failed: {last_line(error)}") from None
        if isinstance(error, _RefusedError):
            raise F3Error(f"the decoder in the file {error}") from None


class _Instance:
    """A running module: its memory, its functions and the results of the last call."""

    def __init__(self, module: Any, limits: Limits) -> None:
        wasmtime, runtime = wasmtime_package(), runtime_here()
        self._limits = limits
        self._store = store = wasmtime.Store(runtime.engine)
        store.set_limits(limits.memory_bytes, table_elements=100_000, instances=3, tables=16, memories=3)
        self._seconds_left = limits.seconds
        self._allow(0, 0)
        with _Faults(limits):
            imports = [
                wasmtime.Func(store, wanted.type, _harmless(wanted.name, len(wanted.type.results)), access_caller=True)
                for wanted in module.imports
            ]
            self._guest = wasmtime.Instance(store, module, imports)
            exports = self._exports = self._guest.exports(store)
            if is_function_of(exports, "_initialize", store, (0, 0)):
                exports["_initialize"](store)
            self._has_own = all(is_function_of(exports, name, store, shape) for name, shape in _OWN.items())
            if self._has_own:
                self._run, self._results = self._driver(runtime.part_driver, ("f3_decode_part",))
            else:
                names = ("memory", "decode_general_ffi", "buffer_iterator_next", "buffer_iterator_drop", "buffer_drop")
                self._run, self._results = self._driver(runtime.driver, names)
            self._pick: Any = None
            if self._has_own and is_function_of(exports, _PICK, store, (1, 1)):
                self._pick, self._pick_results = self._driver(runtime.part_driver, (_PICK,))
        self._settle()
        self._memory = exports["memory"]
        self._block = self._block_bytes = self._held = 0
        self._base, self._size = 0, -1
        self._look()
        self._prefers_large = False
        self._pool = pages.Pool(_POOL_BYTES)
        weakref.finalize(self, self._pool.close)

    def _driver(self, module: Any, names: Sequence[str]) -> tuple[Any, int]:
        """Return the function that starts a driver, and the address of the driver's memory, which never grows.

        A driver is a Wasm module of this package. It calls the guest's exports `names`, which takes less time than
        calls from Python.
        """
        wasmtime, exports = wasmtime_package(), self._exports
        driver = wasmtime.Instance(self._store, module, [exports[name] for name in names]).exports(self._store)
        run = driver["run"]
        # wasmtime looks up the type of a function at each call, which takes longer than the call itself.
        run.type = lambda store: _NOTHING
        return run, ctypes.addressof(driver["results"].data_ptr(self._store).contents)

    def _call(self, name: str, *arguments: int) -> int:
        """Call the guest's function `name` with i32 arguments. Return its result as an unsigned number, or 0 if it
        returns none."""
        signed = [number - (1 << 32) if number >= 1 << 31 else number for number in arguments]
        answer = self._exports[name](self._store, *signed)
        self._look()
        return 0 if answer is None else answer % (1 << 32)

    def _look(self) -> None:
        """Look up address and size of the guest's memory, which may have grown during a call."""
        size = self._memory.data_len(self._store)
        if size == self._size:
            return
        self._size = size
        self._base = ctypes.addressof(self._memory.data_ptr(self._store).contents)

    def _allow(self, in_bytes: int, out_bytes: int) -> None:
        """Set the time limit of a call that reads and returns these numbers of bytes. Raises F3Error if no time is
        left.

        The call gets the time that earlier calls left, and the time that it adds. A file may cause any number of calls,
        so `_settle` deducts the used time afterwards.
        """
        limits = self._limits
        earned = limits.seconds_per_mebibyte_in * in_bytes + limits.seconds_per_mebibyte_out * out_bytes
        self._seconds_left += limits.seconds_per_call + earned / (1 << 20)
        if self._seconds_left <= 0:
            raise F3Error(_stopped(limits))
        self._store.set_epoch_deadline(int(self._seconds_left / TICK_SECONDS) + 1)
        self._started = _seconds()

    def _settle(self) -> None:
        """Deduct the time that a call used. The remaining time is limited to the initial amount."""
        self._seconds_left = min(self._limits.seconds, self._seconds_left - (_seconds() - self._started))

    def decode(self, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int]) -> pa.Array:
        shape = shape_of(arrow_type)
        with _Faults(self._limits):
            if self._has_own:
                return self._decode_together(payloads, arrow_type, shape, rows)
            arrays = []
            size = 0
            for payload, count in zip(payloads, rows, strict=True):
                arrays.append(self._decode_one(payload, arrow_type, shape, count))
                size += arrays[-1].nbytes
                if size > native.MOST_ARRAY_BYTES:
                    raise F3Error(f"{sum(rows)} rows are too many for one array; read fewer at a time")
        try:
            return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        except pa.ArrowInvalid as error:
            raise F3Error(f"{sum(rows)} rows do not fit into one array: {last_line(error)}") from None

    def _place(self, address: int, size_bytes: int, what: str) -> int:
        """Return the host's address of a range of the guest's memory. Raises F3Error if the range is outside that
        memory."""
        if address + size_bytes > self._size:
            raise F3Error(f"the decoder in the file puts {what} outside its memory ({size_bytes} bytes at {address})")
        return self._base + address

    # ---- F3's interface: one EncUnit per call

    def _decode_one(self, payload: memoryview, arrow_type: pa.DataType, shape: Shape, rows: int) -> pa.Array:
        size = len(payload)
        self._allow(size, rows * max(shape.width_bytes, _MEMORY_BYTES_OF_ARRAY))
        most = _MOST_BUFFERS if shape.kind == TEXT else 2
        if self._block_bytes < size + 12:
            if self._block_bytes:
                self._call("dealloc", self._block, self._block_bytes, 4)
            self._block, self._block_bytes = self._call("alloc", size + 12, 4), size + 12
        place = self._place(self._block, size + 12, "its input")
        ctypes.memmove(place + 12, pa.py_buffer(payload).address, size)
        arguments = _ARGUMENTS.pack(self._held, self._block, size, most)
        ctypes.memmove(self._results + _ARGUMENTS_AT, arguments, len(arguments))
        self._run(self._store)
        self._settle()
        self._look()
        results = ctypes.string_at(self._results, _PAGE_BYTES)
        (count,) = _ANSWER.unpack_from(results, _ARGUMENTS_AT + _ARGUMENTS.size)
        self._held = 0 if count > _MOST_BUFFERS else count
        if count > _MOST_BUFFERS:
            address, length, _ = _RESULT.unpack_from(results, 0)
            raise F3Error(f"the decoder in the file says: {self._text(address, min(length, 200))}")
        if count == _MOST_BUFFERS:
            raise F3Error(f"the decoder in the file returns {_MOST_BUFFERS} or more buffers for an EncUnit, too many")
        if count < 2:
            raise F3Error(f"the decoder in the file returns {count} buffers; an array needs at least 2")
        buffers = []
        returned = 0
        for number in range(count):
            address, length, _ = _RESULT.unpack_from(results, 12 * number)
            returned += length
            if returned > self._size:
                # Repeated references to the same bytes would each be copied.
                raise F3Error("the decoder in the file returns buffers with more bytes in total than its memory has")
            place = self._place(address, length, "a buffer") if length else 0
            buffers.append(pa.py_buffer(ctypes.string_at(place, length) if length else b""))
        return array_of(buffers, arrow_type, shape, rows)

    def _text(self, address: int, length: int) -> str:
        text = ctypes.string_at(self._place(address, length, "an error's text"), length)
        return "".join(character for character in text.decode("utf-8", "replace") if character.isprintable())

    # ---- this package's exports: many EncUnits per call

    def _decode_together(
        self, payloads: Sequence[memoryview], arrow_type: pa.DataType, shape: Shape, rows: Sequence[int]
    ) -> pa.Array:
        units = [_sized(payload, count, shape) for payload, count in zip(payloads, rows, strict=True)]
        native.check_size(shape, sum(rows), sum(unit.data_bytes for unit in units))
        most = min(_RESULT_BYTES, self._limits.memory_bytes // 8)
        sizes = [unit.rows * max(shape.width_bytes, 1) + unit.data_bytes for unit in units]
        arrays = [self._decode_stretch(stretch, arrow_type, shape) for stretch in _split(units, sizes, most)]
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)

    def _decode_stretch(self, units: Sequence[_SizedUnit], arrow_type: pa.DataType, shape: Shape) -> pa.Array:
        """Decode EncUnits whose results together fit into the guest's memory."""
        total, data_bytes = sum(unit.rows for unit in units), sum(unit.data_bytes for unit in units)
        nullable = any(unit.nullable for unit in units)
        bitmap_bytes = (total + 7) // 8
        values_bytes = data_bytes if shape.kind == TEXT else total * shape.width_bytes or bitmap_bytes
        page_bytes = self._page_bytes(values_bytes)
        column = (int(nullable), total, data_bytes, page_bytes, self._base % page_bytes)
        row = byte = 0
        answer = _Answer(0, 0, 0, 0)
        for part in _split(units, [len(unit.payload) for unit in units], _INPUT_BYTES):
            answer = self._decode_part(part, shape, (*column, row, byte))
            row, byte = row + sum(unit.rows for unit in part), byte + sum(unit.data_bytes for unit in part)
        validity = self._taken(answer.validity, bitmap_bytes) if nullable else None
        values = self._taken(answer.values, values_bytes)
        if shape.kind != TEXT:
            return pa.Array.from_buffers(arrow_type, total, [validity, values])
        offsets = self._taken(answer.offsets, (total + 1) * shape.width_bytes)
        array = pa.Array.from_buffers(arrow_type, total, [validity, offsets, values])
        check_strings(array, shape, offsets, values)
        return array

    def _page_bytes(self, size_bytes: int) -> int:
        """Return the size of the pages to use for a result of `size_bytes`: large pages for large results, else pages
        of Wasm."""
        if size_bytes < pages.LARGE_BYTES or self._limits.memory_bytes < _LEAST_MEMORY_BYTES:
            return _PAGE_BYTES
        if not self._prefers_large:
            pages.prefer_large(self._base, min(self._limits.memory_bytes, _MOST_MEMORY_BYTES))
            self._prefers_large = True
        return pages.LARGE_BYTES

    def _decode_part(self, units: Sequence[_SizedUnit], shape: Shape, column: tuple[int, ...]) -> _Answer:
        """Decode EncUnits by one call of the guest. `column` has the fields of `struct request` in guest.c that
        describe the column."""
        table_at = _REQUEST.size
        first = table_at + _UNIT.size * len(units)
        size = first + sum(len(unit.payload) + 8 for unit in units)
        rows, data_bytes = sum(unit.rows for unit in units), sum(unit.data_bytes for unit in units)
        self._allow(size, data_bytes + rows * max(shape.width_bytes, _MEMORY_BYTES_OF_ARRAY))
        if self._block_bytes < size:
            self._block, self._block_bytes = self._call("f3_room", size), size
        place, block = self._place(self._block, size, "its input"), self._block
        request = (len(units), block + table_at, shape.kind, shape.width_bytes, *column)
        head, position = [_REQUEST.pack(*request, 0, 0, 0, 0)], first
        for unit in units:
            head.append(_UNIT.pack(block + position, len(unit.payload), unit.rows))
            ctypes.memmove(place + position, pa.py_buffer(unit.payload).address, len(unit.payload))
            position += len(unit.payload)
        ctypes.memmove(place, b"".join(head), first)
        fault = self._run_part(self._run, self._results)
        place = self._place(block, _REQUEST.size, "its answer")
        answer = _Answer(*_REQUEST.unpack(ctypes.string_at(place, _REQUEST.size))[-4:])
        if fault:
            raise F3Error(f"EncUnit {answer.failed_unit}: {native.FAULTS.get(fault, f'fault {fault}')}")
        return answer

    # ---- some rows of EncUnits

    @property
    def picks_rows(self) -> bool:
        """Whether the module exports `f3_pick_part`, which decodes some rows of EncUnits."""
        return self._pick is not None

    def pick(
        self, payloads: Sequence[memoryview], arrow_type: pa.DataType, rows: Sequence[int], wanted: Sequence[np.ndarray]
    ) -> pa.Array:
        """Decode some rows of EncUnits into one array. Raises F3Error."""
        shape, total = shape_of(arrow_type), sum(map(len, wanted))
        with _Faults(self._limits):
            values_bytes = total * _GUESSED_TEXT_BYTES if shape.kind == TEXT else native.check_size(shape, total, 0)
            answer = self._picked(payloads, shape, rows, wanted, values_bytes)
            if shape.kind == TEXT and answer.text_bytes > values_bytes:
                values_bytes = native.check_size(shape, total, answer.text_bytes)
                answer = self._picked(payloads, shape, rows, wanted, values_bytes)
            if shape.kind == TEXT:
                values_bytes = min(values_bytes, answer.text_bytes)
            validity = self._copied(answer.validity, (total + 7) // 8)
            values = self._copied(answer.values, values_bytes)
            if shape.kind != TEXT:
                return pa.Array.from_buffers(arrow_type, total, [validity, values])
            offsets = self._copied(answer.offsets, (total + 1) * shape.width_bytes)
            array = pa.Array.from_buffers(arrow_type, total, [validity, offsets, values])
            check_strings(array, shape, offsets, values)
            return array

    def _picked(
        self,
        payloads: Sequence[memoryview],
        shape: Shape,
        rows: Sequence[int],
        wanted: Sequence[np.ndarray],
        room_bytes: int,
    ) -> _Picking:
        counts = [len(each) for each in wanted]
        total = sum(counts)
        wanted_at = _PICKING.size + _PICKED_UNIT.size * len(payloads)
        first = -(-(wanted_at + 4 * total) // 8) * 8
        size = first + sum(len(payload) + 8 for payload in payloads)
        # To decode some rows, the guest may have to decode all of them.
        self._allow(size, room_bytes + sum(rows) * max(shape.width_bytes, _MEMORY_BYTES_OF_ARRAY))
        if self._block_bytes < size:
            self._block, self._block_bytes = self._call("f3_room", size), size
        place, block = self._place(self._block, size, "its input"), self._block
        request = (len(payloads), block + _PICKING.size, shape.kind, shape.width_bytes, total, block + wanted_at)
        head, position, done = [_PICKING.pack(*request, room_bytes, 0, 0, 0, 0, 0)], first, 0
        for payload, count, picked in zip(payloads, rows, counts, strict=True):
            head.append(_PICKED_UNIT.pack(block + position, len(payload), count, done, picked))
            ctypes.memmove(place + position, pa.py_buffer(payload).address, len(payload))
            position, done = position + len(payload), done + picked
        head += [each.tobytes() for each in wanted]
        ctypes.memmove(place, b"".join(head), wanted_at + 4 * total)
        fault = self._run_part(self._pick, self._pick_results)
        place = self._place(block, _PICKING.size, "its answer")
        answer = _Picking(*_PICKING.unpack(ctypes.string_at(place, _PICKING.size))[-5:])
        if fault:
            raise F3Error(f"EncUnit {answer.failed_unit}: {native.FAULTS.get(fault, f'fault {fault}')}")
        return answer

    def _copied(self, address: int, size_bytes: int) -> pa.Buffer:
        return pa.py_buffer(ctypes.string_at(self._place(address, size_bytes, "a buffer"), size_bytes))

    # ---- memory

    def _run_part(self, run: Any, results: int) -> int:
        """Call an export of the guest through its driver (`run`), with the request in the input block. Return the error
        code, 0 for none."""
        ctypes.memmove(results, _ANSWER.pack(self._block), _ANSWER.size)
        run(self._store)
        self._settle()
        self._look()
        fault: int = _ANSWER.unpack(ctypes.string_at(results + _ANSWER.size, _ANSWER.size))[0]
        return fault

    def _taken(self, address: int, size_bytes: int) -> pa.Buffer:
        """Move or copy a buffer out of the guest's memory. Buffers begin and end at page boundaries, so that whole
        pages can be moved."""
        place = self._place(address, size_bytes, "a buffer")
        try:
            return pages.take(place, size_bytes, self._base + self._size - place, self._pool)
        except MemoryError:
            raise F3Error(f"{size_bytes} bytes of results do not fit into memory; read fewer rows") from None


class _Answer(NamedTuple):
    """The last fields of `struct request` in guest.c: addresses of buffers, and the EncUnit that could not be
    decoded."""

    values: int
    offsets: int
    validity: int
    failed_unit: int


class _Picking(NamedTuple):
    """The last fields of `struct picking` in guest.c: addresses of buffers, bytes of all strings, and the EncUnit that
    could not be decoded."""

    values: int
    offsets: int
    validity: int
    text_bytes: int
    failed_unit: int


class _SizedUnit(NamedTuple):
    payload: memoryview
    rows: int
    data_bytes: int
    nullable: bool


def _sized(payload: memoryview, rows: int, shape: Shape) -> _SizedUnit:
    if len(payload) < HEADER_BYTES:
        raise F3Error(native.FAULTS[1])
    _, kind, width, flags, stored_rows, data_bytes = _HEADER.unpack_from(payload)
    wrong_width = width != (shape.width_bytes if shape.kind not in (TEXT, BITS) else 0)
    if kind != shape.kind or stored_rows != rows or wrong_width or data_bytes >= 1 << 31:
        raise F3Error(native.FAULTS[6])
    return _SizedUnit(payload, rows, data_bytes if kind == TEXT else 0, bool(flags & 1))


def _split(units: Sequence[_SizedUnit], sizes: Sequence[int], most_bytes: int) -> Iterator[list[_SizedUnit]]:
    """Group consecutive EncUnits of the given sizes. A group has up to `most_bytes` bytes, but at least one EncUnit."""
    part: list[_SizedUnit] = []
    part_bytes = 0
    for unit, size_bytes in zip(units, sizes, strict=True):
        if part and part_bytes + size_bytes > most_bytes:
            yield part
            part, part_bytes = [], 0
        part.append(unit)
        part_bytes += size_bytes
    yield part
