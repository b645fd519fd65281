/* The native library's functions for libraries/f3/decoders/native.py: decode several EncUnits per call into a column. */
#define _POSIX_C_SOURCE 200809L /* for pread */
#define _FILE_OFFSET_BITS 64
#include "decode.h"

#ifndef _WIN32
#include <unistd.h>
#endif

#define EXPORT __attribute__((visibility("default")))

EXPORT u32 f3_version(void) { return ENCODING_MAJOR << 16 | ENCODING_MINOR; }

/* Find the total bytes of strings in EncUnits, and whether any EncUnit has nulls. After a fault, `failed` is the number
 * of the faulty EncUnit. */
EXPORT i32 f3_survey(u32 units, const u8 *const *payloads, const u64 *bytes, const u32 *rows, u32 kind, u32 width,
                     u64 *data_bytes, u32 *has_nulls, u32 *failed) {
    *data_bytes = 0;
    *has_nulls = 0;
    for (u32 unit = 0; unit < units; unit++) {
        struct header header;
        *failed = unit;
        int fault = f3_header(payloads[unit], (size_t)bytes[unit], &header);
        if (fault != FINE)
            return fault;
        if (header.rows != rows[unit] || header.kind != kind || (kind == KIND_FIXED && header.width != width))
            return MISMATCH;
        *has_nulls |= (u32)header.has_nulls;
        if (kind == KIND_TEXT)
            *data_bytes += header.data_bytes;
    }
    return FINE;
}

EXPORT i32 f3_decode_units(u32 units, const u8 *const *payloads, const u64 *bytes, const u32 *rows,
                           struct target *target, u8 *scratch, u64 scratch_bytes, u32 *next) {
    for (; *next < units; ++*next) {
        struct target before = *target;
        int fault = f3_decode_unit(payloads[*next], (size_t)bytes[*next], rows[*next], target, scratch,
                                   (size_t)scratch_bytes);
        if (fault != FINE) {
            *target = before;
            return fault;
        }
    }
    return FINE;
}

int f3_read_file(i32 file, u64 offset, u64 bytes, u8 *out) {
#ifdef _WIN32
    (void)file, (void)offset, (void)bytes, (void)out;
    return 0; /* on Windows, payloads are in memory */
#else
    while (bytes) {
        ssize_t got = pread(file, out, bytes, (off_t)offset);
        if (got <= 0)
            return 0;
        bytes -= (u64)got, offset += (u64)got, out += got;
    }
    return 1;
#endif
}

/* An EncUnit in memory, or in a file if `memory` is 0, and the rows to pick from it. */
struct picked {
    const u8 *memory;
    u64 offset, bytes;
    u32 rows;         /* of the EncUnit */
    u32 first, count; /* range in the array of wanted rows */
};

EXPORT i32 f3_pick_units(u32 units, const struct picked *table, i32 file, const u32 *wanted, struct target *target,
                         u8 *scratch, u64 scratch_bytes, u32 *next) {
    for (; *next < units; ++*next) {
        const struct picked *unit = &table[*next];
        struct target before = *target;
        int fault = f3_pick_unit(unit->memory, file, unit->offset, unit->bytes, unit->rows, wanted + unit->first,
                                 unit->count, target, scratch, (size_t)scratch_bytes);
        if (fault != FINE) {
            *target = before;
            return fault;
        }
    }
    return FINE;
}

/* A request for some rows of a column: its EncUnits, their wanted rows, and the target. `fault` is the result. */
struct column {
    const struct picked *table;
    const u32 *wanted;
    struct target target;
    u32 units;
    i32 fault;
};

/* Pick rows of several columns. A fault in one column does not affect the others. */
EXPORT void f3_pick_columns(u32 columns, struct column *table, i32 file, u8 *scratch, u64 scratch_bytes) {
    for (struct column *column = table; column < table + columns; column++) {
        u32 next = 0;
        column->fault = f3_pick_units(column->units, column->table, file, column->wanted, &column->target, scratch,
                                      scratch_bytes, &next);
    }
}

/* Check strings that a Wasm module returned: `count` + 1 offsets must begin at 0, ascend, and end at `bytes`. */
EXPORT i32 f3_check_strings(const u8 *offsets, u32 width, u64 count, const u8 *data, u64 bytes, u32 utf8) {
    u64 first, last;
    u32 descends = 0;
    if (width == 4) {
        const u32_at *at = (const u32_at *)offsets;
        for (u64 index = 0; index < count; index++)
            descends |= at[index] > at[index + 1];
        first = at[0], last = at[count];
    } else {
        const u64_at *at = (const u64_at *)offsets;
        for (u64 index = 0; index < count; index++)
            descends |= at[index] > at[index + 1];
        first = at[0], last = at[count];
    }
    if (descends || first != 0 || last != bytes)
        return OUTSIDE;
    return utf8 ? f3_check_utf8(data, bytes, offsets, width, count) : FINE;
}

/* f3_lz4_bytes returns the unpacked size of an LZ4 block without unpacking it, or NO_BLOCK if the block is invalid. The
 * size has to be checked, because codecs accept a block that unpacks to fewer bytes than expected, and leave the rest
 * of the buffer unwritten. */
static const u64 NO_BLOCK = ~(u64)0;

static u64 lz4_length(const u8 *in, u64 bytes, u64 *at, u64 length) {
    if (length < 15)
        return length;
    for (u8 more = 255; more == 255; length += more) {
        if (*at == bytes)
            return NO_BLOCK;
        more = in[(*at)++];
    }
    return length;
}

EXPORT u64 f3_lz4_bytes(const u8 *in, u64 bytes) {
    u64 total = 0;
    for (u64 at = 0; at < bytes;) {
        u8 token = in[at++];
        u64 literals = lz4_length(in, bytes, &at, token >> 4);
        if (literals > bytes - at)
            return NO_BLOCK;
        at += literals;
        total += literals;
        if (at == bytes)
            return total;
        if (bytes - at < 2)
            return NO_BLOCK;
        at += 2;
        u64 copied = lz4_length(in, bytes, &at, token & 15);
        if (copied == NO_BLOCK)
            return NO_BLOCK;
        total += copied + 4;
    }
    return NO_BLOCK;
}
