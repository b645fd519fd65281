/* Decode some rows of an EncUnit without the others (`decode_ranges` in the paper, section 6.1). Most nodes give direct
 * access to any row; run nodes do after their lengths are decoded, and patched nodes after their positions are. Delta
 * and symbol nodes are decoded completely, because each value depends on earlier ones. The payload is in memory or in a
 * file, of which only the necessary bytes are read. It is untrusted, as in decode.c. */
#include "decode.h"

enum { FRONT_BYTES = 256 };

/* A payload. If it is in a file, `front` has its first bytes, so that most headers of nodes need no further read. */
struct source {
    const u8 *memory; /* 0 if the payload is in the file */
    i32 file;
    u64 offset, bytes;
    u64 front_bytes;
    u8 front[FRONT_BYTES];
};

/* A range of the payload. */
struct part {
    u64 at, end;
};

struct item {
    u32 tag, a;
    u64 start; /* of the node's header */
    struct part body;
};

static int fetch(const struct source *source, struct room *room, u64 at, u64 bytes, const u8 **found) {
    if (at > source->bytes || bytes > source->bytes - at)
        return CUT;
    if (source->memory) {
        *found = source->memory + at;
        return FINE;
    }
    if (at + bytes <= source->front_bytes) {
        *found = source->front + at;
        return FINE;
    }
    u8 *taken;
    TRY(f3_take(room, bytes, &taken));
    *found = taken;
    return f3_read_file(source->file, source->offset + at, bytes, taken) ? FINE : UNREADABLE;
}

static int open_item(const struct source *source, struct room *room, struct part *in, struct item *item) {
    const u8 *header;
    if (in->end - in->at < NODE_BYTES)
        return CUT;
    TRY(fetch(source, room, in->at, NODE_BYTES, &header));
    item->tag = header[0];
    item->a = header[1];
    item->start = in->at;
    item->body.at = in->at + NODE_BYTES;
    u32 bytes = load32(header + 4);
    if (bytes > in->end - item->body.at)
        return CUT;
    in->at = item->body.end = item->body.at + bytes;
    return FINE;
}

static int read_number(const struct source *source, struct room *room, struct part *body, u32 *number) {
    const u8 *at;
    if (body->end - body->at < 4)
        return CUT;
    TRY(fetch(source, room, body->at, 4, &at));
    *number = load32(at);
    body->at += 4;
    return FINE;
}

/* The bytes of nodes that are decoded completely, and of picked strings, also count as work: 16 bytes count as one
 * value. */
enum { BYTES_A_VALUE = 16 };

/* Decode all values of a node into scratch memory. */
static int whole(const struct source *source, struct room *room, const struct item *item, u32 width, u32 count,
                 u8 **values, u32 depth) {
    const u8 *bytes;
    TRY(f3_spend(room, (item->body.end - item->start) / BYTES_A_VALUE));
    TRY(fetch(source, room, item->start, item->body.end - item->start, &bytes));
    TRY(f3_take(room, (u64)count * width, values));
    struct span in = {bytes, bytes + (item->body.end - item->start)};
    return f3_decode_values(room, &in, width, count, *values, depth);
}

static int pick_packed(const struct source *source, struct room *room, const struct item *item, u32 width, u32 count,
                       const u32 *wanted, u32 rows, u8 *out) {
    u32 bits = item->a;
    u64 body_bytes = item->body.end - item->body.at;
    if (width > 8 || bits > 8 * width)
        return MALFORMED;
    if (body_bytes < 8)
        return CUT;
    const u8 *at;
    TRY(fetch(source, room, item->body.at, 8, &at));
    u64 reference = load64(at), first = item->body.at + 8;
    u32 blocks = count / BLOCK;
    u64 block_bytes = (u64)blocks * bits * (BLOCK / 8), rest_bytes = ((u64)(count % BLOCK) * bits + 7) / 8;
    if (body_bytes - 8 < block_bytes + rest_bytes)
        return CUT;
    u32 word_bits = bits <= 32 ? 32 : 64, lanes = BLOCK / word_bits;
    u64 mask = bits ? ~(u64)0 >> (64 - bits) : 0;
    size_t used = room->used;
    for (u32 index = 0; index < rows; index++, room->used = used) {
        u32 row = wanted[index];
        u64 value = 0;
        if (!bits) {
            f3_store_number(out, width, index, reference);
            continue;
        }
        if (row / BLOCK < blocks) {
            u32 place = row % BLOCK, start = place / lanes * bits, shift = start % word_bits;
            u32 spread = shift + bits > word_bits ? BLOCK / 8 : 0; /* the next word of the lane has the other bits */
            u64 word = first + (u64)(row / BLOCK) * bits * (BLOCK / 8) +
                       (u64)(start / word_bits * lanes + place % lanes) * (word_bits / 8);
            TRY(fetch(source, room, word, spread + word_bits / 8, &at));
            u64 low = word_bits == 32 ? load32(at) : load64(at);
            value = low >> shift;
            if (spread)
                value |= (word_bits == 32 ? load32(at + spread) : load64(at + spread)) << (word_bits - shift);
        } else {
            u64 position = (u64)(row % BLOCK) * bits, byte = position / 8;
            u32 shift = (u32)(position % 8), needed = (shift + bits + 7) / 8;
            TRY(fetch(source, room, first + block_bytes + byte, needed, &at));
            for (u32 next = 0; next < needed && next < 8; next++)
                value |= (u64)at[next] << (8 * next);
            value >>= shift;
            if (needed > 8)
                value |= (u64)at[8] << (64 - shift);
        }
        f3_store_number(out, width, index, (value & mask) + reference);
    }
    return FINE;
}

/* Unpack `length` bytes of strings from `start` on, block by block. The caller checked the body's size. */
static int unpack_text(const struct source *source, struct room *room, const struct item *item, u64 bytes, u64 start,
                       u64 length, u8 *out) {
    u32 bits = item->a, mask = (1u << bits) - 1;
    u64 block_bytes = (u64)bits * (BLOCK / 8), blocks = bytes / BLOCK;
    const u8 *at;
    TRY(fetch(source, room, item->body.at, 1, &at));
    u32 reference = *at;
    size_t used = room->used;
    for (u64 end = start + length; start < end; room->used = used) {
        u64 block = start / BLOCK, block_end = (block + 1) * BLOCK < end ? (block + 1) * BLOCK : end;
        u64 stored = block < blocks ? block_bytes : (bytes % BLOCK * bits + 7) / 8;
        TRY(fetch(source, room, item->body.at + 8 + block * block_bytes, stored, &at));
        for (; start < block_end; start++) {
            u32 place = start % BLOCK, value;
            if (block < blocks) {
                u32 first = place / 32 * bits, shift = first % 32;
                const u8 *word = at + (first / 32 * 32 + place % 32) * 4;
                value = load32(word) >> shift;
                if (shift + bits > 32)
                    value |= load32(word + BLOCK / 8) << (32 - shift);
            } else {
                u32 position = place * bits, byte = position / 8;
                value = (u32)at[byte] >> (position % 8);
                if (position % 8 + bits > 8)
                    value |= (u32)at[byte + 1] << (8 - position % 8);
            }
            *out++ = (u8)((value & mask) + reference);
        }
    }
    return FINE;
}

static int pick_values(const struct source *source, struct room *room, struct part *in, u32 width, u32 count,
                       const u32 *wanted, u32 rows, u8 *out, u32 depth);

static int pick_codes(const struct source *source, struct room *room, struct part *body, u32 width, u32 count,
                      u32 entries, const u32 *wanted, u32 rows, u32 **codes, u32 depth) {
    u8 *stored, *taken;
    if (width != 1 && width != 2 && width != 4)
        return MALFORMED;
    if (entries > count || (count && !entries))
        return MALFORMED;
    TRY(f3_take(room, (u64)rows * width, &stored));
    TRY(f3_take(room, (u64)rows * 4, &taken));
    TRY(pick_values(source, room, body, width, count, wanted, rows, stored, depth));
    *codes = (u32 *)taken;
    for (u32 index = 0; index < rows; index++) {
        u32 code = width == 1 ? stored[index] : width == 2 ? ((u16_at *)stored)[index] : ((u32_at *)stored)[index];
        if (code >= entries)
            return OUTSIDE;
        (*codes)[index] = code;
    }
    return FINE;
}

/* Return the index of the first of ascending numbers that is greater than `wanted`; `count` if there is none. */
static u32 after(const u32 *ascending, u32 count, u32 wanted) {
    u32 low = 0;
    while (count) {
        u32 half = count / 2;
        if (ascending[low + half] <= wanted) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static int pick_runs(const struct source *source, struct room *room, struct item *item, u32 width, u32 count,
                     const u32 *wanted, u32 rows, u8 *out, u32 depth) {
    u32 runs;
    struct item lengths;
    u8 *ends, *places;
    TRY(read_number(source, room, &item->body, &runs));
    if (runs > count)
        return MALFORMED;
    TRY(open_item(source, room, &item->body, &lengths));
    TRY(whole(source, room, &lengths, 4, runs, &ends, depth));
    if (f3_add_up(ends, runs, 0) != count)
        return MALFORMED;
    TRY(f3_take(room, (u64)rows * 4, &places));
    for (u32 index = 0; index < rows; index++)
        ((u32 *)places)[index] = after((const u32 *)ends, runs, wanted[index]);
    return pick_values(source, room, &item->body, width, runs, (const u32 *)places, rows, out, depth);
}

static int pick_patched(const struct source *source, struct room *room, struct item *item, u32 width, u32 count,
                        const u32 *wanted, u32 rows, u8 *out, u32 depth) {
    u32 patches;
    struct item node;
    u8 *positions;
    TRY(read_number(source, room, &item->body, &patches));
    if (patches > count)
        return MALFORMED;
    TRY(pick_values(source, room, &item->body, width, count, wanted, rows, out, depth));
    TRY(open_item(source, room, &item->body, &node));
    TRY(whole(source, room, &node, 4, patches, &positions, depth));
    const u32 *at = (const u32 *)positions;
    for (u32 patch = 0; patch < patches; patch++)
        if (at[patch] >= count || (patch && at[patch] <= at[patch - 1]))
            return OUTSIDE; /* decode.c accepts any order, but encoders write ascending positions */
    u8 *places, *numbers, *values;
    u32 hits = 0;
    TRY(f3_take(room, (u64)rows * 4, &places));
    TRY(f3_take(room, (u64)rows * 4, &numbers));
    for (u32 index = 0; index < rows; index++) {
        u32 patch = after(at, patches, wanted[index]);
        if (!patch || at[patch - 1] != wanted[index])
            continue;
        ((u32 *)places)[hits] = index;
        ((u32 *)numbers)[hits++] = patch - 1;
    }
    if (!hits)
        return FINE;
    TRY(f3_take(room, (u64)hits * width, &values));
    TRY(pick_values(source, room, &item->body, width, patches, (const u32 *)numbers, hits, values, depth));
    for (u32 hit = 0; hit < hits; hit++)
        memcpy(out + (size_t)((u32 *)places)[hit] * width, values + (size_t)hit * width, width);
    return FINE;
}

static int pick_values(const struct source *source, struct room *room, struct part *in, u32 width, u32 count,
                       const u32 *wanted, u32 rows, u8 *out, u32 depth) {
    struct item item;
    const u8 *at;
    TRY(open_item(source, room, in, &item));
    TRY(f3_spend(room, rows));
    if (depth >= MOST_DEPTH)
        return TOO_DEEP;
    size_t used = room->used;
    u64 bytes = item.body.end - item.body.at;
    u32 entries, *codes;
    u8 *values;
    int fault = FINE;
    switch (item.tag) {
    case TAG_PLAIN:
        if (bytes < (u64)count * width)
            return CUT;
        for (u32 index = 0; index < rows; index++, room->used = used) {
            TRY(fetch(source, room, item.body.at + (u64)wanted[index] * width, width, &at));
            memcpy(out + (size_t)index * width, at, width);
        }
        return FINE;
    case TAG_CONSTANT:
        if (bytes < width)
            return CUT;
        TRY(fetch(source, room, item.body.at, width, &at));
        f3_fill(out, width, rows, at);
        break;
    case TAG_PACKED: fault = pick_packed(source, room, &item, width, count, wanted, rows, out); break;
    case TAG_RUNS: fault = pick_runs(source, room, &item, width, count, wanted, rows, out, depth + 1); break;
    case TAG_PATCHED: fault = pick_patched(source, room, &item, width, count, wanted, rows, out, depth + 1); break;
    case TAG_DICTIONARY:
        TRY(read_number(source, room, &item.body, &entries));
        TRY(pick_codes(source, room, &item.body, item.a, count, entries, wanted, rows, &codes, depth + 1));
        fault = pick_values(source, room, &item.body, width, entries, codes, rows, out, depth + 1);
        break;
    case TAG_DECIMAL:
        if (item.a > MOST_EXPONENT || (width != 4 && width != 8))
            return MALFORMED;
        TRY(pick_values(source, room, &item.body, width, count, wanted, rows, out, depth + 1));
        f3_to_decimals(item.a, width, rows, out);
        break;
    case TAG_SPLIT:
        if ((width != 4 && width != 8) || item.a == 0 || item.a >= 8 * width)
            return MALFORMED;
        TRY(pick_values(source, room, &item.body, width, count, wanted, rows, out, depth + 1));
        TRY(f3_take(room, (u64)rows * 2, &values));
        TRY(pick_values(source, room, &item.body, 2, count, wanted, rows, values, depth + 1));
        f3_join(item.a, width, rows, values, out);
        break;
    case TAG_WIDENED:
        if ((item.a != 1 && item.a != 2 && item.a != 4 && item.a != 8) || item.a >= width)
            return MALFORMED;
        TRY(f3_take(room, (u64)rows * item.a, &values));
        TRY(pick_values(source, room, &item.body, item.a, count, wanted, rows, values, depth + 1));
        f3_widen(values, item.a, width, rows, out);
        break;
    default: /* delta and symbols: each value depends on earlier ones */
        TRY(whole(source, room, &item, width, count, &values, depth));
        for (u32 index = 0; index < rows; index++)
            memcpy(out + (size_t)index * width, values + (size_t)wanted[index] * width, width);
    }
    room->used = used;
    return fault;
}

/* Copy the bits of the wanted rows to a zeroed bitmap, from bit `first` on. Add the number of set bits to `*ones`. */
static int pick_bits(const struct source *source, struct room *room, struct part *in, u32 count, const u32 *wanted,
                     u32 rows, u8 *out, u64 first, u64 *ones) {
    struct item item;
    const u8 *at;
    u8 *bits = 0;
    TRY(open_item(source, room, in, &item));
    TRY(f3_spend(room, rows));
    size_t used = room->used;
    u64 bytes = ((u64)count + 7) / 8;
    if (item.tag == TAG_PLAIN) {
        if (item.body.end - item.body.at < bytes)
            return CUT;
    } else if (item.tag != TAG_CONSTANT) {
        TRY(fetch(source, room, item.start, item.body.end - item.start, &at));
        TRY(f3_take(room, bytes, &bits));
        struct span whole = {at, at + (item.body.end - item.start)};
        TRY(f3_decode_bits(room, &whole, count, bits));
    }
    size_t kept = room->used;
    for (u32 index = 0; index < rows; index++, room->used = kept) {
        u32 row = wanted[index], bit = item.a != 0;
        if (item.tag == TAG_PLAIN) {
            TRY(fetch(source, room, item.body.at + row / 8, 1, &at));
            bit = *at >> (row % 8) & 1;
        } else if (bits) {
            bit = bits[row / 8] >> (row % 8) & 1;
        }
        out[(first + index) / 8] |= (u8)(bit << ((first + index) % 8));
        *ones += bit;
    }
    room->used = used;
    return FINE;
}

/* The target of picked strings. Strings that do not fit are counted but not written. */
struct texts {
    u8 *data, *offsets;
    u64 room_bytes, bytes;
    u64 row;
    u32 width, utf8;
};

static int put_text(struct texts *out, struct room *room, const u8 *text, u64 length) {
    TRY(f3_spend(room, length / BYTES_A_VALUE));
    if (out->bytes + length > UINT32_MAX)
        return TOO_MUCH;
    if (out->utf8 && !f3_is_utf8(text, length))
        return NOT_UTF8;
    if (out->bytes + length <= out->room_bytes)
        memcpy(out->data + out->bytes, text, (size_t)length);
    out->bytes += length;
    out->row++;
    if (out->width == 4)
        ((u32 *)out->offsets)[out->row] = (u32)out->bytes;
    else
        ((u64 *)out->offsets)[out->row] = out->bytes;
    return FINE;
}

/* Pick some of `count` strings, which have `bytes` bytes in total. */
static int pick_strings(const struct source *source, struct room *room, struct part *in, u32 count, u64 bytes,
                        const u32 *wanted, u32 rows, struct texts *out, u32 depth) {
    struct item item, lengths, data;
    const u8 *at;
    u8 *ends = 0, *text = 0;
    TRY(open_item(source, room, in, &item));
    TRY(f3_spend(room, rows));
    if (depth >= MOST_DEPTH)
        return TOO_DEEP;
    size_t used = room->used;
    if (item.tag == TAG_CONSTANT) {
        u64 length = item.body.end - item.body.at;
        if (length * count != bytes)
            return MALFORMED;
        TRY(fetch(source, room, item.body.at, length, &at));
        for (u32 index = 0; index < rows; index++)
            TRY(put_text(out, room, at, length));
        room->used = used;
        return FINE;
    }
    if (item.tag == TAG_DICTIONARY) {
        u32 entries, entry_bytes, *codes;
        TRY(read_number(source, room, &item.body, &entries));
        TRY(read_number(source, room, &item.body, &entry_bytes));
        if (entry_bytes > bytes)
            return MALFORMED;
        TRY(pick_codes(source, room, &item.body, item.a, count, entries, wanted, rows, &codes, depth + 1));
        TRY(pick_strings(source, room, &item.body, entries, entry_bytes, codes, rows, out, depth + 1));
        room->used = used;
        return FINE;
    }
    if (item.tag != TAG_PLAIN || bytes > UINT32_MAX)
        return MALFORMED;
    u32 each = 0;
    TRY(open_item(source, room, &item.body, &lengths));
    if (lengths.tag == TAG_CONSTANT) {
        if (lengths.body.end - lengths.body.at < 4)
            return CUT;
        TRY(fetch(source, room, lengths.body.at, 4, &at));
        each = load32(at);
        if ((u64)each * count != bytes)
            return MALFORMED;
    } else {
        TRY(whole(source, room, &lengths, 4, count, &ends, depth + 1));
        if (f3_add_up(ends, count, 0) != bytes)
            return MALFORMED;
    }
    TRY(open_item(source, room, &item.body, &data));
    int is_packed = data.tag == TAG_PACKED && data.a > 0 && data.a <= 8;
    if (is_packed) {
        u64 packed = bytes / BLOCK * data.a * (BLOCK / 8) + (bytes % BLOCK * data.a + 7) / 8;
        if (data.body.end - data.body.at < 8 + packed)
            return CUT;
    } else if (data.tag != TAG_PLAIN) {
        TRY(f3_spend(room, bytes));
        TRY(whole(source, room, &data, 1, (u32)bytes, &text, depth + 1));
    } else if (data.body.end - data.body.at < bytes) {
        return CUT;
    }
    size_t kept = room->used;
    for (u32 index = 0; index < rows; index++, room->used = kept) {
        u32 row = wanted[index];
        u64 start = !ends ? (u64)row * each : row ? ((u32 *)ends)[row - 1] : 0;
        u64 length = ends ? ((u32 *)ends)[row] - start : each;
        if (text) {
            at = text + start;
        } else if (is_packed) {
            u8 *unpacked;
            TRY(f3_take(room, length, &unpacked));
            TRY(unpack_text(source, room, &data, bytes, start, length, unpacked));
            at = unpacked;
        } else
            TRY(fetch(source, room, data.body.at + start, length, &at));
        TRY(put_text(out, room, at, length));
    }
    room->used = used;
    return FINE;
}

/* Pick rows of an EncUnit and append them to the target, whose bitmaps are zeroed. The target's `values_bytes` is the
 * capacity for strings. Its `first_byte` becomes the total bytes of all strings, which may exceed this capacity. */
int f3_pick_unit(const u8 *memory, i32 file, u64 offset, u64 bytes, u32 count, const u32 *wanted, u32 rows,
                 struct target *target, u8 *scratch, size_t scratch_bytes) {
    struct source source = {memory, file, offset, bytes, 0, {0}};
    if (!memory) {
        u64 front = bytes < FRONT_BYTES ? bytes : FRONT_BYTES;
        if (!f3_read_file(file, offset, front, source.front))
            return UNREADABLE;
        source.front_bytes = front;
    }
    if (bytes < HEADER_BYTES)
        return CUT;
    struct header header;
    TRY(f3_header(memory ? memory : source.front, (size_t)bytes, &header));
    if (header.rows != count || header.kind != target->kind || (header.kind == KIND_FIXED && header.width != target->width))
        return MISMATCH;
    for (u32 index = 0; index < rows; index++)
        if (wanted[index] >= count)
            return OUTSIDE;
    struct room room = {scratch, 0, scratch_bytes, 24 * (u64)count + 65536 + 64 * (u64)rows};
    struct part in = {HEADER_BYTES, bytes};
    u64 ones = rows;
    if (header.has_nulls) {
        ones = 0;
        TRY(pick_bits(&source, &room, &in, count, wanted, rows, target->validity, target->first_row, &ones));
    } else {
        for (u64 row = target->first_row; row < target->first_row + rows; row++)
            target->validity[row / 8] |= (u8)(1u << (row % 8));
    }
    if (header.kind == KIND_FIXED) {
        u8 *out = target->values + target->first_row * target->width;
        TRY(pick_values(&source, &room, &in, target->width, count, wanted, rows, out, 0));
    } else if (header.kind == KIND_BITS) {
        u64 unused = 0;
        TRY(pick_bits(&source, &room, &in, count, wanted, rows, target->values, target->first_row, &unused));
    } else {
        struct texts texts = {target->values,    target->offsets,   target->values_bytes, target->first_byte,
                              target->first_row, target->width,     target->utf8};
        room.work += 8 * header.data_bytes;
        TRY(pick_strings(&source, &room, &in, count, header.data_bytes, wanted, rows, &texts, 0));
        target->first_byte = texts.bytes;
    }
    target->nulls += rows - ones;
    target->first_row += rows;
    return FINE;
}
