/* The decoding kernels: decode the payload of one EncUnit into Arrow buffers. They are part of the native library and
 * of the Wasm module that files carry. Payloads are untrusted: every count and index is checked before use, writes stay
 * inside the target and the scratch memory, reads stay inside the payload, and the work is limited by the rows and the
 * bytes of strings. The code allocates no memory (the caller supplies scratch memory) and needs only memcpy and
 * memset. */
#include "decode.h"

#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif

struct node {
    u32 tag, a;
    struct span body;
};

static size_t left(const struct span *span) { return (size_t)(span->end - span->at); }

int f3_take(struct room *room, u64 bytes, u8 **taken) {
    bytes = (bytes + 127) & ~(u64)63; /* a multiple of 64, with 64 bytes after the end that may be read */
    if (bytes > room->bytes - room->used)
        return NO_ROOM;
    *taken = room->base + room->used;
    room->used += (size_t)bytes;
    return FINE;
}

int f3_spend(struct room *room, u64 values) {
    values += 16;
    if (values > room->work)
        return TOO_MUCH;
    room->work -= values;
    return FINE;
}

static int open_node(struct span *in, struct node *node) {
    if (left(in) < NODE_BYTES)
        return CUT;
    node->tag = in->at[0];
    node->a = in->at[1];
    u32 bytes = load32(in->at + 4);
    in->at += NODE_BYTES;
    if (bytes > left(in))
        return CUT;
    node->body.at = in->at;
    node->body.end = in->at + bytes;
    in->at += bytes;
    return FINE;
}

static int read_u32(struct span *body, u32 *value) {
    if (left(body) < 4)
        return CUT;
    *value = load32(body->at);
    body->at += 4;
    return FINE;
}

/* Run `body` for `count` rows: in steps of 16 rows, then one by one. `body` uses `row` as an offset from the pointers,
 * `move` advances the pointers by `rows`, and `how` is a pragma for the inner loop. Steps make Wasm faster: every
 * iteration of a loop checks for a timeout, and constant offsets from a pointer cost nothing. */
enum { STEP = 16 };
#define STEPS(count, how, move, body)                            \
    do {                                                         \
        u32 left_ = (count);                                     \
        for (; left_ >= STEP; left_ -= STEP) {                   \
            const u32 rows = STEP;                               \
            how for (u32 row = 0; row < rows; row++) {           \
                body;                                            \
            }                                                    \
            move;                                                \
        }                                                        \
        for (; left_; left_--) {                                 \
            const u32 rows = 1, row = 0;                         \
            body;                                                \
            move;                                                \
        }                                                        \
    } while (0)

/* ---- bit packing ------------------------------------------------------------------------------------------------ */

/* A block of 1,024 values is packed into LANES interleaved lanes. A lane packs every LANES-th value, from value `lane`
 * on, into consecutive words. The first words of all lanes are stored first, then all second words, etc. The inner loop
 * runs over lanes and uses the same shift for all of them. */
#define UNPACK(name, out_type, word_type, word_bits)                                                                 \
    static void name(const u8 *restrict in, u32 bits, out_type reference, u8 *restrict out, size_t blocks) {         \
        enum { LANES = BLOCK / word_bits };                                                                           \
        const word_type mask = (word_type)(~(word_type)0 >> (word_bits - bits));                                      \
        for (size_t block = 0; block < blocks; block++) {                                                             \
            for (u32 row = 0; row < word_bits; row++) {                                                               \
                u32 start = row * bits, word = start / word_bits, shift = start % word_bits;                          \
                const word_type##_at *low = (const word_type##_at *)in + word * LANES;                                \
                out_type##_at *to = (out_type##_at *)out + row * LANES;                                               \
                if (shift + bits <= word_bits) {                                                                      \
                    WHOLLY_UNROLLED                                                                                   \
                    for (u32 lane = 0; lane < LANES; lane++)                                                          \
                        to[lane] = (out_type)((out_type)((low[lane] >> shift) & mask) + reference);                   \
                } else {                                                                                              \
                    const word_type##_at *high = low + LANES;                                                         \
                    u32 back = word_bits - shift;                                                                     \
                    WHOLLY_UNROLLED                                                                                   \
                    for (u32 lane = 0; lane < LANES; lane++)                                                          \
                        to[lane] = (out_type)((out_type)(((low[lane] >> shift) | (high[lane] << back)) & mask) +      \
                                              reference);                                                             \
                }                                                                                                     \
            }                                                                                                         \
            in += (size_t)bits * (BLOCK / 8);                                                                         \
            out += BLOCK * sizeof(out_type);                                                                          \
        }                                                                                                             \
    }

UNPACK(unpack_32, u32, u32, 32)
UNPACK(unpack_64, u64, u64, 64)

typedef u64 two __attribute__((vector_size(16), aligned(1), may_alias));
typedef u32 four __attribute__((vector_size(16), aligned(4), may_alias));
typedef u32 four_at __attribute__((vector_size(16), aligned(1), may_alias));

/* Unpack a block of up to 32 bits per value. The number of bits is known at compile time, so shifts are constants and
 * each word is loaded once. */
static inline __attribute__((always_inline)) void unpack_known(const u8 *restrict in, const u32 bits,
                                                               u32 *restrict out) {
    const u32 mask = 0xFFFFFFFFu >> (32 - bits);
    for (u32 lane = 0; lane < 32; lane += 4, in += 16, out += 4) {
        four word = *(const four_at *)in;
        WHOLLY_UNROLLED_ROWS
        for (u32 row = 0; row < 32; row++) {
            const u32 shift = row * bits % 32;
            four value = word >> shift;
            if (shift + bits >= 32 && row < 31) {
                word = *(const four_at *)(in + (row * bits / 32 + 1) * 128);
                if (shift + bits > 32)
                    value |= word << (32 - shift);
            }
            *(four *)(out + row * 32) = value & mask;
        }
    }
}

#define KNOWN(bits) \
    case bits: unpack_known(in, bits, out); return;
#define FOUR_KNOWN(first) KNOWN(first) KNOWN(first + 1) KNOWN(first + 2) KNOWN(first + 3)

static void unpack_block(const u8 *restrict in, u32 bits, u32 *restrict out) {
    switch (bits) {
        FOUR_KNOWN(1) FOUR_KNOWN(5) FOUR_KNOWN(9) FOUR_KNOWN(13) FOUR_KNOWN(17) FOUR_KNOWN(21)
    default: unpack_32(in, bits, 0, (u8 *)out, 1);
    }
}

/* Narrow a block of numbers that fit in the narrower type, and add the reference. Wasm's saturating instructions
 * convert whole vectors. The compiler does not use them on its own, because it cannot know that the numbers fit. */
static void narrow_to_16(const u32 *block, u16 reference, u8 *out) {
#ifdef __wasm_simd128__
    v128_t add = wasm_i16x8_splat((int16_t)reference);
    for (u32 step = 0; step < BLOCK; step += 64, block += 64, out += 128) {
        WHOLLY_UNROLLED_ROWS
        for (u32 index = 0; index < 64; index += 8) {
            v128_t low = wasm_v128_load(block + index), high = wasm_v128_load(block + index + 4);
            wasm_v128_store(out + 2 * index, wasm_i16x8_add(wasm_u16x8_narrow_i32x4(low, high), add));
        }
    }
#else
    for (u32 index = 0; index < BLOCK; index++)
        ((u16_at *)out)[index] = (u16)(block[index] + reference);
#endif
}

static void narrow_to_8(const u32 *block, u8 reference, u8 *out) {
#ifdef __wasm_simd128__
    v128_t add = wasm_i8x16_splat((int8_t)reference);
    for (u32 step = 0; step < BLOCK; step += 128, block += 128, out += 128) {
        WHOLLY_UNROLLED_ROWS
        for (u32 index = 0; index < 128; index += 16) {
            v128_t first = wasm_v128_load(block + index), second = wasm_v128_load(block + index + 4);
            v128_t third = wasm_v128_load(block + index + 8), fourth = wasm_v128_load(block + index + 12);
            v128_t low = wasm_u16x8_narrow_i32x4(first, second), high = wasm_u16x8_narrow_i32x4(third, fourth);
            wasm_v128_store(out + index, wasm_i8x16_add(wasm_u8x16_narrow_i16x8(low, high), add));
        }
    }
#else
    for (u32 index = 0; index < BLOCK; index++)
        out[index] = (u8)(block[index] + reference);
#endif
}

static void widen_to_32(const u32 *restrict block, u32 reference, u8 *restrict out) {
    u32_at *to = (u32_at *)out;
    for (u32 step = 0; step < BLOCK; step += 64, block += 64, to += 64) {
        WHOLLY_UNROLLED
        for (u32 row = 0; row < 64; row++)
            to[row] = block[row] + reference;
    }
}

static void widen_to_64(const u32 *restrict block, u64 reference, u8 *restrict out) {
    u64_at *to = (u64_at *)out;
    for (u32 step = 0; step < BLOCK; step += 64, block += 64, to += 64) {
        WHOLLY_UNROLLED
        for (u32 row = 0; row < 64; row++)
            to[row] = block[row] + reference;
    }
}

/* Unpack blocks of up to 32 bits per value into values of 1, 2, 4 or 8 bytes. */
#define UNPACK_BLOCKS(name, type, convert)                                                                   \
    static void name(const u8 *in, u32 bits, type reference, u8 *out, size_t blocks) {                       \
        u32 __attribute__((aligned(64))) block[BLOCK];                                                       \
        for (; blocks; blocks--, in += (size_t)bits * (BLOCK / 8), out += BLOCK * sizeof(type)) {            \
            unpack_block(in, bits, block);                                                                   \
            convert(block, reference, out);                                                                  \
        }                                                                                                    \
    }
UNPACK_BLOCKS(unpack_to_8, u8, narrow_to_8)
UNPACK_BLOCKS(unpack_to_16, u16, narrow_to_16)
UNPACK_BLOCKS(unpack_to_32, u32, widen_to_32)
UNPACK_BLOCKS(unpack_to_64, u64, widen_to_64)

/* Unpack blocks of 52 bits per value, the size of a double's mantissa. */
static void unpack_mantissas(const u8 *restrict in, u64 reference, u8 *restrict out, size_t blocks) {
    enum { BITS = 52 };
    const u64 mask = ((u64)1 << BITS) - 1;
    for (; blocks; blocks--, in += BITS * (BLOCK / 8), out += BLOCK * 8) {
        const u8 *from = in;
        u8 *to = out;
        for (u32 lane = 0; lane < 16; lane += 2, from += 16, to += 16) {
            two word = *(const two *)from;
            WHOLLY_UNROLLED_ROWS
            for (u32 row = 0; row < 64; row++) {
                const u32 shift = row * BITS % 64;
                two value = word >> shift;
                if (shift + BITS >= 64 && row < 63) {
                    word = *(const two *)(from + (row * BITS / 64 + 1) * 128);
                    if (shift + BITS > 64)
                        value |= word << (64 - shift);
                }
                *(two *)(to + row * 128) = (value & mask) + reference;
            }
        }
    }
}

void f3_store_number(u8 *out, u32 width, size_t index, u64 value) {
    switch (width) {
    case 1: out[index] = (u8)value; break;
    case 2: ((u16_at *)out)[index] = (u16)value; break;
    case 4: ((u32_at *)out)[index] = (u32)value; break;
    default: ((u64_at *)out)[index] = value; break;
    }
}

static u64 load_number(const u8 *in, u32 width) {
    switch (width) {
    case 1: return in[0];
    case 2: return *(const u16_at *)in;
    case 4: return load32(in);
    default: return load64(in);
    }
}

/* Unpack the values after the last whole block. They are one stream of bits, lowest bit first. */
static void unpack_rest(const u8 *in, size_t in_bytes, u32 bits, u64 reference, u8 *out, u32 width, u32 count) {
    u64 mask = ~(u64)0 >> (64 - bits);
    for (u32 index = 0; index < count; index++) {
        u64 position = (u64)index * bits;
        size_t byte = (size_t)(position / 8);
        u32 shift = (u32)(position % 8);
        u64 value = 0;
        if (byte + 8 <= in_bytes) {
            value = load64(in + byte) >> shift;
        } else {
            for (size_t next = byte; next < in_bytes; next++)
                value |= (u64)in[next] << (8 * (next - byte));
            value >>= shift;
        }
        if (shift + bits > 64)
            value |= (u64)in[byte + 8] << (64 - shift);
        f3_store_number(out, width, index, (value & mask) + reference);
    }
}

void f3_fill(u8 *out, u32 width, u32 count, const u8 *value) {
    switch (width) {
    case 1: memset(out, value[0], count); return;
    case 2: {
        u16 pattern = *(const u16_at *)value;
        u16_at *at = (u16_at *)out;
        STEPS(count, WHOLLY_UNROLLED, at += rows, at[row] = pattern);
        return;
    }
    case 4: {
        u32 pattern = load32(value);
        u32_at *at = (u32_at *)out;
        STEPS(count, WHOLLY_UNROLLED, at += rows, at[row] = pattern);
        return;
    }
    case 8: {
        u64 pattern = load64(value);
        u64_at *at = (u64_at *)out;
        STEPS(count, WHOLLY_UNROLLED, at += rows, at[row] = pattern);
        return;
    }
    default:
        for (u32 index = 0; index < count; index++)
            memcpy(out + (size_t)index * width, value, width);
    }
}

static int decode_packed(struct node *node, u32 width, u32 count, u8 *out) {
    u32 bits = node->a;
    if (width > 8 || bits > 8 * width)
        return MALFORMED;
    if (left(&node->body) < 8)
        return CUT;
    u64 reference = load64(node->body.at);
    const u8 *in = node->body.at + 8;
    if (bits == 0) {
        u8 value[8];
        memcpy(value, &reference, 8);
        f3_fill(out, width, count, value);
        return FINE;
    }
    size_t blocks = count / BLOCK;
    u32 rest = count % BLOCK;
    size_t block_bytes = blocks * bits * (BLOCK / 8), rest_bytes = ((size_t)rest * bits + 7) / 8;
    if (left(&node->body) - 8 < block_bytes + rest_bytes)
        return CUT;
    switch (width) {
    case 1: unpack_to_8(in, bits, (u8)reference, out, blocks); break;
    case 2: unpack_to_16(in, bits, (u16)reference, out, blocks); break;
    case 4: unpack_to_32(in, bits, (u32)reference, out, blocks); break;
    default:
        if (bits <= 32)
            unpack_to_64(in, bits, reference, out, blocks);
        else if (bits == 52)
            unpack_mantissas(in, reference, out, blocks);
        else
            unpack_64(in, bits, reference, out, blocks);
    }
    unpack_rest(in + block_bytes, rest_bytes, bits, reference, out + blocks * BLOCK * width, width, rest);
    return FINE;
}

/* ---- nodes of values of one width ------------------------------------------------------------------------------- */

/* Write runs of values of up to eight bytes, in blocks of fixed sizes. The next run overwrites the bytes that a run
 * writes past its end, so the function stops before the writes could pass the end of the target. It returns the number
 * of runs written. A value times `ones` is the value repeated over eight bytes. */
enum { SHORT_BYTES = 64, FIRST_BYTES = 128, MORE_BYTES = 256, RUN_ROOM = FIRST_BYTES + MORE_BYTES };

static inline __attribute__((always_inline)) void lay(u8 *to, u64 pattern, const u32 bytes) {
    two vector = {pattern, pattern};
    WHOLLY_UNROLLED_ROWS
    for (u32 word = 0; word < bytes / 16; word++)
        ((two *)to)[word] = vector;
}

#define LAY_RUNS(name, type, ones)                                                                        \
    static u32 name(const u8 *lengths_in, const u8 *values_in, u32 runs, u8 **out, u64 unfilled_bytes) {  \
        const u32_at *lengths = (const u32_at *)lengths_in;                                               \
        const type##_at *values = (const type##_at *)values_in;                                           \
        enum { RUNS = sizeof(type) > 2 ? 4 : 8 }; /* runs a step; usually all of them are short */       \
        u8 *to = *out, *const limit = to + unfilled_bytes;                                                \
        u32 run = 0;                                                                                      \
        for (; run + RUNS <= runs; run += RUNS, lengths += RUNS, values += RUNS) {                        \
            u32 seen = 0;                                                                                 \
            WHOLLY_UNROLLED_ROWS                                                                          \
            for (u32 next = 0; next < RUNS; next++)                                                       \
                seen |= lengths[next];                                                                    \
            if (seen <= SHORT_BYTES / sizeof(type) && limit - to >= RUNS * SHORT_BYTES) {                 \
                WHOLLY_UNROLLED_ROWS                                                                      \
                for (u32 next = 0; next < RUNS; next++) {                                                 \
                    lay(to, values[next] * (u64)ones, SHORT_BYTES);                                       \
                    to += lengths[next] * sizeof(type);                                                   \
                }                                                                                         \
                continue;                                                                                 \
            }                                                                                             \
            WHOLLY_UNROLLED_ROWS                                                                          \
            for (u32 next = 0; next < RUNS; next++) {                                                     \
                u64 run_bytes = lengths[next] * (u64)sizeof(type), pattern = values[next] * (u64)ones;    \
                if (run_bytes + RUN_ROOM > (u64)(limit - to)) {                                           \
                    *out = to;                                                                            \
                    return run + next;                                                                    \
                }                                                                                         \
                lay(to, pattern, FIRST_BYTES);                                                            \
                u8 *more = to + FIRST_BYTES;                                                              \
                to += run_bytes;                                                                          \
                for (; more < to; more += MORE_BYTES)                                                     \
                    lay(more, pattern, MORE_BYTES);                                                       \
            }                                                                                             \
        }                                                                                                 \
        *out = to;                                                                                        \
        return run;                                                                                       \
    }
LAY_RUNS(lay_runs_8, u8, 0x0101010101010101)
LAY_RUNS(lay_runs_16, u16, 0x0001000100010001)
LAY_RUNS(lay_runs_32, u32, 0x0000000100000001)
LAY_RUNS(lay_runs_64, u64, 1)

static int decode_runs(struct room *room, struct node *node, u32 width, u32 count, u8 *out, u32 depth) {
    u32 runs;
    TRY(read_u32(&node->body, &runs));
    if (runs > count)
        return MALFORMED;
    u8 *lengths, *values;
    TRY(f3_take(room, (u64)runs * 4, &lengths));
    TRY(f3_take(room, (u64)runs * width, &values));
    TRY(f3_decode_values(room, &node->body, 4, runs, lengths, depth));
    TRY(f3_decode_values(room, &node->body, width, runs, values, depth));
    u8 *const end = out + (size_t)count * width;
    u64 bytes = (u64)count * width;
    u32 run = 0;
    switch (width) {
    case 1: run = lay_runs_8(lengths, values, runs, &out, bytes); break;
    case 2: run = lay_runs_16(lengths, values, runs, &out, bytes); break;
    case 4: run = lay_runs_32(lengths, values, runs, &out, bytes); break;
    case 8: run = lay_runs_64(lengths, values, runs, &out, bytes); break;
    }
    for (; run < runs; run++) {
        u32 length = ((u32_at *)lengths)[run];
        if (length > (size_t)(end - out) / width)
            return OUTSIDE;
        f3_fill(out, width, length, values + (size_t)run * width);
        out += (size_t)length * width;
    }
    return out == end ? FINE : MALFORMED;
}

#define PREFIX_SUM(name, type)                                     \
    static void name(u8 *out, u32 count, type sum) {               \
        type##_at *values = (type##_at *)out;                      \
        *values++ = sum;                                           \
        STEPS(count - 1, WHOLLY_UNROLLED_ROWS, values += rows,     \
              (sum = (type)(sum + values[row]), values[row] = sum)); \
    }
PREFIX_SUM(prefix_sum_8, u8)
PREFIX_SUM(prefix_sum_16, u16)
PREFIX_SUM(prefix_sum_32, u32)
PREFIX_SUM(prefix_sum_64, u64)

static int decode_delta(struct room *room, struct node *node, u32 width, u32 count, u8 *out, u32 depth) {
    if (width > 8 || count == 0)
        return MALFORMED;
    if (left(&node->body) < 8)
        return CUT;
    u64 first = load64(node->body.at);
    node->body.at += 8;
    TRY(f3_decode_values(room, &node->body, width, count, out, depth));
    switch (width) {
    case 1: prefix_sum_8(out, count, (u8)first); break;
    case 2: prefix_sum_16(out, count, (u16)first); break;
    case 4: prefix_sum_32(out, count, (u32)first); break;
    default: prefix_sum_64(out, count, first);
    }
    return FINE;
}

#define LARGEST(name, type)                                                                     \
    static u32 name(const u8 *in, u32 count) {                                                  \
        typedef type vector __attribute__((vector_size(16), aligned(1), may_alias));            \
        enum { LANES = 16 / sizeof(type) };                                                     \
        vector most[4] = {0};                                                                   \
        for (; count >= 4 * LANES; count -= 4 * LANES, in += 64) {                              \
            WHOLLY_UNROLLED_ROWS                                                                \
            for (u32 next = 0; next < 4; next++)                                                \
                most[next] = __builtin_elementwise_max(most[next], ((const vector *)in)[next]); \
        }                                                                                       \
        type largest = 0;                                                                       \
        for (u32 lane = 0; lane < 4 * LANES; lane++)                                            \
            largest = __builtin_elementwise_max(largest, ((const type##_at *)most)[lane]);      \
        for (; count; count--, in += sizeof(type))                                              \
            largest = __builtin_elementwise_max(largest, *(const type##_at *)in);               \
        return largest;                                                                         \
    }
LARGEST(largest_8, u8)
LARGEST(largest_16, u16)
LARGEST(largest_32, u32)

static u32 code_at(const u8 *codes, u32 width, u32 index) {
    return width == 1 ? codes[index] : width == 2 ? ((const u16_at *)codes)[index] : ((const u32_at *)codes)[index];
}

/* Decode the codes of a dictionary, and check that all are smaller than `entries`. */
static int decode_codes(struct room *room, struct span *body, u32 width, u32 count, u32 entries, u8 **codes, u32 depth) {
    if (width != 1 && width != 2 && width != 4)
        return MALFORMED;
    if (entries > count || (count && !entries))
        return MALFORMED;
    TRY(f3_take(room, (u64)count * width, codes));
    TRY(f3_decode_values(room, body, width, count, *codes, depth));
    u32 largest = width == 1   ? largest_8(*codes, count)
                  : width == 2 ? largest_16(*codes, count)
                               : largest_32(*codes, count);
    return count && largest >= entries ? OUTSIDE : FINE;
}

#define GATHER(name, type, code_type)                                                                      \
    static void name(const u8 *codes_in, const u8 *values_in, u32 count, u8 *restrict out) {               \
        const code_type##_at *codes = (const code_type##_at *)codes_in;                                    \
        const type##_at *values = (const type##_at *)values_in;                                            \
        type##_at *to = (type##_at *)out;                                                                  \
        STEPS(count, WHOLLY_UNROLLED_ROWS, (codes += rows, to += rows), to[row] = values[codes[row]]);     \
    }
#define GATHERS(type)                        \
    GATHER(gather_##type##_8, type, u8)      \
    GATHER(gather_##type##_16, type, u16)    \
    GATHER(gather_##type##_32, type, u32)
GATHERS(u8)
GATHERS(u16)
GATHERS(u32)
GATHERS(u64)

#define GATHER_BY(type)                                                                         \
    (code_width == 1   ? gather_##type##_8(codes, values, count, out)                           \
     : code_width == 2 ? gather_##type##_16(codes, values, count, out)                          \
                       : gather_##type##_32(codes, values, count, out))

static void gather(const u8 *codes, u32 code_width, const u8 *values, u32 width, u32 count, u8 *out) {
    switch (width) {
    case 1: GATHER_BY(u8); return;
    case 2: GATHER_BY(u16); return;
    case 4: GATHER_BY(u32); return;
    case 8: GATHER_BY(u64); return;
    default:
        for (u32 index = 0; index < count; index++)
            memcpy(out + (size_t)index * width, values + (size_t)code_at(codes, code_width, index) * width, width);
    }
}

static int decode_dictionary(struct room *room, struct node *node, u32 width, u32 count, u8 *out, u32 depth) {
    u32 entries;
    u8 *codes, *values;
    TRY(read_u32(&node->body, &entries));
    TRY(decode_codes(room, &node->body, node->a, count, entries, &codes, depth));
    TRY(f3_take(room, (u64)entries * width, &values));
    TRY(f3_decode_values(room, &node->body, width, entries, values, depth));
    gather(codes, node->a, values, width, count, out);
    return FINE;
}

static int decode_positions(struct room *room, struct span *body, u32 positions, u32 count, u8 **out, u32 depth) {
    if (positions > count)
        return MALFORMED;
    TRY(f3_take(room, (u64)positions * 4, out));
    TRY(f3_decode_values(room, body, 4, positions, *out, depth));
    return positions && largest_32(*out, positions) >= count ? OUTSIDE : FINE;
}

static int decode_patched(struct room *room, struct node *node, u32 width, u32 count, u8 *out, u32 depth) {
    u32 patches;
    u8 *positions, *values;
    TRY(read_u32(&node->body, &patches));
    TRY(f3_decode_values(room, &node->body, width, count, out, depth));
    TRY(decode_positions(room, &node->body, patches, count, &positions, depth));
    TRY(f3_take(room, (u64)patches * width, &values));
    TRY(f3_decode_values(room, &node->body, width, patches, values, depth));
    for (u32 patch = 0; patch < patches; patch++) {
        u8 *to = out + (size_t)((u32_at *)positions)[patch] * width;
        const u8 *from = values + (size_t)patch * width;
        switch (width) {
        case 1: *to = *from; break;
        case 2: *(u16_at *)to = *(const u16_at *)from; break;
        case 4: *(u32_at *)to = load32(from); break;
        case 8: *(u64_at *)to = load64(from); break;
        default: memcpy(to, from, width);
        }
    }
    return FINE;
}

static const double POWERS[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Convert integers to the decimals that they represent. A division by an exact power of ten is correctly rounded, so it
 * gives the same double as parsing the decimal's text. */
void f3_to_decimals(u32 exponent, u32 width, u32 count, u8 *out) {
    double power = POWERS[exponent];
    if (width == 4) {
        for (u32 index = 0; index < count; index++)
            ((f32_at *)out)[index] = (float)((double)(i32)((u32_at *)out)[index] / power);
        return;
    }
    /* There is no vector instruction that converts 64-bit integers to doubles. Instead, add the integer (below 2^51) to
     * the bits of the double 3 * 2^51, which gives the double 3 * 2^51 plus the integer. */
    u64_at *at = (u64_at *)out;
    STEPS(count, WHOLLY_UNROLLED, at += rows, {
        u64 shifted = at[row] + 0x4338000000000000u;
        double number;
        __builtin_memcpy(&number, &shifted, 8);
        ((f64_at *)at)[row] = (number - 6755399441055744.0) / power;
    });
}

static int decode_decimal(struct room *room, struct node *node, u32 width, u32 count, u8 *out, u32 depth) {
    if (node->a > MOST_EXPONENT || (width != 4 && width != 8))
        return MALFORMED;
    TRY(f3_decode_values(room, &node->body, width, count, out, depth));
    f3_to_decimals(node->a, width, count, out);
    return FINE;
}

static inline __attribute__((always_inline)) void join_64(u64_at *low, const u16_at *restrict high, u32 count,
                                                           const u32 low_bits) {
    STEPS(count, WHOLLY_UNROLLED, (low += rows, high += rows), low[row] |= (u64)high[row] << low_bits);
}

/* Add the high bits to numbers that have only their low bits. */
void f3_join(u32 low_bits, u32 width, u32 count, const u8 *high, u8 *out) {
    if (width == 4)
        for (u32 index = 0; index < count; index++)
            ((u32_at *)out)[index] |= (u32)((u16_at *)high)[index] << low_bits;
    else if (low_bits == 52) /* a double's mantissa and the rest; with a constant, the shift is one instruction */
        join_64((u64_at *)out, (const u16_at *)high, count, 52);
    else
        join_64((u64_at *)out, (const u16_at *)high, count, low_bits);
}

static int decode_split(struct room *room, struct node *node, u32 width, u32 count, u8 *out, u32 depth) {
    u32 low_bits = node->a;
    if ((width != 4 && width != 8) || low_bits == 0 || low_bits >= 8 * width)
        return MALFORMED;
    u8 *high;
    TRY(f3_decode_values(room, &node->body, width, count, out, depth));
    TRY(f3_take(room, (u64)count * 2, &high));
    TRY(f3_decode_values(room, &node->body, 2, count, high, depth));
    f3_join(low_bits, width, count, high, out);
    return FINE;
}

/* Sign-extend numbers of `narrow` bytes to `width` bytes. */
void f3_widen(const u8 *values, u32 narrow, u32 width, u32 count, u8 *out) {
    u32 unused = 64 - 8 * narrow;
    for (u32 index = 0; index < count; index++, out += width) {
        u64 value = load_number(values + (size_t)index * narrow, narrow);
        i64 extended = (i64)(value << unused) >> unused;
        if (width <= 8) {
            f3_store_number(out, width, 0, (u64)extended);
            continue;
        }
        ((i64_at *)out)[0] = extended;
        for (u32 word = 1; word < width / 8; word++)
            ((i64_at *)out)[word] = extended >> 63;
    }
}

static int decode_widened(struct room *room, struct node *node, u32 width, u32 count, u8 *out, u32 depth) {
    u32 narrow = node->a;
    if ((narrow != 1 && narrow != 2 && narrow != 4 && narrow != 8) || narrow >= width)
        return MALFORMED;
    u8 *values;
    TRY(f3_take(room, (u64)count * narrow, &values));
    TRY(f3_decode_values(room, &node->body, narrow, count, values, depth));
    f3_widen(values, narrow, width, count, out);
    return FINE;
}

#ifdef __wasm__
#define ALONE static /* a module has one thread, and constant addresses are faster */
#else
#define ALONE
#endif

/* Decode codes of up to 255 symbols, each of one to eight bytes. Code 255 is an escape: the byte after it is
 * literal. */
static int decode_symbols(struct node *node, u32 width, u32 count, u8 *out) {
    u32 symbols = node->a;
    if (width != 1 || symbols > 255)
        return MALFORMED;
    if (left(&node->body) < (size_t)symbols * 9)
        return CUT;
    ALONE u8 lengths[256];
    ALONE u64 texts[256];
    memset(lengths, 0, sizeof lengths);
    memset(texts, 0, sizeof texts);
    for (u32 symbol = 0; symbol < symbols; symbol++) {
        lengths[symbol] = node->body.at[symbol];
        texts[symbol] = load64(node->body.at + symbols + (size_t)symbol * 8);
        if (lengths[symbol] == 0 || lengths[symbol] > 8)
            return MALFORMED;
    }
    const u8 *in = node->body.at + (size_t)symbols * 9, *in_end = node->body.end;
    u8 *end = out + count;
    /* Decode eight codes at a time while whole words fit, or the codes before the first escape among them. A code
     * without a symbol decodes to no bytes. */
    while (in_end - in > 8 && end - out >= 72) {
        u64 codes = load64(in), escapes = (~codes - 0x0101010101010101u) & codes & 0x8080808080808080u;
        if (!escapes) {
            WHOLLY_UNROLLED_ROWS
            for (u32 next = 0; next < 8; next++) {
                u8 code = (u8)(codes >> (8 * next));
                *(u64_at *)out = texts[code];
                out += lengths[code];
            }
            in += 8;
            continue;
        }
        const u8 *escape = in + __builtin_ctzll(escapes) / 8;
        for (; in < escape; in++) {
            *(u64_at *)out = texts[*in];
            out += lengths[*in];
        }
        *out++ = in[1];
        in += 2;
    }
    while (in < in_end) {
        u8 code = *in++;
        if (code == 255) {
            if (in == in_end)
                return CUT;
            if (out == end)
                return MALFORMED;
            *out++ = *in++;
            continue;
        }
        if (lengths[code] > end - out)
            return MALFORMED;
        for (u32 byte = 0; byte < lengths[code]; byte++)
            *out++ = (u8)(texts[code] >> (8 * byte));
    }
    return out == end ? FINE : MALFORMED;
}

int f3_decode_values(struct room *room, struct span *in, u32 width, u32 count, u8 *out, u32 depth) {
    struct node node;
    TRY(open_node(in, &node));
    TRY(f3_spend(room, count));
    if (depth >= MOST_DEPTH)
        return TOO_DEEP;
    size_t used = room->used;
    int fault;
    switch (node.tag) {
    case TAG_PLAIN:
        if (left(&node.body) < (u64)count * width)
            return CUT;
        memcpy(out, node.body.at, (size_t)count * width);
        return FINE;
    case TAG_CONSTANT:
        if (left(&node.body) < width)
            return CUT;
        f3_fill(out, width, count, node.body.at);
        return FINE;
    case TAG_PACKED: return decode_packed(&node, width, count, out);
    case TAG_SYMBOLS: return decode_symbols(&node, width, count, out);
    case TAG_RUNS: fault = decode_runs(room, &node, width, count, out, depth + 1); break;
    case TAG_DELTA: fault = decode_delta(room, &node, width, count, out, depth + 1); break;
    case TAG_DICTIONARY: fault = decode_dictionary(room, &node, width, count, out, depth + 1); break;
    case TAG_PATCHED: fault = decode_patched(room, &node, width, count, out, depth + 1); break;
    case TAG_DECIMAL: fault = decode_decimal(room, &node, width, count, out, depth + 1); break;
    case TAG_SPLIT: fault = decode_split(room, &node, width, count, out, depth + 1); break;
    case TAG_WIDENED: fault = decode_widened(room, &node, width, count, out, depth + 1); break;
    default: return MALFORMED;
    }
    room->used = used;
    return fault;
}

/* ---- bitmaps ---------------------------------------------------------------------------------------------------- */

static void set_bits(u8 *out, u64 from, u64 until) {
    while (from < until && from % 8)
        out[from / 8] |= (u8)(1u << (from % 8)), from++;
    u64 whole = (until - from) / 8;
    if (whole < 32) {
        for (u64 byte = 0; byte < whole; byte++)
            out[from / 8 + byte] = 255;
    } else {
        memset(out + from / 8, 255, (size_t)whole);
    }
    for (from += whole * 8; from < until; from++)
        out[from / 8] |= (u8)(1u << (from % 8));
}

/* Decode a bitmap of `count` bits from bit 0 on; remaining bits of the last byte become 0. */
int f3_decode_bits(struct room *room, struct span *in, u32 count, u8 *out) {
    struct node node;
    TRY(open_node(in, &node));
    TRY(f3_spend(room, count));
    size_t bytes = ((size_t)count + 7) / 8;
    size_t used = room->used;
    u32 items;
    u8 *numbers;
    switch (node.tag) {
    case TAG_PLAIN:
        if (left(&node.body) < bytes)
            return CUT;
        memcpy(out, node.body.at, bytes);
        break;
    case TAG_CONSTANT: memset(out, node.a ? 255 : 0, bytes); break;
    case TAG_RUNS:
        TRY(read_u32(&node.body, &items));
        if (items > count)
            return MALFORMED;
        TRY(f3_take(room, (u64)items * 4, &numbers));
        TRY(f3_decode_values(room, &node.body, 4, items, numbers, 1));
        memset(out, 0, bytes);
        u64 bit = 0;
        for (u32 run = 0; run < items; run++) {
            u32 length = ((u32_at *)numbers)[run];
            if (length > count - bit)
                return OUTSIDE;
            if ((run & 1) != (node.a & 1))
                set_bits(out, bit, bit + length);
            bit += length;
        }
        if (bit != count)
            return MALFORMED;
        break;
    case TAG_PATCHED:
        TRY(read_u32(&node.body, &items));
        TRY(decode_positions(room, &node.body, items, count, &numbers, 1));
        memset(out, node.a ? 255 : 0, bytes);
        for (u32 patch = 0; patch < items; patch++) {
            u32 position = ((u32_at *)numbers)[patch];
            u8 mask = (u8)(1u << (position % 8));
            if (node.a)
                out[position / 8] &= (u8)~mask;
            else
                out[position / 8] |= mask;
        }
        break;
    default: return MALFORMED;
    }
    room->used = used;
    if (count % 8)
        out[bytes - 1] &= (u8)((1u << (count % 8)) - 1);
    return FINE;
}

/* Write `count` bits to the target from bit `at` on. Unless `at` is a multiple of 8, the rest of its byte must be 0. */
static void append_bits(u8 *out, u64 at, const u8 *bits, u32 count) {
    size_t bytes = ((size_t)count + 7) / 8;
    out += at / 8;
    u32 shift = (u32)(at % 8);
    if (shift == 0) {
        memcpy(out, bits, bytes);
        return;
    }
    u64 end = shift + (u64)count;
    for (size_t byte = 0; byte < bytes; byte++) {
        out[byte] |= (u8)(bits[byte] << shift);
        if ((byte + 1) * 8 < end)
            out[byte + 1] = (u8)(bits[byte] >> (8 - shift));
    }
}

static u64 count_ones(const u8 *bits, u32 count) {
    u64 ones = 0;
    size_t bytes = ((size_t)count + 7) / 8, byte = 0;
    for (; byte + 8 <= bytes; byte += 8)
        ones += (u64)__builtin_popcountll(load64(bits + byte));
    for (; byte < bytes; byte++)
        ones += (u64)__builtin_popcount(bits[byte]);
    return ones;
}

/* ---- strings ---------------------------------------------------------------------------------------------------- */

/* Return whether all bytes are ASCII. If so, every part of them is valid UTF-8. */
static int is_ascii(const u8 *in, u64 bytes) {
    u64 seen = 0, at = 0;
    for (; at + 64 <= bytes; at += 64) {
        for (u32 word = 0; word < 8; word++)
            seen |= load64(in + at + 8 * word);
    }
    for (; at < bytes; at++)
        seen |= in[at];
    return !(seen & 0x8080808080808080u);
}

int f3_is_utf8(const u8 *in, u64 bytes) {
    u64 at = 0;
    while (at < bytes) {
        u8 lead = in[at];
        if (lead < 0x80) {
            at++;
            continue;
        }
        u32 more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
        if (lead < 0xC2 || lead > 0xF4 || more > bytes - at - 1)
            return 0;
        u8 second = in[at + 1];
        u8 least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        u8 most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (second < least || second > most)
            return 0;
        for (u32 next = 2; next <= more; next++)
            if ((in[at + next] & 0xC0) != 0x80)
                return 0;
        at += more + 1;
    }
    return 1;
}

/* Check consecutive strings whose ends are `ends` minus `first`. All strings are UTF-8 if their concatenation is, and
 * if no string begins inside a character. */
static int check_utf8(const u8 *data, u64 bytes, const u8 *ends, u32 first, u32 count) {
    if (is_ascii(data, bytes))
        return FINE;
    if (!f3_is_utf8(data, bytes))
        return NOT_UTF8;
    for (u32 index = 0; index < count; index++) {
        u32 end = ((const u32_at *)ends)[index] - first;
        if (end < bytes && (data[end] & 0xC0) == 0x80)
            return NOT_UTF8;
    }
    return FINE;
}

/* Check strings given by `count` offsets of `width` bytes. All offsets are at most `bytes`. */
int f3_check_utf8(const u8 *data, u64 bytes, const u8 *offsets, u32 width, u64 count) {
    if (is_ascii(data, bytes))
        return FINE;
    if (!f3_is_utf8(data, bytes))
        return NOT_UTF8;
    for (u64 index = 0; index < count; index++) {
        u64 at = width == 4 ? ((const u32_at *)offsets)[index] : ((const u64_at *)offsets)[index];
        if (at < bytes && (data[at] & 0xC0) == 0x80)
            return NOT_UTF8;
    }
    return FINE;
}

/* Replace lengths by ends, with the first string or run starting at `first`. Return the sum of the lengths. */
u64 f3_add_up(u8 *lengths, u32 count, u32 first) {
    u32_at *at = (u32_at *)lengths;
    u64 sum = first;
    STEPS(count, WHOLLY_UNROLLED_ROWS, at += rows, (sum += at[row], at[row] = (u32)sum));
    return sum - first;
}

/* Entries of a dictionary of strings. A place is an entry's offset in `data` (upper 32 bits) and its length (lower 32
 * bits). `longest` is the maximum length. 64 bytes past the end of `data` may be read. */
struct entries {
    const u8 *data;
    u64_at *places;
    u32 longest;
};

enum { STRINGS = 8, COPY_BYTES = 32 };

/* Copy a string in blocks of COPY_BYTES. The next string overwrites the bytes that are written past its end. */
static inline __attribute__((always_inline)) void copy_text(u8 *to, const u8 *from, u32 length) {
    __builtin_memcpy(to, from, COPY_BYTES);
    for (u32 at = COPY_BYTES; at < length; at += COPY_BYTES)
        __builtin_memcpy(to + at, from + at, COPY_BYTES);
}

/* Copy eight strings, given by their places, and write their ends. Each string is copied as one block of `bytes` bytes,
 * or according to its length if `bytes` is 0. */
static inline __attribute__((always_inline)) u8 *copy_eight(u8 *to, const u8 *from, const u64 *place, const u32 bytes,
                                                            const u8 *origin, u32_at *end) {
    WHOLLY_UNROLLED_ROWS
    for (u32 next = 0; next < STRINGS; next++) {
        const u8 *text = from + (place[next] >> 32);
        u32 length = (u32)place[next];
        if (bytes)
            __builtin_memcpy(to, text, bytes);
        else
            copy_text(to, text, length);
        to += length;
        end[next] = (u32)(to - origin);
    }
    return to;
}

/* Copy strings in groups of eight while `*data` is at most `limit`: up to there, eight strings of maximum length fit.
 * Return the address of the first remaining code. */
static inline __attribute__((always_inline)) const u8 *lay_eights(
    const u8 *code, u32 code_width, u32 groups, const struct entries *entries, u8 **data, const u8 *limit,
    const u8 *origin, u32_at **ends, int are_short) {
    const u8 *from = entries->data;
    const u64_at *places = entries->places;
    u32_at *end = *ends;
    u8 *to = *data;
    for (; groups && to <= limit; groups--, code += STRINGS * code_width, end += STRINGS) {
        u64 place[STRINGS], seen = 0;
        WHOLLY_UNROLLED_ROWS
        for (u32 next = 0; next < STRINGS; next++)
            seen |= place[next] = places[code_at(code, code_width, next)];
        if (are_short || (u32)seen < COPY_BYTES)
            to = copy_eight(to, from, place, COPY_BYTES, origin, end);
        else if ((u32)seen < 2 * COPY_BYTES)
            to = copy_eight(to, from, place, 2 * COPY_BYTES, origin, end);
        else
            to = copy_eight(to, from, place, 0, origin, end);
    }
    *ends = end;
    *data = to;
    return code;
}

/* Write strings of a dictionary consecutively, `bytes` bytes in total, and their ends. The first string starts at
 * `first`. */
static inline __attribute__((always_inline)) int lay_strings(const u8 *codes, u32 code_width, u32 count,
                                                             const struct entries *entries, u8 *data, u64 bytes,
                                                             u32_at *ends, u32 first) {
    const u8 *end = data + bytes, *origin = data - first, *code = codes;
    u64 most = STRINGS * (u64)entries->longest + 2 * COPY_BYTES;
    if (most <= bytes) {
        const u8 *limit = end - most;
        code = entries->longest <= COPY_BYTES
                   ? lay_eights(code, code_width, count / STRINGS, entries, &data, limit, origin, &ends, 1)
                   : lay_eights(code, code_width, count / STRINGS, entries, &data, limit, origin, &ends, 0);
        count -= (u32)(code - codes) / code_width;
    }
    for (; count; count--, code += code_width) {
        u64 place = entries->places[code_at(code, code_width, 0)];
        u32 length = (u32)place;
        u64 unfilled = (u64)(end - data);
        if (length > unfilled)
            return OUTSIDE;
        if (unfilled - length >= COPY_BYTES)
            copy_text(data, entries->data + (place >> 32), length);
        else
            memcpy(data, entries->data + (place >> 32), length);
        data += length;
        *ends++ = (u32)(data - origin);
    }
    return data == end ? FINE : OUTSIDE;
}

/* Decode `count` strings of `bytes` bytes in total. Write their bytes to `data` and their ends to `ends`. The first
 * string starts at `first`. */
static int decode_strings(struct room *room, struct span *in, u32 count, u64 bytes, u8 *data, u8 *ends, u32 first, u32 utf8,
                          u32 depth) {
    struct node node;
    TRY(open_node(in, &node));
    TRY(f3_spend(room, count));
    if (depth >= MOST_DEPTH)
        return TOO_DEEP;
    size_t used = room->used;
    if (node.tag == TAG_PLAIN) {
        if (bytes > UINT32_MAX)
            return MALFORMED;
        TRY(f3_decode_values(room, &node.body, 4, count, ends, depth + 1));
        if (f3_add_up(ends, count, first) != bytes)
            return MALFORMED;
        TRY(f3_decode_values(room, &node.body, 1, (u32)bytes, data, depth + 1));
        room->used = used;
        return utf8 ? check_utf8(data, bytes, ends, first, count) : FINE;
    }
    if (node.tag == TAG_CONSTANT) {
        u64 length = left(&node.body);
        if (length * count != bytes)
            return MALFORMED;
        u32 end = first;
        for (u32 index = 0; index < count; index++) {
            ((u32_at *)ends)[index] = end += (u32)length;
            memcpy(data + index * length, node.body.at, (size_t)length);
        }
        return utf8 && !f3_is_utf8(node.body.at, length) ? NOT_UTF8 : FINE;
    }
    if (node.tag != TAG_DICTIONARY)
        return MALFORMED;
    u32 entries, entry_bytes;
    u8 *codes, *entry_data, *entry_ends, *places;
    TRY(read_u32(&node.body, &entries));
    TRY(read_u32(&node.body, &entry_bytes));
    if (entry_bytes > bytes)
        return MALFORMED;
    TRY(decode_codes(room, &node.body, node.a, count, entries, &codes, depth + 1));
    TRY(f3_take(room, (u64)entry_bytes, &entry_data));
    TRY(f3_take(room, (u64)entries * 4, &entry_ends));
    TRY(f3_take(room, (u64)entries * 8, &places));
    TRY(f3_spend(room, entry_bytes));
    TRY(decode_strings(room, &node.body, entries, entry_bytes, entry_data, entry_ends, 0, utf8, depth + 1));
    struct entries found = {entry_data, (u64_at *)places, 0};
    u32 start = 0;
    for (u32 entry = 0; entry < entries; entry++) {
        u32 end = ((u32_at *)entry_ends)[entry], length = end - start;
        found.places[entry] = (u64)start << 32 | length;
        found.longest = length > found.longest ? length : found.longest;
        start = end;
    }
    TRY(f3_spend(room, bytes / 16));
    u32_at *at = (u32_at *)ends;
    int fault = node.a == 1   ? lay_strings(codes, 1, count, &found, data, bytes, at, first)
                : node.a == 2 ? lay_strings(codes, 2, count, &found, data, bytes, at, first)
                              : lay_strings(codes, 4, count, &found, data, bytes, at, first);
    room->used = used;
    return fault;
}

/* Convert 4-byte ends to 8-byte offsets, and add `first`. */
static void widen_ends(const u8 *restrict ends, u32 count, u64 first, u8 *restrict offsets) {
    const u32_at *end = (const u32_at *)ends;
    u64_at *at = (u64_at *)offsets;
    STEPS(count, WHOLLY_UNROLLED, (end += rows, at += rows), at[row] = first + end[row]);
}

/* ---- an EncUnit ------------------------------------------------------------------------------------------------- */

int f3_header(const u8 *payload, size_t bytes, struct header *header) {
    if (bytes < HEADER_BYTES)
        return CUT;
    header->kind = payload[1];
    header->width = payload[2];
    header->has_nulls = payload[3] & HAS_NULLS;
    header->rows = load32(payload + 4);
    header->data_bytes = load64(payload + 8);
    u32 width = header->width;
    int sized = width == 1 || width == 2 || width == 4 || width == 8 || width == 16 || width == 32;
    if (payload[0] != VERSION || header->kind > KIND_TEXT || sized != (header->kind == KIND_FIXED))
        return MALFORMED;
    return header->kind == KIND_TEXT && header->data_bytes > INT32_MAX ? MALFORMED : FINE;
}

/* Decode an EncUnit and advance `target` past its rows. After a fault the target's contents are undefined. */
int f3_decode_unit(const u8 *payload, size_t bytes, u32 rows, struct target *target, u8 *scratch, size_t scratch_bytes) {
    struct header header;
    TRY(f3_header(payload, bytes, &header));
    if (header.rows != rows || header.kind != target->kind || (header.kind == KIND_FIXED && header.width != target->width))
        return MISMATCH;
    struct room room = {scratch, 0, scratch_bytes, 24 * (u64)rows + 65536};
    struct span in = {payload + HEADER_BYTES, payload + bytes};
    u8 *bitmap;
    TRY(f3_take(&room, ((u64)rows + 7) / 8, &bitmap));
    if (header.has_nulls) {
        if (!target->validity)
            return MISMATCH;
        TRY(f3_decode_bits(&room, &in, rows, bitmap));
        target->nulls += rows - count_ones(bitmap, rows);
        append_bits(target->validity, target->first_row, bitmap, rows);
    } else if (target->validity) {
        u64 end = target->first_row + rows;
        u64 first_whole = (target->first_row + 7) / 8;
        if (first_whole * 8 < end)
            memset(target->validity + first_whole, 0, (size_t)((end + 7) / 8 - first_whole));
        set_bits(target->validity, target->first_row, end);
    }
    switch (header.kind) {
    case KIND_FIXED:
        if ((target->first_row + rows) * target->width > target->values_bytes)
            return MISMATCH;
        TRY(f3_decode_values(&room, &in, target->width, rows, target->values + target->first_row * target->width, 0));
        break;
    case KIND_BITS:
        if ((target->first_row + rows + 7) / 8 > target->values_bytes)
            return MISMATCH;
        TRY(f3_decode_bits(&room, &in, rows, bitmap));
        append_bits(target->values, target->first_row, bitmap, rows);
        break;
    default: {
        u8 *ends = target->offsets + (target->first_row + 1) * target->width;
        int is_narrow = target->width == 4;
        if (target->first_byte + header.data_bytes > target->values_bytes)
            return MISMATCH;
        room.work += 8 * header.data_bytes;
        if (!is_narrow)
            TRY(f3_take(&room, (u64)rows * 4, &ends));
        TRY(decode_strings(&room, &in, rows, header.data_bytes, target->values + target->first_byte, ends,
                           is_narrow ? (u32)target->first_byte : 0, target->utf8, 0));
        if (!is_narrow)
            widen_ends(ends, rows, target->first_byte, target->offsets + (target->first_row + 1) * target->width);
        target->first_byte += header.data_bytes;
    }
    }
    target->first_row += rows;
    return FINE;
}
