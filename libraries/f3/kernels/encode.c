/* The inner loops of encoding: statistics, dictionaries, bit packing, symbol tables. They are only in the native
 * library. Without it, libraries/f3/encodings does the same with numpy and pyarrow, except symbol tables, which are not
 * written then. The input is the caller's array, so its lengths are trusted. */
#include "kernels.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- statistics ------------------------------------------------------------------------------------------------- */

struct statistics {
    i64 least, most;            /* of the values as signed numbers */
    i64 least_step, most_step;  /* of the differences between neighbours, which wrap around, as signed numbers */
    u64 runs;
};

#define STATISTICS(name, type, unsigned_type)                                                    \
    static void name(const void *in, u64 count, struct statistics *found) {                      \
        const type *values = in;                                                                 \
        type least = values[0], most = values[0], least_step = 0, most_step = 0;                 \
        u64 changes = 0;                                                                         \
        if (count > 1)                                                                           \
            least_step = most_step = (type)((unsigned_type)values[1] - (unsigned_type)values[0]); \
        for (u64 index = 1; index < count; index++) {                                            \
            type value = values[index];                                                          \
            type step = (type)((unsigned_type)value - (unsigned_type)values[index - 1]);         \
            least = value < least ? value : least;                                               \
            most = value > most ? value : most;                                                  \
            least_step = step < least_step ? step : least_step;                                  \
            most_step = step > most_step ? step : most_step;                                     \
            changes += step != 0;                                                                \
        }                                                                                        \
        found->least = least, found->most = most;                                                \
        found->least_step = least_step, found->most_step = most_step;                            \
        found->runs = changes + 1;                                                               \
    }
STATISTICS(statistics_8, int8_t, u8)
STATISTICS(statistics_16, int16_t, u16)
STATISTICS(statistics_32, i32, u32)
STATISTICS(statistics_64, i64, u64)

EXPORT void f3_statistics(const void *values, u32 width, u64 count, struct statistics *found) {
    switch (width) {
    case 1: statistics_8(values, count, found); return;
    case 2: statistics_16(values, count, found); return;
    case 4: statistics_32(values, count, found); return;
    default: statistics_64(values, count, found);
    }
}

/* ---- the usual range -------------------------------------------------------------------------------------------- */

enum { MOST_SAMPLED = 2048, TRIMS = 5 };

struct range {
    i64 low, high;  /* bounds of most values; unsigned 8-byte values are reinterpreted as signed */
    double cost;    /* estimated bytes for all values, with outliers stored separately */
    i64 usual;      /* the most frequent value */
    u64 times;      /* how often it occurs in the sample */
};

/* Radix sort, from the lowest byte on. A byte that is equal in all numbers is skipped. Return the sorted numbers, which
 * are in `numbers` or in `other`. */
static u64 *sorted(u64 *numbers, u64 *other, u32 count) {
    for (u32 shift = 0; shift < 64; shift += 8) {
        u32 starts[256] = {0}, sum = 0;
        for (u32 index = 0; index < count; index++)
            starts[numbers[index] >> shift & 255]++;
        if (starts[numbers[0] >> shift & 255] == count)
            continue;
        for (u32 byte = 0; byte < 256; byte++) {
            u32 size = starts[byte];
            starts[byte] = sum;
            sum += size;
        }
        for (u32 index = 0; index < count; index++)
            other[starts[numbers[index] >> shift & 255]++] = numbers[index];
        u64 *swap = numbers;
        numbers = other;
        other = swap;
    }
    return numbers;
}

/* Find the range of most values that takes the fewest bytes to pack. `sample` has `size` of the `count` values, at most
 * MOST_SAMPLED. The candidates leave out a share of the values at either end: all pairs of `trims` except the first
 * with itself, which leaves out nothing. */
EXPORT void f3_usual_range(const void *sample, u32 width, u32 is_signed, u32 size, u64 count, const double *trims,
                           struct range *found) {
    u64 numbers[MOST_SAMPLED], other[MOST_SAMPLED];
    u64 sign = is_signed ? (u64)1 << 63 : 0; /* flipping the sign sorts negative numbers before the others */
    u32 unused = 64 - 8 * width;
    for (u32 index = 0; index < size; index++) {
        u64 value = width == 1   ? ((const u8 *)sample)[index]
                    : width == 2 ? ((const u16 *)sample)[index]
                    : width == 4 ? ((const u32 *)sample)[index]
                                 : ((const u64 *)sample)[index];
        numbers[index] = is_signed ? (u64)((i64)(value << unused) >> unused) ^ sign : value;
    }
    const u64 *ascending = sorted(numbers, other, size);
    found->cost = 1e300;
    for (u32 low = 0; low < TRIMS; low++)
        for (u32 high = 0; high < TRIMS; high++) {
            u64 least = ascending[(u32)(trims[low] * size)], most = ascending[size - 1 - (u32)(trims[high] * size)];
            u32 bits = most > least ? 64 - (u32)__builtin_clzll(most - least) : 0;
            double cost = (double)count * bits / 8 + (trims[low] + trims[high]) * (double)count * (width + 2);
            if (low + high && cost < found->cost) {
                found->cost = cost;
                found->low = (i64)(least ^ sign);
                found->high = (i64)(most ^ sign);
            }
        }
    u64 times = 0;
    found->times = 0;
    for (u32 index = 0; index < size; index++) {
        times = index && ascending[index] == ascending[index - 1] ? times + 1 : 1;
        if (times > found->times) {
            found->times = times;
            found->usual = (i64)(ascending[index] ^ sign);
        }
    }
}

/* ---- bounds of texts --------------------------------------------------------------------------------------------- */

/* Return the first 8 bytes of a text, padded with NUL, as a number. Numbers have the same order as texts. */
static u64 first_bytes(const u8 *text, u64 bytes) {
    u64 code = 0;
    if (bytes >= 8)
        return __builtin_bswap64(*(const u64_at *)text);
    for (u64 place = 0; place < bytes; place++)
        code |= (u64)text[place] << (56 - 8 * place);
    return code;
}

/* Extend the minimum bounds[0] and the maximum bounds[1] by the texts that are not null, as numbers of first_bytes().
 * `validity` is 0 if there are no nulls. */
EXPORT void f3_text_bounds(const u8 *data, const u8 *offsets, u32 width, const u8 *validity, u64 first, u64 count,
                           u64 bounds[2]) {
    u64 least = bounds[0], most = bounds[1];
    for (u64 row = first; row < first + count; row++) {
        if (validity && !(validity[row / 8] >> row % 8 & 1))
            continue;
        u64 begin, end;
        if (width == 4)
            begin = ((const u32_at *)offsets)[row], end = ((const u32_at *)offsets)[row + 1];
        else
            begin = ((const u64_at *)offsets)[row], end = ((const u64_at *)offsets)[row + 1];
        u64 code = first_bytes(data + begin, end - begin);
        least = code < least ? code : least;
        most = code > most ? code : most;
    }
    bounds[0] = least, bounds[1] = most;
}

/* ---- distinct values --------------------------------------------------------------------------------------------- */

/* How often values repeat. The number of distinct values is estimated from the number of bits that their hashes set
 * (linear counting: Whang, Vander-Zanden, Taylor; TODS 1990). */
struct repetitions {
    u64 set_bits;
    u64 runs;
};

static u64 mixed(u64 hash) {
    hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
    return (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
}

static void note(u64 hash, u32 shift, u64 *bitmap, u64 *last, struct repetitions *found) {
    u64 place = hash >> shift;
    u64 bit = (u64)1 << (place % 64), word = bitmap[place / 64];
    found->set_bits += !(word & bit);
    bitmap[place / 64] = word | bit;
    found->runs += hash != *last;
    *last = hash;
}

#define REPETITIONS(name, type)                                                                               \
    static void name(const void *in, u64 count, u32 shift, u64 *bitmap, u64 *last, struct repetitions *found) { \
        const type *values = in;                                                                              \
        for (u64 index = 0; index < count; index++)                                                           \
            note(mixed(values[index] + 1), shift, bitmap, last, found);                                       \
    }
REPETITIONS(repetitions_16, u16)
REPETITIONS(repetitions_32, u32)
REPETITIONS(repetitions_64, u64)

static int same_bytes(const u8 *one, const u8 *other, u64 bytes) {
    for (; bytes >= 8; bytes -= 8, one += 8, other += 8)
        if (*(const u64_at *)one != *(const u64_at *)other)
            return 0;
    for (; bytes; bytes--)
        if (*one++ != *other++)
            return 0;
    return 1;
}

/* Return whether a string equals the one before it. */
static int is_last(const u8 *text, const u32 *lengths) {
    return lengths[0] == lengths[-1] && same_bytes(text, text - lengths[-1], lengths[0]);
}

static u64 hash_of(const u8 *text, u64 bytes) {
    u64 hash = bytes + 1;
    if (bytes >= 64) { /* four independent lanes, because each multiplication waits for the one before in its lane */
        u64 lanes[4] = {hash, ~hash, hash << 32, ~hash << 32};
        for (; bytes >= 32; bytes -= 32, text += 32)
            for (u32 lane = 0; lane < 4; lane++)
                lanes[lane] = mixed(lanes[lane] ^ ((const u64_at *)text)[lane]);
        hash = mixed(lanes[0] ^ mixed(lanes[1] ^ mixed(lanes[2] ^ mixed(lanes[3]))));
    }
    for (; bytes >= 8; bytes -= 8, text += 8)
        hash = mixed(hash ^ *(const u64_at *)text);
    u64 rest = 0;
    for (u64 byte = 0; byte < bytes; byte++)
        rest |= (u64)text[byte] << (8 * byte);
    return mixed(hash ^ rest);
}

/* Count repetitions, with a zeroed bitmap of 2^bits bits. Values have `width` bytes (2, 4, 8 or more), or are strings
 * of `lengths` bytes if `lengths` is not 0. */
EXPORT void f3_repetitions(const u8 *values, u32 width, const u32 *lengths, u64 count, u32 bits, u64 *bitmap,
                           struct repetitions *found) {
    u32 shift = 64 - bits;
    u64 last = 0; /* no hash of a value is likely to be 0 */
    found->set_bits = found->runs = 0;
    if (lengths) {
        for (u64 index = 0; index < count; values += lengths[index++])
            if (!index || !is_last(values, lengths + index))
                note(hash_of(values, lengths[index]), shift, bitmap, &last, found);
        return;
    }
    switch (width) {
    case 2: repetitions_16(values, count, shift, bitmap, &last, found); return;
    case 4: repetitions_32(values, count, shift, bitmap, &last, found); return;
    case 8: repetitions_64(values, count, shift, bitmap, &last, found); return;
    default:
        for (u64 index = 0; index < count; index++, values += width)
            note(hash_of(values, width), shift, bitmap, &last, found);
    }
}

/* ---- dictionaries ------------------------------------------------------------------------------------------------ */

/* The distinct values of some arrays, in order of first occurrence. The caller owns the memory and enlarges it. */
struct memo {
    u8 *data;              /* the values, or the bytes of strings */
    u32 *ends;             /* of strings in `data` */
    u32 *hashes;           /* of the values */
    u32 *slots;            /* hash table of 2^slot_bits slots: the number of a value + 1, or 0 if free */
    u64 most_bytes, bytes; /* of `data`: its capacity, and the bytes in use */
    u32 most, entries;     /* values: the capacity, and the current number */
    u32 slot_bits;         /* at most half of the slots are used */
};

/* Return the number of a value, and add the value if it is new. UINT32_MAX if the memo is full. */
static inline __attribute__((always_inline)) u32 number_of(struct memo *memo, const u8 *value, u32 bytes, u64 hash,
                                                           const u32 width) {
    u32 mask = (1u << memo->slot_bits) - 1, short_hash = (u32)hash;
    u32 slot = (u32)(hash >> 32) & mask;
    for (u32 found; (found = memo->slots[slot]); slot = (slot + 1) & mask) {
        found--;
        if (memo->hashes[found] != short_hash)
            continue;
        u64 start = width ? (u64)found * width : found ? memo->ends[found - 1] : 0;
        u64 size = width ? width : memo->ends[found] - start;
        if (size == bytes && same_bytes(memo->data + start, value, bytes))
            return found;
    }
    if (memo->entries == memo->most || memo->most_bytes - memo->bytes < bytes)
        return UINT32_MAX;
    u32 entry = memo->entries++;
    memo->slots[slot] = entry + 1;
    memo->hashes[entry] = short_hash;
    __builtin_memcpy(memo->data + memo->bytes, value, bytes);
    memo->bytes += bytes;
    if (!width)
        memo->ends[entry] = (u32)memo->bytes;
    return entry;
}

#define NUMBER_ALL(width, hash)                                                           \
    for (u64 index = 0; index < count; values += width, index++) {                        \
        u32 code = number_of(memo, values, width, hash, width);                           \
        if (code == UINT32_MAX)                                                           \
            return index;                                                                 \
        codes[index] = code;                                                              \
    }

/* Write the numbers of values to `codes`. Values have `width` bytes, or are strings of `lengths` bytes if `lengths` is
 * not 0. Return how many were numbered before the memo was full. */
EXPORT u64 f3_memo_add(struct memo *memo, const u8 *values, u32 width, const u32 *lengths, u64 count, u32 *codes) {
    if (lengths)
        for (u64 index = 0; index < count; values += lengths[index++]) {
            u32 code = index && is_last(values, lengths + index)
                           ? codes[index - 1]
                           : number_of(memo, values, lengths[index], hash_of(values, lengths[index]), 0);
            if (code == UINT32_MAX)
                return index;
            codes[index] = code;
        }
    else if (width == 4)
        NUMBER_ALL(4, mixed(*(const u32_at *)values + 1ull))
    else if (width == 8)
        NUMBER_ALL(8, mixed(*(const u64_at *)values + 1))
    else
        NUMBER_ALL(width, hash_of(values, width))
    return count;
}

/* Enter all values into the slots again, after the caller replaced the slots by more, which are zeroed. */
EXPORT void f3_memo_enter(struct memo *memo, u32 width) {
    const u8 *values = memo->data;
    u32 mask = (1u << memo->slot_bits) - 1, start = 0;
    for (u32 entry = 0; entry < memo->entries; entry++) {
        u64 hash;
        if (width) {
            const u8 *value = values + (u64)entry * width;
            hash = width == 4   ? mixed(*(const u32_at *)value + 1ull)
                   : width == 8 ? mixed(*(const u64_at *)value + 1)
                                : hash_of(value, width);
        } else {
            hash = hash_of(values + start, memo->ends[entry] - start);
            start = memo->ends[entry];
        }
        u32 slot = (u32)(hash >> 32) & mask;
        while (memo->slots[slot])
            slot = (slot + 1) & mask;
        memo->slots[slot] = entry + 1;
    }
}

/* ---- bit packing ------------------------------------------------------------------------------------------------ */

#define PACK(name, in_type, word_type, word_bits)                                                            \
    static void name(const in_type *restrict in, u32 bits, u64 reference, word_type##_at *restrict out,      \
                     u64 blocks) {                                                                           \
        enum { LANES = BLOCK / word_bits };                                                                   \
        for (u64 block = 0; block < blocks; block++) {                                                        \
            memset(out, 0, (size_t)bits * (BLOCK / 8));                                                       \
            for (u32 row = 0; row < word_bits; row++) {                                                       \
                u32 start = row * bits, word = start / word_bits, shift = start % word_bits;                  \
                word_type##_at *low = out + word * LANES;                                                     \
                for (u32 lane = 0; lane < LANES; lane++)                                                      \
                    low[lane] |= (word_type)(in_type)(in[row * LANES + lane] - (in_type)reference) << shift;  \
                if (shift + bits > word_bits)                                                                 \
                    for (u32 lane = 0; lane < LANES; lane++)                                                  \
                        low[LANES + lane] |=                                                                  \
                            (word_type)(in_type)(in[row * LANES + lane] - (in_type)reference) >>              \
                            (word_bits - shift);                                                              \
            }                                                                                                 \
            in += BLOCK;                                                                                      \
            out += (size_t)bits * LANES;                                                                      \
        }                                                                                                     \
    }
PACK(pack_8, u8, u32, 32)
PACK(pack_16, u16, u32, 32)
PACK(pack_32, u32, u32, 32)
PACK(pack_64_as_32, u64, u32, 32)
PACK(pack_64, u64, u64, 64)

static u64 value_at(const void *values, u32 width, u64 index) {
    switch (width) {
    case 1: return ((const u8 *)values)[index];
    case 2: return ((const u16 *)values)[index];
    case 4: return ((const u32 *)values)[index];
    default: return ((const u64 *)values)[index];
    }
}

/* Pack the lowest `bits` (1 to 8 * width) of all values minus the reference; return the bytes written. `out` needs space
 * for one more word after them. */
EXPORT u64 f3_pack(const void *values, u32 width, u64 count, u32 bits, u64 reference, u8 *out) {
    u64 blocks = count / BLOCK;
    switch (width) {
    case 1: pack_8(values, bits, reference, (u32_at *)out, blocks); break;
    case 2: pack_16(values, bits, reference, (u32_at *)out, blocks); break;
    case 4: pack_32(values, bits, reference, (u32_at *)out, blocks); break;
    default:
        if (bits <= 32)
            pack_64_as_32(values, bits, reference, (u32_at *)out, blocks);
        else
            pack_64(values, bits, reference, (u64_at *)out, blocks);
    }
    u64 block_bytes = blocks * bits * (BLOCK / 8);
    u8 *rest = out + block_bytes;
    u64 rest_count = count % BLOCK, rest_bytes = (rest_count * bits + 7) / 8;
    memset(rest, 0, (size_t)rest_bytes);
    u64 mask = ~(u64)0 >> (64 - bits);
    for (u64 index = 0; index < rest_count; index++) {
        u64 value = (value_at(values, width, blocks * BLOCK + index) - reference) & mask;
        u64 position = index * bits;
        for (u32 written = 0; written < bits;) {
            u32 shift = (u32)((position + written) % 8);
            rest[(position + written) / 8] |= (u8)(value >> written << shift);
            written += 8 - shift;
        }
    }
    return block_bytes + rest_bytes;
}

/* ---- decimals --------------------------------------------------------------------------------------------------- */

static const double POWERS[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Convert a number to an integer multiple of 1 / power, where `power` is a power of ten. Return whether the integer
 * restores the number bit by bit. */
static int is_decimal_64(double value, double power, i64 *integer) {
    double scaled = value * power;
    double rounded = (scaled + 6755399441055744.0) - 6755399441055744.0;
    int small = rounded < 1e15 && rounded > -1e15;
    *integer = small ? (i64)rounded : 0;
    double back = (double)*integer / power;
    u64 bits, back_bits;
    __builtin_memcpy(&bits, &value, 8);
    __builtin_memcpy(&back_bits, &back, 8);
    return small && bits == back_bits;
}

static int is_decimal_32(float value, double power, i32 *integer) {
    double scaled = (double)value * power;
    double rounded = (scaled + 6755399441055744.0) - 6755399441055744.0;
    int small = rounded < 2e9 && rounded > -2e9;
    *integer = small ? (i32)rounded : 0;
    float back = (float)((double)*integer / power);
    u32 bits, back_bits;
    __builtin_memcpy(&bits, &value, 4);
    __builtin_memcpy(&back_bits, &back, 4);
    return small && bits == back_bits;
}

/* Convert numbers to integer multiples of 10^-exponent. A number that its integer does not restore bit by bit is a
 * miss: it gets the previous integer, and its position is added to `misses`. Return the number of misses. */
#define DECIMALS(name, type, integer_type, is_decimal)                                                         \
    EXPORT u64 name(const type *values, u64 count, u32 exponent, integer_type *integers, u32 *misses) {          \
        u64 missed = 0;                                                                                          \
        integer_type last = 0;                                                                                   \
        for (u64 index = 0; index < count; index++) {                                                            \
            integer_type integer;                                                                                \
            int exact = is_decimal(values[index], POWERS[exponent], &integer);                                   \
            misses[missed] = (u32)index;                                                                         \
            missed += !exact;                                                                                    \
            last = exact ? integer : last;                                                                       \
            integers[index] = last;                                                                              \
        }                                                                                                        \
        return missed;                                                                                           \
    }
DECIMALS(f3_decimals_64, double, i64, is_decimal_64)
DECIMALS(f3_decimals_32, float, i32, is_decimal_32)

/* Return the least exponent below `end` with which at most `most` numbers are not restored; `end` if there is none. */
#define DECIMAL_EXPONENT(name, type, integer_type, is_decimal)                       \
    EXPORT u32 name(const type *values, u64 count, u32 end, u64 most) {              \
        for (u32 exponent = 0; exponent < end; exponent++) {                         \
            u64 missed = 0;                                                          \
            integer_type integer;                                                    \
            for (u64 index = 0; index < count && missed <= most; index++)            \
                missed += !is_decimal(values[index], POWERS[exponent], &integer);    \
            if (missed <= most)                                                      \
                return exponent;                                                     \
        }                                                                            \
        return end;                                                                  \
    }
DECIMAL_EXPONENT(f3_decimal_exponent_64, double, i64, is_decimal_64)
DECIMAL_EXPONENT(f3_decimal_exponent_32, float, i32, is_decimal_32)

/* ---- symbol tables (FSST: Boncz, Neumann, Leis; VLDB 2020) ------------------------------------------------------- */

enum { SYMBOLS = 255, IDS = 512, SLOTS = 4096, CANDIDATE_SLOTS = 32768, GENERATIONS = 4 };

struct symbols {
    u64 texts[256];
    u8 lengths[256];
    u32 count;
};

/* Tables to find the symbol that a text begins with: by the first three bytes, otherwise by the first two, otherwise by
 * the first. All entries are code + 1, or 0 if there is none. */
struct matcher {
    u16 longer[SLOTS]; /* symbols of three and more bytes */
    u16 two[65536];
    u16 one[256];
};

struct candidate {
    u64 text;
    u32 length, gain;
};

struct training {
    struct symbols symbols;
    struct matcher matcher;
    u32 alone[IDS];
    u16 pairs[IDS][IDS];
    struct candidate candidates[CANDIDATE_SLOTS];
    u32 used[CANDIDATE_SLOTS];
    u32 best[SYMBOLS];
};

static u64 mask_of(u32 bytes) { return bytes >= 8 ? ~(u64)0 : ((u64)1 << (8 * bytes)) - 1; }
static u32 slot_of(u64 text) { return (u32)(((text & 0xFFFFFF) * 2971215073u) >> 15) & (SLOTS - 1); }

static u64 text_at(const u8 *in, u64 left) {
    if (left >= 8)
        return *(const u64_at *)in;
    u64 text = 0;
    for (u64 byte = 0; byte < left; byte++)
        text |= (u64)in[byte] << (8 * byte);
    return text;
}

static void make_matcher(const struct symbols *symbols, struct matcher *matcher) {
    memset(matcher, 0, sizeof *matcher);
    for (u32 code = 0; code < symbols->count; code++) {
        u64 text = symbols->texts[code];
        if (symbols->lengths[code] == 1) {
            matcher->one[text & 0xFF] = (u16)(code + 1);
        } else if (symbols->lengths[code] == 2) {
            matcher->two[text & 0xFFFF] = (u16)(code + 1);
        } else {
            u16 *slot = &matcher->longer[slot_of(text)];
            if (!*slot || symbols->lengths[code] > symbols->lengths[*slot - 1])
                *slot = (u16)(code + 1);
        }
    }
}

/* Return code + 1 of the symbol that a text of `left` bytes begins with; 0 if there is none. */
static u32 match(const struct symbols *symbols, const struct matcher *matcher, u64 text, u64 left) {
    u32 code = matcher->longer[slot_of(text)];
    if (code) {
        u32 length = symbols->lengths[code - 1];
        if (length <= left && (text & mask_of(length)) == symbols->texts[code - 1])
            return code;
    }
    code = matcher->two[text & 0xFFFF];
    if (code && left >= 2)
        return code;
    return matcher->one[text & 0xFF];
}

static void count_pairs(struct training *work, const u8 *in, u64 bytes) {
    memset(work->alone, 0, sizeof work->alone);
    memset(work->pairs, 0, sizeof work->pairs);
    u32 last = IDS;
    for (u64 at = 0; at < bytes;) {
        u64 text = text_at(in + at, bytes - at);
        u32 code = match(&work->symbols, &work->matcher, text, bytes - at);
        u32 id = code ? code - 1 : 256 + (u32)(text & 0xFF);
        at += code ? work->symbols.lengths[code - 1] : 1;
        work->alone[id]++;
        if (last < IDS && work->pairs[last][id] < UINT16_MAX)
            work->pairs[last][id]++;
        last = id;
    }
}

static u64 text_of(const struct training *work, u32 id) { return id < 256 ? work->symbols.texts[id] : id - 256; }
static u32 length_of(const struct training *work, u32 id) { return id < 256 ? work->symbols.lengths[id] : 1; }

static void propose(struct training *work, u32 *proposed, u64 text, u32 length, u32 gain) {
    if (*proposed >= CANDIDATE_SLOTS / 2)
        return;
    u32 slot = (u32)((text * 0x9E3779B97F4A7C15u + length) >> 40) & (CANDIDATE_SLOTS - 1);
    while (work->candidates[slot].length &&
           (work->candidates[slot].text != text || work->candidates[slot].length != length))
        slot = (slot + 1) & (CANDIDATE_SLOTS - 1);
    struct candidate *candidate = &work->candidates[slot];
    if (!candidate->length) {
        candidate->text = text, candidate->length = length, candidate->gain = 0;
        work->used[(*proposed)++] = slot;
    }
    candidate->gain += gain;
}

/* Restore the heap of the best candidates below `at`. Its root is the candidate with the smallest gain. */
static void sink(struct training *work, u32 at, u32 size) {
    for (;;) {
        u32 child = 2 * at + 1;
        if (child >= size)
            return;
        if (child + 1 < size &&
            work->candidates[work->best[child + 1]].gain < work->candidates[work->best[child]].gain)
            child++;
        if (work->candidates[work->best[at]].gain <= work->candidates[work->best[child]].gain)
            return;
        u32 moved = work->best[at];
        work->best[at] = work->best[child];
        work->best[child] = moved;
        at = child;
    }
}

static void choose(struct training *work, u32 proposed) {
    u32 size = proposed < SYMBOLS ? proposed : SYMBOLS;
    for (u32 index = 0; index < size; index++)
        work->best[index] = work->used[index];
    for (u32 at = size / 2; at-- > 0;)
        sink(work, at, size);
    for (u32 index = size; index < proposed; index++)
        if (work->candidates[work->used[index]].gain > work->candidates[work->best[0]].gain) {
            work->best[0] = work->used[index];
            sink(work, 0, size);
        }
    work->symbols.count = size;
    for (u32 code = 0; code < size; code++) {
        work->symbols.texts[code] = work->candidates[work->best[code]].text;
        work->symbols.lengths[code] = (u8)work->candidates[work->best[code]].length;
    }
    for (u32 index = 0; index < proposed; index++)
        work->candidates[work->used[index]].length = 0;
}

EXPORT u64 f3_training_bytes(void) { return sizeof(struct training); }

/* Train a symbol table for texts like the sample, and return the number of symbols. `work` is zeroed memory of
 * f3_training_bytes() bytes, and the table is at its start. */
EXPORT u32 f3_train(const u8 *sample, u64 bytes, struct training *work) {
    for (u32 generation = 0; generation < GENERATIONS; generation++) {
        make_matcher(&work->symbols, &work->matcher);
        count_pairs(work, sample, bytes);
        u32 proposed = 0;
        for (u32 first = 0; first < IDS; first++) {
            if (!work->alone[first])
                continue;
            u32 length = length_of(work, first);
            /* The gain of single bytes is multiplied by 8, because a byte without a symbol takes two bytes. */
            propose(work, &proposed, text_of(work, first), length, work->alone[first] * length * (length == 1 ? 8 : 1));
            if (generation + 1 == GENERATIONS || length == 8)
                continue;
            for (u32 second = 0; second < IDS; second++) {
                u32 seen = work->pairs[first][second];
                if (seen < 2)
                    continue;
                u32 both = length + length_of(work, second);
                if (both > 8)
                    both = 8;
                u64 text = (text_of(work, first) | text_of(work, second) << (8 * length)) & mask_of(both);
                propose(work, &proposed, text, both, seen * both);
            }
        }
        choose(work, proposed);
    }
    make_matcher(&work->symbols, &work->matcher);
    return work->symbols.count;
}

/* Encode bytes as codes; `out` needs space for twice the input. Return the bytes written. */
EXPORT u64 f3_to_symbols(const struct training *work, const u8 *in, u64 bytes, u8 *out) {
    u8 *to = out;
    for (u64 at = 0; at < bytes;) {
        u64 text = text_at(in + at, bytes - at);
        u32 code = match(&work->symbols, &work->matcher, text, bytes - at);
        if (code) {
            *to++ = (u8)(code - 1);
            at += work->symbols.lengths[code - 1];
        } else {
            *to++ = 255;
            *to++ = in[at++];
        }
    }
    return (u64)(to - out);
}
