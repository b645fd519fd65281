;; One call from the host per EncUnit. A call through the wasmtime package costs far more than a call between modules,
;; especially with parameters, and the guest interface needs one per buffer. This module makes these calls: it reads its
;; arguments from its memory and lists the results there.
(module
  (import "guest" "memory" (memory $guest 0))
  (import "guest" "decode_general_ffi" (func $decode (param i32 i32 i32) (result i32)))
  (import "guest" "buffer_iterator_next" (func $next (param i32 i32 i32)))
  (import "guest" "buffer_iterator_drop" (func $finish (param i32)))
  (import "guest" "buffer_drop" (func $drop (param i32)))
  (memory $results (export "results") 1)

  ;; At 65472: number of buffers of the previous call to give back, the block, the bytes after its first 12, the maximum
  ;; number of buffers to list, and the answer: the number listed as (address, bytes, box), or -1 and the text of an error.
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
