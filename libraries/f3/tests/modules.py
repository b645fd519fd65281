"""Decoder modules in WAT: one that follows F3's interface, and parts with which tests break the interface."""

import wasmtime

DECODE = """
  (global.set $at (local.get 0)) (global.set $bytes (local.get 1)) (global.set $asked (i32.const 0))
  (i32.store (local.get 2) (i32.const 7)) (i32.store offset=4 (local.get 2) (i32.const 8))
  (i32.const 0)
"""
NEXT = """
  (i32.store (local.get $out) (i32.const 0))
  (if (i32.eq (global.get $asked) (i32.const 0))
    (then (i32.store (local.get $out) (i32.const 64)) (i32.store offset=4 (local.get $out) (i32.const 0))))
  (if (i32.eq (global.get $asked) (i32.const 1))
    (then (i32.store (local.get $out) (global.get $at)) (i32.store offset=4 (local.get $out) (global.get $bytes))))
  (global.set $asked (i32.add (global.get $asked) (i32.const 1)))
"""


def module(
    *,
    decode: str = DECODE,
    following: str = NEXT,
    alloc: str = "(i32.const 1024)",
    version: str = "1_0",
    memory: str = '(memory (export "memory") 2)',
    before: str = "",
    more: str = "",
) -> bytes:
    """Return a module whose payloads are the plain values of a numeric array without nulls."""
    text = f"""(module {before} {memory}
      (global (export "FFFUDE_VERSION_{version}") i32 (i32.const 1))
      (global $at (mut i32) (i32.const 0)) (global $bytes (mut i32) (i32.const 0))
      (global $asked (mut i32) (i32.const 0))
      (func (export "alloc") (param i32 i32) (result i32) {alloc})
      (func (export "dealloc") (param i32 i32 i32))
      (func (export "decode_general_ffi") (param i32 i32 i32) (result i32) {decode})
      (func (export "buffer_iterator_next") (param $queue i32) (param $out i32) (param $box i32) {following})
      (func (export "buffer_iterator_drop") (param i32))
      (func (export "buffer_drop") (param i32))
      {more})"""
    return bytes(wasmtime.wat2wasm(text))


def returning(*buffers: tuple[int, int]) -> str:
    """Return a body of `buffer_iterator_next` with buffers at fixed places, given as (address, bytes)."""
    cases = "".join(
        f"(if (i32.eq (global.get $asked) (i32.const {number})) (then"
        f" (i32.store (local.get $out) (i32.const {address}))"
        f" (i32.store offset=4 (local.get $out) (i32.const {size}))))"
        for number, (address, size) in enumerate(buffers)
    )
    count = "(global.set $asked (i32.add (global.get $asked) (i32.const 1)))"
    return f"(i32.store (local.get $out) (i32.const 0)) {cases} {count}"
