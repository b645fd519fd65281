;; A driver with which the host needs one call per EncUnit. The guest interface needs one call per buffer, and a call
;; through the wasmtime package is far slower than a call between modules, especially with parameters. This module makes
;; the calls of the guest interface. It reads its arguments from its memory and writes the results there.
(module
  (import "guest" "memory" (memory $guest 0))
  (import "guest" "decode_general_ffi" (func $decode (param i32 i32 i32) (result i32)))
  (import "guest" "buffer_iterator_next" (func $next (param i32 i32 i32)))
  (import "guest" "buffer_iterator_drop" (func $finish (param i32)))
  (import "guest" "buffer_drop" (func $drop (param i32)))
  (memory $results (export "results") 1)

  ;; From 65472 on, the memory holds five numbers of 4 bytes: how many buffers of the previous call to release; the
  ;; address of a block in the guest's memory, with 12 bytes for results and then the payload; the bytes of the payload;
  ;; the maximum number of buffers to return; and the answer. The answer is the number of buffers, each listed from 0 on
  ;; as (address, bytes, box). After an error it is -1, and the address and the bytes of the message are at 0.
  (func (export "run")
    (local $held i32) (local $block i32) (local $most i32)
    (local $queue i32) (local $count i32) (local $entry i32)
    (local.set $held (i32.load $results offset=65472 (i32.const 0)))
    (local.set $block (i32.load $results offset=65476 (i32.const 0)))
    (local.set $most (i32.load $results offset=65484 (i32.const 0)))
    (i32.store $results offset=65488 (i32.const 0) (i32.const -1))
    (loop $release
      (if (i32.gt_s (local.get $held) (i32.const 0))
        (then
          (local.set $held (i32.sub (local.get $held) (i32.const 1)))
          (call $drop (i32.load $results offset=8 (i32.mul (local.get $held) (i32.const 12))))
          (br $release))))
    (if (call $decode
          (i32.add (local.get $block) (i32.const 12))
          (i32.load $results offset=65480 (i32.const 0))
          (local.get $block))
      (then
        (i32.store $results offset=0 (i32.const 0) (i32.load $guest offset=0 (local.get $block)))
        (i32.store $results offset=4 (i32.const 0) (i32.load $guest offset=4 (local.get $block)))
        (return)))
    (local.set $queue (i32.load $guest offset=0 (local.get $block)))
    (block $done
      (loop $pull
        (br_if $done (i32.ge_u (local.get $count) (local.get $most)))
        (call $next (local.get $queue) (local.get $block) (i32.add (local.get $block) (i32.const 8)))
        (br_if $done (i32.eqz (i32.load $guest offset=0 (local.get $block))))
        (i32.store $results offset=0 (local.get $entry) (i32.load $guest offset=0 (local.get $block)))
        (i32.store $results offset=4 (local.get $entry) (i32.load $guest offset=4 (local.get $block)))
        (i32.store $results offset=8 (local.get $entry) (i32.load $guest offset=8 (local.get $block)))
        (local.set $entry (i32.add (local.get $entry) (i32.const 12)))
        (local.set $count (i32.add (local.get $count) (i32.const 1)))
        (br $pull)))
    (call $finish (local.get $queue))
    (i32.store $results offset=65488 (i32.const 0) (local.get $count))))
