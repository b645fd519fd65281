"""Load the Wasm modules of files, compiled or from the cache. A module is checked to be a decoder before its code
runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from libraries.f3.decoders import compilation, module_cache, native
from libraries.f3.decoders.runtime import last_line, runtime_here, wasmtime_package
from libraries.f3.errors import F3Error

_WASI = "wasi_snapshot_preview1"
_VERSION_PREFIX = "FFFUDE_VERSION_"
_NEWEST_VERSION = 3
_INTERFACE = {
    "alloc": (2, 1),
    "dealloc": (3, 0),
    "decode_general_ffi": (3, 1),
    "buffer_iterator_next": (3, 0),
    "buffer_iterator_drop": (1, 0),
    "buffer_drop": (1, 0),
}
"""Function that F3 requires of a module -> number of its i32 parameters, and of its i32 results."""
_MOST_MODULES = 8
"""Maximum number of modules that a process keeps loaded. Files of the same writer share their modules."""


def _is_ours(wasm: bytes) -> bool:
    """Return whether `wasm` is the module built with this package. Its compilation time is known, so it needs no time
    limit."""
    try:
        return (native.KERNELS / native.MODULE_NAME).read_bytes() == wasm
    except OSError:
        return False


@lru_cache(maxsize=_MOST_MODULES)
def compiled_module(wasm: bytes, process: int) -> Any:
    """Return a compiled module, from the cache if it is there. Large modules other than this package's are compiled in
    a separate process with limits. `process` is the id of this process, which cannot use modules of its parent. Raises
    F3Error."""
    wasmtime, runtime = wasmtime_package(), runtime_here()
    name = module_cache.key(wasm, f"wasmtime {runtime.version}")
    kept = module_cache.load(name)
    if kept is not None:
        try:
            return wasmtime.Module.deserialize(runtime.engine, kept)
        except wasmtime.WasmtimeError:
            # The cached module is from another build of the same runtime version, so compile it again below.
            kept = None
    if not wasm.startswith(b"\0asm"):
        raise F3Error("the decoder in the file is not a Wasm module")
    try:
        if len(wasm) > compilation.MOST_HERE_BYTES and not _is_ours(wasm) and compilation.is_possible():
            kept = compilation.compiled(wasm)
            module = wasmtime.Module.deserialize(runtime.engine, kept)
        else:
            module = wasmtime.Module(runtime.engine, wasm)
            kept = bytes(module.serialize())
    except (wasmtime.WasmtimeError, compilation.CompilingError) as error:
        raise F3Error(f"the Wasm module in the file cannot be compiled: {last_line(error)}") from None
    _check_interface(module)
    module_cache.keep(name, kept)
    return module


def _check_interface(module: Any) -> None:
    wasmtime = wasmtime_package()
    for wanted in module.imports:
        if wanted.module != _WASI or not isinstance(wanted.type, wasmtime.FuncType) or not _is_of_wasi(wanted.type):
            name = f"{wanted.module}.{wanted.name}"
            allowed = "only functions of WASI, which take integers and return at most one i32, are allowed"
            raise F3Error(f"the decoder in the file imports {name}; {allowed}")
    exports = {export.name: export.type for export in module.exports}
    versions = [name.removeprefix(_VERSION_PREFIX) for name in exports if name.startswith(_VERSION_PREFIX)]
    if not versions:
        raise F3Error(f"the decoder in the file exports no {_VERSION_PREFIX}1_0, so it is not a decoder of F3")
    major = versions[0].partition("_")[0]
    if not major.isdecimal() or len(major) > 4 or int(major) > _NEWEST_VERSION:
        supported = f"versions up to {_NEWEST_VERSION} are supported"
        raise F3Error(f"the decoder in the file has interface {versions[0]}; {supported}")
    if not isinstance(exports.get("memory"), wasmtime.MemoryType):
        raise F3Error("the decoder in the file exports no memory")
    for name, shape in _INTERFACE.items():
        if not _is_function(exports.get(name), shape):
            signature = f"with {shape[0]} parameters and {shape[1]} results of type i32"
            raise F3Error(f"the decoder in the file exports no function {name} {signature}")


def _is_of_wasi(function: Any) -> bool:
    """Return whether a function takes integers and returns an error number or nothing, as the functions of WASI do."""
    wasmtime = wasmtime_package()
    i32, i64 = wasmtime.ValType.i32(), wasmtime.ValType.i64()
    results = list(function.results)
    return all(kind in (i32, i64) for kind in function.params) and results in ([], [i32])


def _is_function(exported: Any, shape: tuple[int, int]) -> bool:
    wasmtime = wasmtime_package()
    if not isinstance(exported, wasmtime.FuncType):
        return False
    i32 = wasmtime.ValType.i32()
    parameters, results = list(exported.params), list(exported.results)
    return (len(parameters), len(results)) == shape and all(kind == i32 for kind in parameters + results)


def is_function_of(exports: Any, name: str, store: Any, shape: tuple[int, int]) -> bool:
    """Return whether an instance exports a function with these numbers of i32 parameters and results."""
    found = exports.get(name)
    return isinstance(found, wasmtime_package().Func) and _is_function(found.type(store), shape)
