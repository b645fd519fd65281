;; The driver for modules with the additional exports of guest.c. Its memory holds the address of the request at 0 and
;; the result at 4.
(module
  (import "guest" "f3_decode_part" (func $decode (param i32) (result i32)))
  (memory (export "results") 1)
  (func (export "run")
    (i32.store offset=4 (i32.const 0) (call $decode (i32.load offset=0 (i32.const 0))))))
