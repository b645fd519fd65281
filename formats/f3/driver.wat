;; One call from the host for one EncUnit. A call through the wasmtime package costs far more than a call between
;; modules, and the guest interface asks for one a buffer: this module makes them all, and lists what came back.
(module
  (import "guest" "memory" (memory $guest 0))
  (import "guest" "decode_general_ffi" (func $decode (param i32 i32 i32) (result i32)))
  (import "guest" "buffer_iterator_next" (func $next (param i32 i32 i32)))
  (import "guest" "buffer_iterator_drop" (func $finish (param i32)))
  (import "guest" "buffer_drop" (func $drop (param i32)))
  (memory $results (export "results") 1)

  ;; Give back the `held` buffers of the call before; then decode the `bytes` behind the 12 of the block, and list up to
  ;; `most` buffers as (address, bytes, box). The answer is how many, or -1: then the list holds the error's text.
  (func (export "run") (param $held i32) (param $block i32) (param $bytes i32) (param $most i32) (result i32)
    (local $queue i32) (local $count i32) (local $entry i32)
    (loop $release
      (if (i32.gt_s (local.get $held) (i32.const 0))
        (then
          (local.set $held (i32.sub (local.get $held) (i32.const 1)))
          (call $drop (i32.load $results offset=8 (i32.mul (local.get $held) (i32.const 12))))
          (br $release))))
    (if (call $decode (i32.add (local.get $block) (i32.const 12)) (local.get $bytes) (local.get $block))
      (then
        (i32.store $results offset=0 (i32.const 0) (i32.load $guest offset=0 (local.get $block)))
        (i32.store $results offset=4 (i32.const 0) (i32.load $guest offset=4 (local.get $block)))
        (return (i32.const -1))))
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
    (local.get $count)))
