"""Untrusted decoder modules: valid modules decode, all others cause an F3Error within two seconds."""

import os
import signal
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

wasmtime = pytest.importorskip("wasmtime")

from libraries.f3.decoders import compilation, module_cache, runtime, wasm  # noqa: E402
from libraries.f3.decoders.modules import compiled_module  # noqa: E402
from libraries.f3.decoders.native import PICKED  # noqa: E402
from libraries.f3.decoders.wasm import Limits  # noqa: E402
from libraries.f3.encodings import unit_codec  # noqa: E402
from libraries.f3.errors import F3Error  # noqa: E402
from libraries.f3.tests import modules  # noqa: E402
from libraries.f3.tests.modules import module, returning  # noqa: E402

pytestmark = pytest.mark.timeout(20)

LOOP = "(loop $again (br $again))"
INT64 = pa.int64()
NUMBERS = np.arange(1000, dtype=np.int64)
PAYLOAD = NUMBERS.tobytes()
QUICK = Limits(memory_bytes=1 << 24, seconds=0.3)
ENDLESS = Limits(memory_bytes=1 << 24, seconds=0.05)
"""Limits for modules that use up their time."""


@pytest.fixture(autouse=True)
def no_module_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module_cache, "folder", lambda: tmp_path / "modules")
    compiled_module.cache_clear()


def decoded(wasm_module: bytes, arrow_type: pa.DataType = INT64, rows: int = 1000, limits: Limits = QUICK) -> pa.Array:
    return unit_codec.Decoder(wasm_module, limits=limits).decode(PAYLOAD, arrow_type, rows)


def test_an_unknown_module_that_keeps_the_interface_decodes():
    decoder = unit_codec.Decoder(module())
    assert decoder.how == "wasm"
    assert decoder.decode(PAYLOAD, pa.int64(), 1000).equals(pa.array(NUMBERS))
    both = decoder.decode_into([PAYLOAD, PAYLOAD[:80]], pa.int64(), [1000, 10])
    assert both.to_pylist() == [*range(1000), *range(10)]


def test_buffers_may_be_longer_than_the_rows_need():
    assert decoded(module(), rows=3).to_pylist() == [0, 1, 2]


def test_strings_come_as_views_and_views_of_nulls_mean_nothing():
    views = struct.pack("<i12s", 3, b"abc") + struct.pack("<i4sii", 14, b"four", 0, 2) + b"\xff" * 16
    data = views.hex(" ").replace(" ", "\\")
    text = b"..fourteen bytes".hex(" ").replace(" ", "\\")
    segments = f'(data (i32.const 512) "\\{data}") (data (i32.const 600) "\\{text}") (data (i32.const 640) "\\03")'
    strings = module(following=returning((640, 1), (512, 48), (600, 16)), more=segments)
    assert decoded(strings, pa.string(), 3).to_pylist() == ["abc", "fourteen bytes", None]
    assert decoded(strings, pa.large_binary(), 3).to_pylist() == [b"abc", b"fourteen bytes", None]


HOSTILE = {
    "endless loop": (module(decode=LOOP + "(i32.const 0)"), "stopped after"),
    "endless loop in the next buffer": (module(following=LOOP), "stopped after"),
    "endless loop in alloc": (module(alloc=LOOP + "(i32.const 0)"), "stopped after"),
    "endless loop at its start": (module(more=f"(func $main {LOOP}) (start $main)"), "stopped after"),
    "endless loop when initialized": (module(more=f'(func (export "_initialize") {LOOP})'), "stopped after"),
    "memory bomb": (
        module(decode="(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable"),
        "unreachable",
    ),
    "more memory than allowed at its start": (module(memory='(memory (export "memory") 4096)'), "failed: .*memory"),
    "trap": (module(decode="unreachable"), "unreachable"),
    "division by zero": (module(decode="(i32.div_u (i32.const 1) (i32.const 0))"), "divide by zero"),
    "endless recursion": (
        module(decode="(call $deeper)", more="(func $deeper (result i32) (i32.add (call $deeper) (i32.const 1)))"),
        "stack",
    ),
    "read outside": (module(decode="(i32.load (i32.const -8))"), "out of bounds"),
    "buffer outside": (module(following=returning((64, 0), (131000, 8000))), "outside its memory"),
    "buffer that wraps around": (module(following=returning((64, 0), (4294967280, 8000))), "outside its memory"),
    "input outside": (module(alloc="(i32.const 131071)"), "outside its memory"),
    "input at the end of addresses": (module(alloc="(i32.const -4)"), "outside its memory"),
    "too few bytes": (module(following=returning((64, 0), (64, 7999))), "7999 bytes where 1000 rows need 8000"),
    "too few bits of validity": (module(following=returning((64, 124), (64, 8000))), "124 bytes of validity"),
    "too few buffers": (module(following=returning((64, 0))), "returns 1 buffers"),
    "no buffers": (module(following=returning()), "returns 0 buffers"),
    "an error": (
        module(decode="(i32.store (local.get 2) (i32.const 64)) (i32.store offset=4 (local.get 2) (i32.const 5))"
               "(i32.const -1)", more='(data (i32.const 64) "no\\0away")'),
        "says: nowa$",
    ),
    "an error outside": (
        module(decode="(i32.store (local.get 2) (i32.const -2)) (i32.store offset=4 (local.get 2) (i32.const 99))"
               "(i32.const 1)"),
        "outside its memory",
    ),
    "file access": (module(before='(import "env" "open" (func (param i32) (result i32)))'), "imports env.open"),
    "foreign memory": (
        module(before='(import "wasi_snapshot_preview1" "memory" (memory 1))', memory='(memory (export "memory") 1)'),
        "imports wasi_snapshot_preview1.memory",
    ),
    "exit": (
        module(before='(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))',
               decode="(call $exit (i32.const 0)) (i32.const 0)"),
        "calls proc_exit",
    ),
    "a function of WASI with a wrong parameter": (
        module(before='(import "wasi_snapshot_preview1" "fd_write" (func (param f64)))'), "imports .*fd_write"
    ),
    "a function of WASI with a wrong result": (
        module(before='(import "wasi_snapshot_preview1" "fd_write" (func $write (result i32 i32)))',
               decode="(drop (call $write)) (drop)" + modules.DECODE), "imports .*fd_write",
    ),
    "a function of WASI that returns a reference": (
        module(before='(import "wasi_snapshot_preview1" "fd_write" (func $write (result externref)))',
               decode="(drop (call $write))" + modules.DECODE), "imports .*fd_write",
    ),
    "no version": (module(version="x").replace(b"FFFUDE_VERSION_", b"FFFUDE_DIVERSIO"), "exports no FFFUDE_VERSION_"),
    "a version to come": (module(version="4_0"), "interface 4_0"),
    "no memory": (module(memory="(memory 2)"), "exports no memory"),
    "memory of 64 bits": (
        module(memory='(memory (export "memory") i64 1) (memory 1)', decode="(i32.const 0)", following=""), "failed"
    ),
    "no Wasm": (b"\x7fELF" + bytes(100), "is not a Wasm module"),
    "cut Wasm": (module()[:-40], "cannot be compiled"),
    "nothing": (b"", "is not a Wasm module"),
    "own exports with memory outside": (
        module(more='(func (export "f3_room") (param i32) (result i32) (i32.const -64))'
               '(func (export "f3_decode_part") (param i32) (result i32) (i32.const 0))'),
        "cut short|another number of rows|outside its memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_module_ends_in_an_error(name):
    hostile, words = HOSTILE[name]
    with pytest.raises(F3Error, match=words) as raised:
        decoded(hostile, limits=ENDLESS if name.startswith("endless loop") else QUICK)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.timeout(4)
def test_an_endless_loop_ends_by_the_limits_that_are_set_by_default():
    with pytest.raises(F3Error, match="stopped after"):
        decoded(module(decode=LOOP + "(i32.const 0)"), limits=wasm.DEFAULT_LIMITS)


def test_modules_that_take_most_of_their_time_in_every_call_are_stopped(monkeypatch):
    """Each EncUnit is a call, and a file may have any number of EncUnits."""
    clock = iter(range(10_000))
    monkeypatch.setattr(wasm, "_seconds", lambda: next(clock) * 0.2)
    decoder = unit_codec.Decoder(module(), limits=Limits(seconds=1.0))
    for _ in range(5):
        decoder.decode(PAYLOAD, INT64, 1000)
    with pytest.raises(F3Error, match="stopped after"):
        decoder.decode(PAYLOAD, INT64, 1000)


def test_time_that_was_not_used_is_saved_for_one_long_call(monkeypatch):
    quick, long = [0.1, 0.001], [0.1, 0.9]
    times = iter(np.cumsum([0, 0.0] + quick * 100 + long * 2).tolist())
    monkeypatch.setattr(wasm, "_seconds", lambda: next(times))
    decoder = unit_codec.Decoder(module(), limits=Limits(seconds=1.0))
    for _ in range(102):
        assert len(decoder.decode(PAYLOAD, INT64, 1000)) == 1000
    with pytest.raises(F3Error, match="stopped after"):
        decoder.decode(PAYLOAD, INT64, 1000)


@pytest.mark.timeout(10)
def test_rows_that_a_file_only_claims_are_worth_little_time():
    """The file of a few bytes claims 16 million rows of 8 bytes each."""
    with pytest.raises(F3Error, match="stopped after"):
        decoded(module(decode=LOOP + "(i32.const 0)"), rows=1 << 24, limits=wasm.DEFAULT_LIMITS)


STRINGS = {
    "invalid UTF-8": (struct.pack("<i12s", 3, b"a\xff\xfe"), "UTF"),
    "a negative length": (struct.pack("<i12s", -1, b"abc"), "invalid strings"),
    "a buffer that does not exist": (struct.pack("<i4sii", 13, b"aaaa", 1, 0), "invalid strings"),
    "an offset past its buffer": (struct.pack("<i4sii", 13, b"aaaa", 0, 20), "invalid strings"),
    "a negative offset": (struct.pack("<i4sii", 13, b"aaaa", 0, -4), "invalid strings"),
    "a wrong prefix": (struct.pack("<i4sii", 13, b"bbbb", 0, 0), "invalid strings"),
}


@pytest.mark.parametrize("name", STRINGS)
def test_hostile_views_end_in_an_error(name):
    view, words = STRINGS[name]
    data = "".join(f"\\{byte:02x}" for byte in view)
    segments = f'(data (i32.const 512) "{data}") (data (i32.const 600) "{"a" * 20}")'
    hostile = module(following=returning((64, 0), (512, 16), (600, 20)), more=segments)
    with pytest.raises(F3Error, match=words):
        decoded(hostile, pa.string(), 1)


def test_buffers_without_end_end_in_an_error():
    endless = "(i32.store (local.get $out) (i32.const 64)) (i32.store offset=4 (local.get $out) (i32.const 16))"
    with pytest.raises(F3Error, match="5000 or more buffers"):
        decoded(module(following=endless), pa.string(), 1)


def test_the_same_memory_again_and_again_ends_in_an_error():
    """Each buffer is copied, so 4,999 copies of the guest's memory would exhaust the host's memory."""
    again = "(i32.store (local.get $out) (i32.const 0)) (if (i32.lt_u (global.get $asked) (i32.const 4999)) (then" \
        "(i32.store (local.get $out) (i32.const 64)) (i32.store offset=4 (local.get $out) (i32.const 131000))))" \
        "(global.set $asked (i32.add (global.get $asked) (i32.const 1)))"  # fmt: skip
    with pytest.raises(F3Error, match="more bytes in total than its memory has"):
        decoded(module(following=again), pa.binary(), 1)


def test_views_that_show_the_same_text_too_often_end_in_an_error():
    """A megabyte that is repeated as 2,048 strings exceeds the limit of an array. Repeated as 2 ** 20 strings it
    exceeds any memory."""
    rows, size = 2049, 1 << 20
    payload = struct.pack("<i4sii", size, b"aaaa", 0, 0) * rows
    text = f"(memory.fill (i32.const 65536) (i32.const 97) (i32.const {size}))"
    hostile = module(
        decode=text + modules.DECODE,
        following="""
          (i32.store (local.get $out) (i32.const 0))
          (if (i32.eq (global.get $asked) (i32.const 0))
            (then (i32.store (local.get $out) (i32.const 64)) (i32.store offset=4 (local.get $out) (i32.const 0))))
          (if (i32.eq (global.get $asked) (i32.const 1))
            (then (i32.store (local.get $out) (global.get $at))
              (i32.store offset=4 (local.get $out) (global.get $bytes))))
          (if (i32.eq (global.get $asked) (i32.const 2))
            (then (i32.store (local.get $out) (i32.const 65536))
              (i32.store offset=4 (local.get $out) (i32.const 1048576))))
          (global.set $asked (i32.add (global.get $asked) (i32.const 1)))""",
        memory='(memory (export "memory") 20)',
    )
    decoder = unit_codec.Decoder(hostile, limits=QUICK)
    for arrow_type in (pa.string(), pa.large_string()):
        with pytest.raises(F3Error, match=f"{rows << 20} bytes of {rows} strings"):
            decoder.decode(payload, arrow_type, rows)
    assert decoder.decode(payload[:32], pa.large_string(), 2).to_pylist() == ["a" * size] * 2


def own(values: int, offsets: int = 0) -> bytes:
    """Return a module that has this package's exports and returns these addresses."""
    answer = "".join(
        f"(i32.store offset={offset} (local.get 0) (i32.const {number}))"
        for offset, number in ((44, values), (48, offsets))
    )
    return module(
        memory='(memory (export "memory") 128)',
        more='(func (export "f3_room") (param i32) (result i32) (i32.const 1024))'
        f'(func (export "f3_decode_part") (param i32) (result i32) {answer} (i32.const 0))',
    )


def test_our_own_exports_are_believed_as_little():
    numbers = unit_codec.encode(pa.array(NUMBERS)).payload
    for place in (0xFFFFFFF0, 128 * 65_536 - 7999):
        with pytest.raises(F3Error, match="outside its memory"):
            unit_codec.Decoder(own(place), limits=QUICK).decode(numbers, pa.int64(), 1000)
    text = unit_codec.encode(pa.array(["abc", "defg"])).payload
    for hostile, words in ((own(512, 0xFFFFFFF0), "outside its memory"), (own(512, 64), "out of range")):
        with pytest.raises(F3Error, match=words):
            unit_codec.Decoder(hostile, limits=QUICK).decode(text, pa.string(), 2)


def picking(values: int, offsets: int, text_bytes: int) -> bytes:
    """Return a module that answers a request for some rows with these addresses."""
    answer = "".join(
        f"(i32.store offset={28 + 4 * place} (local.get 0) (i32.const {number}))"
        for place, number in enumerate((values, offsets, 0, text_bytes))
    )
    exports = (
        '(func (export "f3_room") (param i32) (result i32) (i32.const 4096))',
        '(func (export "f3_decode_part") (param i32) (result i32) (i32.const 0))',
        f'(func (export "f3_pick_part") (param i32) (result i32) {answer} (i32.const 0))',
    )
    return module(more="".join(exports))


def picked(wasm_module: bytes, arrow_type: pa.DataType) -> pa.Array:
    decoder = unit_codec.Decoder(wasm_module)
    payload = pa.py_buffer(b"x" * 100)
    units = np.array([(payload.address, 0, 100, 1000, 0, 2)], PICKED)
    assert decoder.picks_rows
    return decoder.pick(units, -1, np.array([5, 999], np.uint32), arrow_type)


def test_the_export_for_some_rows_is_believed_as_little():
    assert picked(picking(8192, 0, 0), pa.int64()).null_count == 2
    assert picked(picking(8192, 16_384, 0), pa.string()).null_count == 2
    for values, offsets, text_bytes, arrow_type, message in (
        (-8, 0, 0, pa.int64(), "outside its memory"),
        (8192, -8, 0, pa.string(), "outside its memory"),
        (8192, 4096, 10, pa.string(), "invalid strings"),
        (8192, 16_384, 2**31 - 1, pa.large_string(), "outside its memory|was stopped|too many"),
    ):
        with pytest.raises(F3Error, match=message):
            picked(picking(values, offsets, text_bytes), arrow_type)


def test_a_module_may_give_any_of_its_memory_away_and_goes_on_without_it():
    rows = 500_000
    numbers = unit_codec.encode(pa.array(np.arange(rows))).payload
    for place in range(0, 1 << 21, 1 << 18):
        decoder = unit_codec.Decoder(own(place), limits=QUICK)
        first, second = (decoder.decode(numbers, pa.int64(), rows) for _ in range(2))
        assert (len(first), len(second)) == (rows, rows)


def test_results_stay_what_they_are_when_the_module_goes_on_and_when_it_is_gone():
    rows = 700_000
    columns = [np.arange(rows) * factor for factor in (3, 5)]
    texts = pa.array([f"row {number}" for number in range(rows)])
    decoder = unit_codec.Decoder(unit_codec.modules()["core"], prefer="wasm")
    arrays = [decoder.decode(unit_codec.encode(pa.array(column)).payload, pa.int64(), rows) for column in columns]
    strings = decoder.decode(unit_codec.encode(texts).payload, pa.string(), rows)
    del decoder
    assert strings.equals(texts)
    for array, column in zip(arrays, columns, strict=True):
        array.validate(full=True)
        assert np.array_equal(array.to_numpy(), column)


def test_results_that_do_not_fit_into_the_memory_together_come_one_after_the_other():
    texts = [None if row % 7 == 0 else f"{row:>30}" for row in range(50_006)]
    parts = [pa.array(texts[each : each + 50_001]) for each in (0, 5)]
    payloads = [unit_codec.encode(part).payload for part in parts]
    decoder = unit_codec.Decoder(unit_codec.modules()["core"], prefer="wasm", limits=Limits(memory_bytes=1 << 24))
    decoded_together = decoder.decode_into(payloads * 3, pa.string(), [50_001] * 6)
    assert decoded_together.equals(pa.concat_arrays(parts * 3))


def test_after_a_fault_the_next_call_finds_a_fresh_instance():
    odd = "(if (i32.lt_u (local.get 1) (i32.const 100)) (then unreachable))" + modules.DECODE
    decoder = unit_codec.Decoder(module(decode=odd))
    for _ in range(3):
        with pytest.raises(F3Error, match="unreachable"):
            decoder.decode(PAYLOAD[:80], pa.int64(), 10)
        assert decoder.decode(PAYLOAD, pa.int64(), 1000).equals(pa.array(NUMBERS))


def test_the_functions_of_wasi_answer_and_give_nothing_away():
    imports = (
        '(import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))'
        '(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))'
        '(import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))'
    )
    decode = (
        "(if (call $sizes (i32.const 8) (i32.const 12)) (then unreachable))"
        "(if (i32.load (i32.const 8)) (then unreachable))"
        "(if (i32.eqz (call $write (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))) (then unreachable))"
        "(if (i32.eqz (call $clock (i32.const 0) (i64.const 0) (i32.const 0))) (then unreachable))"
    )
    honest = module(before=imports, decode=decode + modules.DECODE, more='(data (i32.const 8) "\\07")')
    assert decoded(honest).equals(pa.array(NUMBERS))
    outside = module(before=imports, decode="(drop (call $sizes (i32.const -2) (i32.const 0)))" + modules.DECODE)
    with pytest.raises(F3Error, match="the decoder in the file failed"):
        decoded(outside)


def test_a_module_is_compiled_once_and_kept_for_its_owner_alone(tmp_path, monkeypatch):
    assert decoded(module()).equals(pa.array(NUMBERS))
    (kept,) = (tmp_path / "modules").iterdir()
    assert (tmp_path / "modules").stat().st_mode & 0o777 == 0o700
    assert kept.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(wasmtime, "Module", LoadsOnly())
    assert decoded(module()).equals(pa.array(NUMBERS))
    compiled_module.cache_clear()
    assert decoded(module()).equals(pa.array(NUMBERS))


class LoadsOnly:
    """A replacement for wasmtime.Module that loads compiled modules but cannot compile."""

    deserialize = staticmethod(wasmtime.Module.deserialize)


def test_a_kept_module_that_others_could_have_written_is_not_loaded(tmp_path):
    decoded(module())
    (kept,) = (tmp_path / "modules").iterdir()
    assert module_cache.load(kept.name) is not None
    kept.chmod(0o620)
    assert module_cache.load(kept.name) is None
    kept.chmod(0o600)
    os.chmod(tmp_path / "modules", 0o770)
    assert module_cache.load(kept.name) is None
    os.chmod(tmp_path / "modules", 0o700)
    link = tmp_path / "modules" / "link"
    link.symlink_to(kept)
    assert module_cache.load("link") is None


def test_a_kept_module_that_is_damaged_is_compiled_again(tmp_path):
    decoded(module())
    (kept,) = (tmp_path / "modules").iterdir()
    kept.write_bytes(b"not what was compiled")
    compiled_module.cache_clear()
    assert decoded(module()).equals(pa.array(NUMBERS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_decoder_works_on_in_a_forked_process():
    decoder = unit_codec.Decoder(module())
    expected = decoder.decode(PAYLOAD, INT64, 1000)
    child = os.fork()
    if child == 0:
        os._exit(0 if decoder.decode(PAYLOAD, INT64, 1000).equals(expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent():
    decoder = unit_codec.Decoder(unit_codec.modules()["core"], prefer="wasm")
    payload = unit_codec.encode(pa.array(NUMBERS)).payload
    decoder.decode(payload, pa.int64(), 1000)
    with decoder._sandbox._lock, runtime.running._lock, runtime._making:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if decoder.decode(payload, pa.int64(), 1000).equals(pa.array(NUMBERS)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_process_that_holds_a_decoder_ends_without_a_word():
    program = (
        "from libraries.f3.encodings import unit_codec\nimport pyarrow as pa\n"
        "decoder = unit_codec.Decoder(unit_codec.modules()['core'], prefer='wasm')\n"
        "payload = unit_codec.encode(pa.array([1, 2])).payload\n"
        "assert decoder.decode(payload, pa.int64(), 2)[1].as_py() == 2"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=15)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_several_threads_may_share_a_decoder():
    decoder = unit_codec.Decoder(module())
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda rows: decoder.decode(PAYLOAD, INT64, rows).to_pylist(), range(1, 60)))
    assert found == [list(range(rows)) for rows in range(1, 60)]


def many_locals(count: int) -> str:
    """Return a function whose compilation time grows with the square of its size."""
    steps = "".join(f"(local.set {place} (i32.load (local.get {place - 1})))" for place in range(1, count))
    sums = "".join(f"(local.get {place})(i32.add)" for place in range(1, count))
    return f"(func (param i32) (result i32) (local {'i32 ' * count}) {steps} (local.get 0) {sums})"


@pytest.mark.timeout(60)
def test_a_module_that_keeps_the_compiler_busy_is_given_up():
    started = time.process_time() + sum(os.times()[2:4])
    with pytest.raises(F3Error, match="compiled: compilation takes more than 2 s"):
        decoded(module(more=many_locals(20_000)))
    assert time.process_time() + sum(os.times()[2:4]) - started < 5


def test_a_large_module_is_compiled_in_a_process_of_its_own_and_kept(tmp_path, monkeypatch):
    large = module(more=f'(memory 2) (data (memory 1) (i32.const 0) "{"a" * 70_000}")')
    assert decoded(large).equals(pa.array(NUMBERS))
    assert len(list((tmp_path / "modules").iterdir())) == 1
    monkeypatch.setattr(compilation, "compiled", lambda module: pytest.fail("it is compiled again"))
    assert decoded(large).equals(pa.array(NUMBERS))


def test_a_large_module_that_is_none_is_told_in_one_line():
    with pytest.raises(F3Error, match="cannot be compiled: ") as raised:
        decoded(module() + bytes(70_000))
    assert len(str(raised.value).splitlines()) == 1


def test_only_the_modules_that_were_used_last_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module_cache, "MOST_KEPT", 3)
    for number in range(5):
        module_cache.keep(f"module-{number}", b"compiled")
        os.utime(tmp_path / "modules" / f"module-{number}", (number, number))
        assert module_cache.load("module-0") == b"compiled"
    assert sorted(file.name for file in (tmp_path / "modules").iterdir()) == ["module-0", "module-3", "module-4"]


def test_another_runtime_or_module_has_another_name():
    assert len({module_cache.key(*of) for of in ((b"a", "1"), (b"a", "2"), (b"b", "1"))}) == 3
