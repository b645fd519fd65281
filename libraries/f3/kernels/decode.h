/* Declarations shared by decode.c (all rows of a payload) and pick.c (some rows). */
#ifndef F3_DECODE_H
#define F3_DECODE_H

#include "kernels.h"

struct room {
    u8 *base;
    size_t used, bytes;
    u64 work; /* values that may still be decoded; without a limit, nested nodes could ask for far more than the rows */
};

struct span {
    const u8 *at, *end;
};

enum { MOST_EXPONENT = 22 };

#define TRY(call)                    \
    do {                             \
        int fault_ = (call);         \
        if (fault_ != FINE)          \
            return fault_;           \
    } while (0)

static inline u32 load32(const u8 *at) { return *(const u32_at *)at; }
static inline u64 load64(const u8 *at) { return *(const u64_at *)at; }

/* Take aligned scratch memory. 64 bytes after its end may be read. */
int f3_take(struct room *room, u64 bytes, u8 **taken);
/* Subtract `values` and a fixed amount for a node from the remaining work. TOO_MUCH if too little is left. */
int f3_spend(struct room *room, u64 values);

int f3_decode_values(struct room *room, struct span *in, u32 width, u32 count, u8 *out, u32 depth);
int f3_decode_bits(struct room *room, struct span *in, u32 count, u8 *out);
void f3_fill(u8 *out, u32 width, u32 count, const u8 *value);
void f3_store_number(u8 *out, u32 width, size_t index, u64 value);
void f3_to_decimals(u32 exponent, u32 width, u32 count, u8 *out);
void f3_join(u32 low_bits, u32 width, u32 count, const u8 *high, u8 *out);
void f3_widen(const u8 *values, u32 narrow, u32 width, u32 count, u8 *out);
u64 f3_add_up(u8 *lengths, u32 count, u32 first);
int f3_is_utf8(const u8 *in, u64 bytes);

/* Read `bytes` bytes of a file from `offset` on. Return 1, or 0 if the file cannot be read or is too short. native.c
 * implements it; the one in guest.c always returns 0, because a Wasm module has no files. */
int f3_read_file(i32 file, u64 offset, u64 bytes, u8 *out);

#endif
