/* Shared by the decoding and encoding kernels: number types, error codes, node tags. docs/f3-encodings.md specifies the
 * payload and uses the same names. */
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

/* Payloads are not aligned. These types allow any address, and compilers still vectorise loops over them. */
typedef u16 __attribute__((aligned(1), may_alias)) u16_at;
typedef u32 __attribute__((aligned(1), may_alias)) u32_at;
typedef u64 __attribute__((aligned(1), may_alias)) u64_at;
typedef i64 __attribute__((aligned(1), may_alias)) i64_at;
typedef float __attribute__((aligned(1), may_alias)) f32_at;
typedef double __attribute__((aligned(1), may_alias)) f64_at;
typedef u8 u8_at; /* bytes may always alias */

/* Unroll a short loop completely. The first pragma also asks for vectorisation; the second unrolls it row by row. */
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

/* Why a payload is refused. Messages for users are in libraries/f3/decoders/native.py and, for the Wasm module, guest.c. */
enum fault {
    FINE = 0,
    CUT = 1,          /* a node or its stated contents end past the payload */
    MALFORMED = 2,    /* a tag, width or count that the specification does not allow */
    OUTSIDE = 3,      /* an index out of range */
    TOO_DEEP = 4,     /* more nested nodes than the specification allows */
    TOO_MUCH = 5,     /* more work than any encoder asks for */
    MISMATCH = 6,     /* another number of rows or another type than the file states */
    NOT_UTF8 = 7,
    NO_ROOM = 8,      /* the scratch memory is too small: call again with more */
    UNREADABLE = 9    /* the file cannot be read, or was truncated after it was opened */
};

enum { HEADER_BYTES = 16, NODE_BYTES = 8, BLOCK = 1024, MOST_DEPTH = 8, VERSION = 1 };
enum { HAS_NULLS = 1 };

/* The version of the encodings. libraries/f3/encodings/versions.py explains when it changes. */
#define ENCODING_MAJOR 1
#define ENCODING_MINOR 0
#define ENCODING_PATCH 1

/* The buffers of a column. EncUnits are decoded one after the other into the same buffers. */
struct target {
    u8 *values;          /* values, bitmap, or the bytes of strings */
    u64 values_bytes;    /* capacity of `values` */
    u8 *offsets;         /* of strings: rows + 1 numbers of `width` bytes */
    u8 *validity;        /* bitmap; may be 0 if no EncUnit has nulls */
    u32 kind, width;     /* bytes of a value; for strings, bytes of an offset (4 or 8) */
    u32 utf8;            /* whether strings must be UTF-8 */
    u64 first_row;       /* row of the column at which the EncUnit starts */
    u64 first_byte;      /* offset in `values` at which the EncUnit's strings start */
    u64 nulls;           /* number of nulls so far */
};

struct header {
    u32 kind, width, rows;
    int has_nulls;
    u64 data_bytes;
};

int f3_header(const u8 *payload, size_t bytes, struct header *header);
int f3_decode_unit(const u8 *payload, size_t bytes, u32 rows, struct target *target, u8 *scratch, size_t scratch_bytes);
int f3_pick_unit(const u8 *memory, i32 file, u64 offset, u64 bytes, u32 count, const u32 *wanted, u32 rows,
                 struct target *target, u8 *scratch, size_t scratch_bytes);
int f3_check_utf8(const u8 *data, u64 bytes, const u8 *offsets, u32 width, u64 count);

#endif
