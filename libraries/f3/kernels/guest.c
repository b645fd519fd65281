/* The Wasm module that files carry: the guest interface of F3 around the decoding kernels. Additional exports let a
 * host decode faster. They decode several EncUnits per call, write strings as offsets and bytes, and can decode
 * selected rows. */
#include "interface.h"

/* Store the name and version of the encodings in a custom section of the module
 * (libraries/f3/encodings/versions.py). */
#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
__asm__(".section .custom_section.f3.encoding,\"\",@\n"
        ".ascii \"format-bench.core " VERSION_TEXT(ENCODING_MAJOR, ENCODING_MINOR, ENCODING_PATCH) "\"\n");

/* Memory that is kept between calls and grows when a call needs more. */
struct region {
    u8 *at;
    size_t bytes;
};

static u8 *room_in(struct region *region, size_t bytes) {
    if (!region->at || region->bytes < bytes) {
        dealloc(region->at, 0, 0);
        region->at = alloc(bytes, LINE);
        region->bytes = bytes;
    }
    return region->at;
}

static struct region scratch;
enum { FIRST_SCRATCH = 1 << 20, MOST_SCRATCH = 1 << 29 };

/* Row numbers in an EncUnit. `numbers` is 0 for all rows. */
struct wanted {
    const u32 *numbers;
    u32 count;
};

/* Decode rows of one EncUnit. Grow the scratch memory and try again while it is too small. */
static int decode_rows(const u8 *payload, size_t bytes, u32 rows, struct wanted some, struct target *target) {
    struct target before = *target;
    size_t wanted = scratch.bytes ? scratch.bytes : FIRST_SCRATCH;
    for (;;) {
        u8 *at = room_in(&scratch, wanted);
        int fault = some.numbers ? f3_pick_unit(payload, -1, 0, bytes, rows, some.numbers, some.count, target, at,
                                                scratch.bytes)
                                 : f3_decode_unit(payload, bytes, rows, target, at, scratch.bytes);
        if (fault != NO_ROOM || wanted >= MOST_SCRATCH)
            return fault;
        *target = before;
        wanted *= 2;
    }
}

static int decode_unit(const u8 *payload, size_t bytes, u32 rows, struct target *target) {
    struct wanted all = {0, 0};
    return decode_rows(payload, bytes, rows, all, target);
}

/* The kernels call this only for payloads in files. In a module, all payloads are in memory. */
int f3_read_file(i32 file, u64 offset, u64 bytes, u8 *out) {
    (void)file, (void)offset, (void)bytes, (void)out;
    return 0;
}

/* ---- the interface of F3 ---------------------------------------------------------------------------------------- */

static const char *const TEXTS[] = {
    "fine",
    "the payload is cut short",
    "the payload has a node that there is none of",
    "an index leads outside",
    "too many nodes inside each other",
    "more work than its rows call for",
    "the payload is of other rows or another type than asked for",
    "a string is not UTF-8",
    "too little memory",
};

/* Write Arrow's string views. A view has the length and, if it is at most 12, the text. Otherwise it has the first 4
 * bytes of the text, the number of the data buffer (always 0 here), and the offset in this buffer. */
static void make_views(const u32 *offsets, const u8 *data, u32 rows, u8 *views) {
    memset(views, 0, (size_t)rows * 16);
    for (u32 row = 0; row < rows; row++, views += 16) {
        u32 start = offsets[row], length = offsets[row + 1] - start;
        *(u32 *)views = length;
        if (length <= 12) {
            for (u32 byte = 0; byte < length; byte++)
                views[4 + byte] = data[start + byte];
            continue;
        }
        *(u32_at *)(views + 4) = *(const u32_at *)(data + start);
        *(u32 *)(views + 12) = start;
    }
}

EXPORT("decode_general_ffi") i32 decode_general(const u8 *payload, u32 bytes, struct result *result) {
    struct header header;
    int fault = f3_header(payload, bytes, &header);
    if (fault != FINE)
        return failed(result, TEXTS[fault]);
    u32 rows = header.rows;
    int is_text = header.kind == KIND_TEXT;
    u64 values_bytes = is_text                      ? header.data_bytes
                       : header.kind == KIND_BITS ? ((u64)rows + 7) / 8
                                                  : (u64)rows * header.width;
    u64 most = (u64)1 << 30;
    if (values_bytes > most || (is_text && (u64)rows * 16 > most))
        return failed(result, TEXTS[TOO_MUCH]);
    u32 bitmap_bytes = header.has_nulls ? (rows + 7) / 8 : 0;
    struct target target = {
        .values = alloc((size_t)values_bytes, LINE),
        .values_bytes = values_bytes,
        .offsets = is_text ? alloc(((size_t)rows + 1) * 4, LINE) : 0,
        .validity = header.has_nulls ? alloc(bitmap_bytes, LINE) : 0,
        .kind = header.kind,
        .width = is_text ? 4 : header.width,
    };
    if (is_text)
        *(u32 *)target.offsets = 0;
    fault = decode_unit(payload, bytes, rows, &target);
    if (fault != FINE) {
        dealloc(target.values, 0, 0);
        dealloc(target.offsets, 0, 0);
        dealloc(target.validity, 0, 0);
        return failed(result, TEXTS[fault]);
    }
    if (!is_text)
        return answer(result, target.validity, bitmap_bytes, target.values, (u32)values_bytes, 0, 0);
    u8 *views = alloc((size_t)rows * 16, LINE);
    make_views((const u32 *)target.offsets, target.values, rows, views);
    dealloc(target.offsets, 0, 0);
    return answer(result, target.validity, bitmap_bytes, views, rows * 16, target.values, (u32)values_bytes);
}

/* ---- faster exports --------------------------------------------------------------------------------------------- */

struct unit {
    u32 payload, bytes, rows;
};

/* The host's request (first line of members) and the answer (second line). Addresses are in the guest's memory. A
 * column may need several calls, which are made in order. `rows` and `data_bytes` are the totals of all these calls;
 * `first_row` and `first_byte` are the totals of the previous calls. After the last call, the host may move the pages
 * of the buffers out of the guest and leave empty pages. Buffers therefore begin at a page boundary and share no page.
 * `page` is the size of a page, and `page_offset` is the offset in a page at which the guest's memory begins. */
struct request {
    u32 units, table, kind, width, nullable, rows, data_bytes, page, page_offset, first_row, first_byte;
    u32 values, offsets, validity, failed_unit;
};

static struct region input, values, offsets, validity;

/* Return memory that begins at a page boundary and shares no page. The header of the block from `alloc` is before
 * it. */
static u8 *pages_in(struct region *region, u64 bytes, const struct request *request) {
    u32 page = request->page, offset = request->page_offset;
    if (bytes > (u64)1 << 31)
        __builtin_trap();
    size_t at = (size_t)room_in(region, (size_t)bytes + 3 * (size_t)page) + page;
    return (u8 *)(((at + offset) & ~(size_t)(page - 1)) - offset);
}

EXPORT("f3_room") u8 *f3_room(u32 bytes) { return room_in(&input, bytes); }

EXPORT("f3_decode_part") i32 f3_decode_part(struct request *request) {
    u32 rows = request->rows;
    u64 values_bytes = request->kind == KIND_TEXT   ? request->data_bytes
                       : request->kind == KIND_BITS ? ((u64)rows + 7) / 8
                                                    : (u64)rows * request->width;
    struct target target = {
        .values = pages_in(&values, values_bytes, request),
        .values_bytes = values_bytes,
        .kind = request->kind,
        .width = request->width,
        .first_row = request->first_row,
        .first_byte = request->first_byte,
    };
    if (request->kind == KIND_TEXT) {
        target.offsets = pages_in(&offsets, ((u64)rows + 1) * request->width, request);
        memset(target.offsets, 0, request->width);
    }
    if (request->nullable)
        target.validity = pages_in(&validity, ((u64)rows + 7) / 8, request);
    request->values = (u32)target.values;
    request->offsets = (u32)target.offsets;
    request->validity = (u32)target.validity;
    const struct unit *table = (const struct unit *)request->table;
    for (u32 unit = 0; unit < request->units; unit++) {
        int fault = target.first_row + table[unit].rows > rows
                        ? MISMATCH
                        : decode_unit((const u8 *)table[unit].payload, table[unit].bytes, table[unit].rows, &target);
        if (fault != FINE) {
            request->failed_unit = unit;
            return fault;
        }
    }
    return FINE;
}

struct few {
    u32 payload, bytes, rows;
    u32 first, count; /* range in the array of wanted rows */
};

/* The host's request for some rows of EncUnits (first line of members) and the answer (second line). `room` is the
 * capacity in bytes for all strings. If `text_bytes` is larger, the strings are incomplete, and the host repeats the
 * request with more room. */
struct picking {
    u32 units, table, kind, width, rows, wanted, room;
    u32 values, offsets, validity, text_bytes, failed_unit;
};

EXPORT("f3_pick_part") i32 f3_pick_part(struct picking *request) {
    u32 rows = request->rows, bitmap_bytes = (rows + 7) / 8, is_text = request->kind == KIND_TEXT;
    u64 most = (u64)1 << 30, offsets_bytes = is_text ? ((u64)rows + 1) * request->width : 0;
    u64 values_bytes = is_text ? request->room : request->kind == KIND_BITS ? bitmap_bytes : (u64)rows * request->width;
    if (values_bytes > most || offsets_bytes > most)
        return TOO_MUCH;
    struct target target = {
        .values = room_in(&values, (size_t)values_bytes),
        .values_bytes = values_bytes,
        .offsets = is_text ? room_in(&offsets, (size_t)offsets_bytes) : 0,
        .validity = room_in(&validity, bitmap_bytes),
        .kind = request->kind,
        .width = request->width,
    };
    memset(target.validity, 0, bitmap_bytes);
    memset(is_text ? target.offsets : target.values, 0, is_text ? request->width : (size_t)values_bytes);
    const struct few *table = (const struct few *)request->table;
    for (u32 unit = 0; unit < request->units; unit++) {
        const struct few *each = &table[unit];
        struct wanted some = {(const u32 *)request->wanted + each->first, each->count};
        int fault = target.first_row + each->count > rows
                        ? MISMATCH
                        : decode_rows((const u8 *)each->payload, each->bytes, each->rows, some, &target);
        if (fault != FINE) {
            request->failed_unit = unit;
            return fault;
        }
    }
    if (target.first_byte > most)
        return TOO_MUCH;
    request->values = (u32)target.values;
    request->offsets = (u32)target.offsets;
    request->validity = (u32)target.validity;
    request->text_bytes = (u32)target.first_byte;
    return FINE;
}
