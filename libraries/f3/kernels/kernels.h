/* What the decoding and encoding kernels share: number types, error codes, node tags. docs/f3-encodings.md is the
 * specification of the payload; the names here are the names there. */
#ifndef F3_KERNELS_H
#define F3_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

/* Payloads are not aligned: these may lie anywhere, and compilers still vectorise loops over them. */
typedef u16 __attribute__((aligned(1), may_alias)) u16_at;
typedef u32 __attribute__((aligned(1), may_alias)) u32_at;
typedef u64 __attribute__((aligned(1), may_alias)) u64_at;
typedef i64 __attribute__((aligned(1), may_alias)) i64_at;
typedef float __attribute__((aligned(1), may_alias)) f32_at;
typedef double __attribute__((aligned(1), may_alias)) f64_at;
typedef u8 u8_at; /* bytes may alias as they are */

/* Loops of few turns without any end: as vectors where that can be, or row by row. */
#define WHOLLY_UNROLLED _Pragma("clang loop vectorize(enable) unroll(full)")
#define WHOLLY_UNROLLED_ROWS _Pragma("clang loop unroll(full)")

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

enum kind { KIND_FIXED = 0, KIND_BITS = 1, KIND_TEXT = 2 };

enum tag {
    TAG_PLAIN = 0,
    TAG_CONSTANT = 1,
    TAG_PACKED = 2,
    TAG_RUNS = 3,
    TAG_DELTA = 4,
    TAG_DICTIONARY = 5,
    TAG_PATCHED = 6,
    TAG_DECIMAL = 7,
    TAG_SPLIT = 8,
    TAG_WIDENED = 9,
    TAG_SYMBOLS = 10
};

/* Why a payload is refused. The texts that users see are in libraries/f3/decoders/native.py and, for the Wasm module, guest.c. */
enum fault {
    FINE = 0,
    CUT = 1,          /* a node, or what it says it holds, ends behind the payload */
    MALFORMED = 2,    /* a tag, width or count that the specification does not have */
    OUTSIDE = 3,      /* an index behind what it leads to */
    TOO_DEEP = 4,     /* more nodes inside each other than the specification allows */
    TOO_MUCH = 5,     /* more work than any encoder asks for */
    MISMATCH = 6,     /* not of the rows or the type that the file says */
    NOT_UTF8 = 7,
    NO_ROOM = 8       /* the scratch memory is too small: call again with more */
};

enum { HEADER_BYTES = 16, NODE_BYTES = 8, BLOCK = 1024, MOST_DEPTH = 8, VERSION = 1 };
enum { HAS_NULLS = 1 };

/* Where the values of a column go. EncUnits are decoded one after the other into the same buffers. */
struct target {
    u8 *values;          /* values, bitmap, or the bytes of strings */
    u64 values_bytes;    /* how many there is room for */
    u8 *offsets;         /* of strings: rows + 1 numbers of offset_width */
    u8 *validity;        /* bitmap; 0 when no EncUnit has nulls */
    u32 kind, width;     /* of a value, in bytes; for strings that of an offset (4 or 8) */
    u32 utf8;            /* whether strings must be UTF-8 */
    u64 first_row;       /* of the EncUnit in the column */
    u64 first_byte;      /* of the EncUnit's strings in `values` */
    u64 nulls;           /* counted up */
};

struct header {
    u32 kind, width, rows;
    int has_nulls;
    u64 data_bytes;
};

int f3_header(const u8 *payload, size_t bytes, struct header *header);
int f3_decode_unit(const u8 *payload, size_t bytes, u32 rows, struct target *target, u8 *scratch, size_t scratch_bytes);
int f3_check_utf8(const u8 *data, u64 bytes, const u8 *offsets, u32 width, u64 count);

#endif
