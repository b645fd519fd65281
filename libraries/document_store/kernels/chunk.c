/* Chunks of columns: write and read Parquet's encodings. encodings/ is the specification and produces the same bytes.

   Chunks are untrusted. Every count is checked against the remaining bytes and the caller's limits. Encoding writes to
   the caller's buffers. Decoding allocates the arrays of `decoded`, which free_decoded releases. */

#include "chunk.h"
#include "texts.h"

enum { GROUP = 8, SHORTEST_RUN = 8, MOST_GROUPS = 63, BLOCK = 128, MINIBLOCKS = 4, MINIBLOCK = 32 };
/* PADDING: readable bytes after packed values. MOST_IN_A_WORD: the maximum width of a value that fits in one word at
   any bit offset. PIECE: bytes of a text that are copied at once. */
enum { PADDING = 16, MOST_IN_A_WORD = 57, PIECE = 16 };
/* LONGEST_CODED: maximum bytes of a text that gets a code. NO_TEXT: temporary code of a level without a text, used
   until the number of distinct texts is known. */
enum { LONGEST_CODED = 256, NO_TEXT = 255 };

typedef struct {
    uint8_t *at, *end;
} writer;

static int put(writer *to, const void *data, uint64_t size) {
    if ((uint64_t)(to->end - to->at) < size) return NO_ROOM;
    if (size) memcpy(to->at, data, size);
    to->at += size;
    return FINE;
}

static int put_varint(writer *to, uint64_t value) {
    uint8_t bytes[10];
    unsigned size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    return put(to, bytes, size);
}

static int put_zigzag(writer *to, int64_t value) {
    return put_varint(to, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static int get_varint(reader *from, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (from->at >= from->end) return FAULTY;
        uint8_t byte = *from->at++;
        if (shift == 63 && byte > 1) return FAULTY;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return FINE;
    }
    return FAULTY;
}

static int get_zigzag(reader *from, int64_t *value) {
    uint64_t bits;
    if (get_varint(from, &bits)) return FAULTY;
    *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return FINE;
}

/* --- values of a few bits ------------------------------------------------------------------------------- */

/* Write `count` (a multiple of 8) values of `width` bits, lowest bit first. */
static int put_packed(writer *to, const uint64_t *values, unsigned count, unsigned width) {
    uint64_t size = (uint64_t)count * width / 8, bits = 0;
    unsigned used = 0;
    if ((uint64_t)(to->end - to->at) < size) return NO_ROOM;
    uint8_t *at = to->at;
    for (unsigned i = 0; width && i < count; i++) {
        bits |= values[i] << used;
        if (used + width < 64) {
            used += width;
            continue;
        }
        memcpy(at, &bits, 8);
        at += 8;
        bits = used ? values[i] >> (64 - used) : 0;
        used = used + width - 64;
    }
    if (used) memcpy(at, &bits, (used + 7) / 8);
    to->at += size;
    return FINE;
}

/* The next two functions may read PADDING bytes after the values. */
static inline uint64_t unpack_narrow(const uint8_t *padded, unsigned index, unsigned width) {
    uint64_t bit = (uint64_t)index * width, word;
    memcpy(&word, padded + bit / 8, 8);
    return word >> (bit & 7) & ((1ull << width) - 1);
}

static inline uint64_t unpack_one(const uint8_t *padded, unsigned index, unsigned width) {
    uint64_t bit = (uint64_t)index * width, low, mask = width == 64 ? ~0ull : (1ull << width) - 1;
    unsigned shift = bit & 7;
    memcpy(&low, padded + bit / 8, 8);
    low >>= shift;
    if (shift + width > 64) low |= (uint64_t)padded[bit / 8 + 8] << (64 - shift);
    return low & mask;
}

/* --- levels and booleans: RLE and bit-packed ------------------------------------------------------------ */

static int put_small(writer *to, const uint8_t *values, uint64_t count, unsigned width) {
    uint64_t place = 0, run_end = 0;
    while (place < count) {
        if (run_end <= place)
            for (run_end = place + 1; run_end < count && values[run_end] == values[place];) run_end++;
        if (run_end - place >= SHORTEST_RUN) {
            if (put_varint(to, (run_end - place) << 1) || put(to, values + place, 1)) return NO_ROOM;
            place = run_end;
            continue;
        }
        uint64_t first = place, groups = 0;
        while (place < count && groups < MOST_GROUPS) {
            if (run_end <= place)
                for (run_end = place + 1; run_end < count && values[run_end] == values[place];) run_end++;
            if (run_end - place >= SHORTEST_RUN) break;
            place += GROUP;
            groups++;
        }
        if (put_varint(to, groups << 1 | 1)) return NO_ROOM;
        for (; groups; groups--, first += GROUP) {
            uint64_t group[GROUP] = {0};
            for (unsigned i = 0; i < GROUP && first + i < count; i++) group[i] = values[first + i];
            if (put_packed(to, group, GROUP, width)) return NO_ROOM;
        }
    }
    return FINE;
}

/* A group of 8 values of up to 8 bits fits in one word. */
static int get_small(reader from, uint8_t *values, uint64_t count, unsigned width) {
    uint64_t place = 0, mask = (1ull << width) - 1;
    while (place < count) {
        uint64_t header, left = count - place;
        if (get_varint(&from, &header) || header >> 1 == 0) return FAULTY;
        uint64_t length = header >> 1;
        if (!(header & 1)) {
            if (length > left || from.at >= from.end || *from.at >> width) return FAULTY;
            memset(values + place, *from.at++, length);
            place += length;
            continue;
        }
        if (length > (left + GROUP - 1) / GROUP || length * width > (uint64_t)(from.end - from.at)) return FAULTY;
        for (uint64_t group = 0; group < length; group++, from.at += width) {
            uint64_t word = 0;
            memcpy(&word, from.at, from.end - from.at >= 8 ? 8 : width);
            unsigned due = count - place < GROUP ? (unsigned)(count - place) : GROUP;
            if (due == GROUP)
                for (unsigned i = 0; i < GROUP; i++) values[place + i] = (uint8_t)(word >> i * width & mask);
            else
                for (unsigned i = 0; i < due; i++) values[place + i] = (uint8_t)(word >> i * width & mask);
            place += due;
        }
    }
    return from.at == from.end ? FINE : FAULTY;
}

/* --- integers: DELTA_BINARY_PACKED ---------------------------------------------------------------------- */

static int put_deltas(writer *to, const int64_t *values, uint64_t count) {
    if (put_varint(to, BLOCK) || put_varint(to, MINIBLOCKS) || put_varint(to, count)) return NO_ROOM;
    if (put_zigzag(to, count ? values[0] : 0)) return NO_ROOM;
    for (uint64_t start = 1; start < count; start += BLOCK) {
        unsigned size = count - start < BLOCK ? (unsigned)(count - start) : BLOCK;
        uint64_t deltas[BLOCK] = {0};
        int64_t lowest = INT64_MAX;
        for (unsigned i = 0; i < size; i++) {
            deltas[i] = (uint64_t)values[start + i] - (uint64_t)values[start + i - 1];
            if ((int64_t)deltas[i] < lowest) lowest = (int64_t)deltas[i];
        }
        for (unsigned i = 0; i < size; i++) deltas[i] -= (uint64_t)lowest;
        uint8_t widths[MINIBLOCKS];
        for (unsigned part = 0; part < MINIBLOCKS; part++) {
            uint64_t all = 0;
            for (unsigned i = 0; i < MINIBLOCK; i++) all |= deltas[part * MINIBLOCK + i];
            widths[part] = all ? (uint8_t)(64 - __builtin_clzll(all)) : 0;
        }
        if (put_zigzag(to, lowest) || put(to, widths, MINIBLOCKS)) return NO_ROOM;
        for (unsigned part = 0; part * MINIBLOCK < size; part++)
            if (put_packed(to, deltas + part * MINIBLOCK, MINIBLOCK, widths[part])) return NO_ROOM;
    }
    return FINE;
}

/* Read past exactly `count` integers, and decode at least the first `needed` of them into `values`. */
static int get_some_deltas(reader *from, int64_t *values, uint64_t count, uint64_t needed) {
    uint64_t block, miniblocks, there;
    int64_t first;
    if (get_varint(from, &block) || get_varint(from, &miniblocks) || get_varint(from, &there)) return FAULTY;
    if (get_zigzag(from, &first) || block != BLOCK || miniblocks != MINIBLOCKS || there != count) return FAULTY;
    if (!count) return FINE;
    uint64_t last = (uint64_t)(values[0] = first);
    for (uint64_t start = 1; start < count; start += BLOCK) {
        int64_t lowest;
        if (get_zigzag(from, &lowest) || from->end - from->at < MINIBLOCKS) return FAULTY;
        const uint8_t *widths = from->at;
        from->at += MINIBLOCKS;
        for (unsigned part = 0; part < MINIBLOCKS; part++)
            if (widths[part] > 64) return FAULTY;
        for (unsigned part = 0; part < MINIBLOCKS && start + part * MINIBLOCK < count; part++) {
            uint64_t place = start + part * MINIBLOCK, size = MINIBLOCK / 8 * (uint64_t)widths[part];
            unsigned due = count - place < MINIBLOCK ? (unsigned)(count - place) : MINIBLOCK;
            if ((uint64_t)(from->end - from->at) < size) return FAULTY;
            if (place >= needed) {
                from->at += size;
                continue;
            }
            if (widths[part] == 0) {
                for (unsigned i = 0; i < due; i++) values[place + i] = (int64_t)(last += (uint64_t)lowest);
                continue;
            }
            uint8_t copy[MINIBLOCK * 8 + PADDING];
            const uint8_t *padded = from->at;
            if ((uint64_t)(from->end - from->at) < size + PADDING) {
                memcpy(copy, from->at, size);
                memset(copy + size, 0, PADDING);
                padded = copy;
            }
            if (widths[part] <= MOST_IN_A_WORD)
                for (unsigned i = 0; i < due; i++)
                    values[place + i] = (int64_t)(last += unpack_narrow(padded, i, widths[part]) + (uint64_t)lowest);
            else
                for (unsigned i = 0; i < due; i++)
                    values[place + i] = (int64_t)(last += unpack_one(padded, i, widths[part]) + (uint64_t)lowest);
            from->at += size;
        }
    }
    return FINE;
}

static int get_deltas(reader *from, int64_t *values, uint64_t count) {
    return get_some_deltas(from, values, count, count);
}

/* Integers in arrays are stored as two sequences: the first integer of each innermost array, and the running sums of
   the differences within arrays (delta.py). */
typedef struct {
    const uint8_t *levels;
    uint64_t count;
    uint8_t max_level, mask, array_level;
} places_in_arrays;

static int put_in_arrays(writer *to, const places_in_arrays *in, const int64_t *values, uint64_t count) {
    int64_t *firsts = malloc((count + 1) * 16);
    if (!firsts) return NO_MEMORY;
    int64_t *sums = firsts + count;
    uint64_t value = 0, first_count = 0, sum_count = 0, sum = 0;
    int is_first = 1;
    for (uint64_t i = 0; i < in->count && value < count; i++) {
        if ((in->levels[i] & in->mask) < in->array_level) is_first = 1;
        if (in->levels[i] != in->max_level) continue;
        if (is_first) firsts[first_count++] = values[value];
        else sums[sum_count++] = (int64_t)(sum += (uint64_t)values[value] - (uint64_t)values[value - 1]);
        is_first = 0;
        value++;
    }
    int fault = put_deltas(to, firsts, first_count) || put_deltas(to, sums, sum_count) ? NO_ROOM : FINE;
    free(firsts);
    return fault;
}

static int get_in_arrays(reader *from, const places_in_arrays *in, int64_t *values, uint64_t count) {
    uint64_t value = 0, first_count = 0;
    int is_first = 1;
    for (uint64_t i = 0; i < in->count; i++) {
        if ((in->levels[i] & in->mask) < in->array_level) is_first = 1;
        if (in->levels[i] != in->max_level) continue;
        first_count += (uint64_t)is_first;
        is_first = 0;
        value++;
    }
    if (value != count) return FAULTY;
    int64_t *firsts = malloc((count + 1) * 8);
    if (!firsts) return NO_MEMORY;
    int64_t *sums = firsts + first_count;
    int fault = get_deltas(from, firsts, first_count) || get_deltas(from, sums, count - first_count) ? FAULTY : FINE;
    uint64_t first = 0, sum = 0, before = 0;
    is_first = 1;
    value = 0;
    for (uint64_t i = 0; !fault && i < in->count; i++) {
        if ((in->levels[i] & in->mask) < in->array_level) is_first = 1;
        if (in->levels[i] != in->max_level) continue;
        if (is_first) {
            values[value] = firsts[first++];
        } else {
            values[value] = (int64_t)((uint64_t)values[value - 1] + (uint64_t)sums[sum] - before);
            before = (uint64_t)sums[sum++];
        }
        is_first = 0;
        value++;
    }
    free(firsts);
    return fault;
}

/* --- doubles: decimals as integers, else plain (decimals.py) ---------------------------------------------- */

enum { PLAIN = 255, MOST_PLACES = 15 };
static const double POWERS[MOST_PLACES + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
static const double MOST_INTEGER = 2251799813685248.0;

/* Set `integer` so that dividing it by 10^places gives the value. Return whether it gives the same bits. */
static inline int as_decimal(double value, unsigned places, int64_t *integer) {
    double scaled = value * POWERS[places];
    if (!(scaled <= MOST_INTEGER && scaled >= -MOST_INTEGER)) return 0;
    *integer = (int64_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    double back = (double)*integer / POWERS[places];
    return !memcmp(&back, &value, sizeof back);
}

static int put_doubles(writer *to, const double *values, uint64_t count) {
    int64_t *integers = malloc((count + 1) * 8);
    if (!integers) return NO_MEMORY;
    unsigned places = 0;
    for (uint64_t done = 0; done < count && places <= MOST_PLACES;) {
        if (as_decimal(values[done], places, integers + done)) done++;
        else done = 0, places++;
    }
    uint8_t byte = (uint8_t)(places > MOST_PLACES ? PLAIN : places);
    int fault = put(to, &byte, 1);
    if (!fault) fault = byte == PLAIN ? put(to, values, count * 8) : put_deltas(to, integers, count);
    free(integers);
    return fault;
}

static int get_doubles(reader *from, double *values, uint64_t count) {
    if (from->at >= from->end) return FAULTY;
    unsigned places = *from->at++;
    if (places == PLAIN) {
        if ((uint64_t)(from->end - from->at) != count * 8) return FAULTY;
        memcpy(values, from->at, count * 8);
        from->at = from->end;
        return FINE;
    }
    int64_t *integers = (int64_t *)(void *)values;
    if (places > MOST_PLACES || get_deltas(from, integers, count)) return FAULTY;
    for (uint64_t i = 0; i < count; i++) {
        double value = (double)integers[i] / POWERS[places];
        memcpy(values + i, &value, sizeof value);
    }
    return FINE;
}

/* --- texts: DELTA_BYTE_ARRAY, keys plain ---------------------------------------------------------------- */

static uint64_t shared_bytes(const uint8_t *one, uint64_t one_size, const uint8_t *two, uint64_t two_size) {
    uint64_t most = one_size < two_size ? one_size : two_size, shared = 0, a, b;
    for (; shared + 8 <= most; shared += 8) {
        memcpy(&a, one + shared, 8);
        memcpy(&b, two + shared, 8);
        if (a != b) return shared + (uint64_t)__builtin_ctzll(a ^ b) / 8;
    }
    while (shared < most && one[shared] == two[shared]) shared++;
    return shared;
}

static int put_texts(writer *to, const int64_t *offsets, const uint8_t *data, uint64_t count) {
    int64_t *lengths = malloc(count * 16);
    if (!lengths) return NO_MEMORY;
    int64_t *prefixes = lengths + count;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *one = data + offsets[i];
        uint64_t size = (uint64_t)(offsets[i + 1] - offsets[i]);
        uint64_t before = i ? (uint64_t)(offsets[i] - offsets[i - 1]) : 0;
        prefixes[i] = i ? (int64_t)shared_bytes(data + offsets[i - 1], before, one, size) : 0;
        lengths[i] = (int64_t)size - prefixes[i];
    }
    int fault = put_deltas(to, prefixes, count) || put_deltas(to, lengths, count) ? NO_ROOM : FINE;
    for (uint64_t i = 0; !fault && i < count; i++) fault = put(to, data + offsets[i] + prefixes[i], (uint64_t)lengths[i]);
    free(lengths);
    return fault;
}

/* Find the end of each text from its shared prefix and suffix lengths; FAULTY unless they use all `left` bytes. */
static int end_texts(const int64_t *prefixes, const int64_t *lengths, uint64_t count, uint64_t left, uint64_t most,
                     int64_t *offsets) {
    uint64_t total = 0, before = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t shared = (uint64_t)prefixes[i], more = (uint64_t)lengths[i];
        if (shared > before || more > left || total + shared + more > most) return FAULTY;
        left -= more;
        before = shared + more;
        total += before;
        offsets[i + 1] = (int64_t)total;
    }
    return left ? FAULTY : FINE;
}

/* Copy a text as one piece of fixed size if it is short, as most texts are, and if a whole piece can be read
   (`has_piece`). The next text overwrites the excess bytes. */
static inline void copy_text(uint8_t *to, const uint8_t *from, uint64_t size, int has_piece) {
    uint64_t piece[PIECE / 8];
    if (size > PIECE || !has_piece) {
        if (size) memcpy(to, from, size);
        return;
    }
    memcpy(piece, from, PIECE);
    memcpy(to, piece, PIECE);
}

/* `data` has room for all texts and PIECE more bytes. */
static void join_texts(reader from, const int64_t *prefixes, const int64_t *lengths, uint64_t count, const int64_t *offsets,
                       uint8_t *data) {
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *to = data + offsets[i];
        uint64_t shared = (uint64_t)prefixes[i], more = (uint64_t)lengths[i];
        if (shared) copy_text(to, data + offsets[i - 1], shared, 1);
        copy_text(to + shared, from.at, more, from.end - from.at >= PIECE);
        from.at += more;
    }
}

/* Decode texts as codes if few are distinct and none is long; otherwise return FINE and leave `made->codes` NULL. A
   prefix shared with the previous text stays in `text`, and a repeated text is not looked up again. */
static int code_texts(reader from, const int64_t *prefixes, const int64_t *lengths, int max_level, decoded *made) {
    uint64_t count = made->value_count, before = 0, kept = 0;
    uint8_t text[LONGEST_CODED + PIECE];
    different_texts known;
    start_texts(&known);
    uint8_t *codes = malloc(made->level_count), *data = malloc(MOST_TEXTS * LONGEST_CODED), code = 0;
    int fault = codes && data ? FINE : NO_MEMORY;
    uint64_t i = 0, level = 0;
    for (; !fault && i < count; i++) {
        uint64_t shared = (uint64_t)prefixes[i], more = (uint64_t)lengths[i];
        /* This loop stays inside `levels`, because exactly `count` of them are `max_level`. */
        while (made->levels[level] != max_level) codes[level++] = NO_TEXT;
        if (i && !more && shared == before) {
            codes[level++] = code;
            continue;
        }
        before = shared + more;
        if (before > LONGEST_CODED) break;
        copy_text(text + shared, from.at, more, from.end - from.at >= PIECE);
        from.at += more;
        int16_t *place = place_of(&known, text, before);
        if (*place < 0) {
            if (known.count == MOST_TEXTS) break;
            memcpy(data + kept, text, before);
            add_text(&known, place, data + kept, before);
            kept += before;
        }
        codes[level++] = code = (uint8_t)*place;
    }
    if (fault || i < count) {
        free(codes);
        free(data);
        return fault;
    }
    memset(codes + level, NO_TEXT, made->level_count - level);
    for (level = 0; level < made->level_count; level++)
        if (codes[level] == NO_TEXT) codes[level] = (uint8_t)known.count;
    for (uint64_t number = 0, end = 0; number < known.count; number++)
        made->offsets[number + 1] = (int64_t)(end += known.sizes[number]);
    made->codes = codes;
    made->different = known.count;
    made->values = data;
    made->value_bytes = kept;
    return FINE;
}

/* The range of levels and the range of values of one chosen record. */
typedef struct {
    uint64_t first_level, end_level, first_value, end_value;
} place;

/* Join only the texts of the chosen records. The bytes that a text shares with earlier texts come from the nearest
   earlier texts that store them. The search goes back at most to the last text that was joined, so that no text is
   searched twice. Texts after the last one that is joined are not checked. */
static int join_some_texts(reader from, const int64_t *prefixes, const int64_t *lengths, const place *places,
                           uint64_t count, uint64_t most, int64_t *offsets, buffer *out) {
    uint64_t value = 0, last_value = 0, last_start = 0, left = (uint64_t)(from.end - from.at);
    const uint8_t *at = from.at;
    for (uint64_t i = 0; i < count; i++) {
        for (; value < places[i].end_value; value++) {
            uint64_t missing = (uint64_t)prefixes[value], more = (uint64_t)lengths[value], before = value, start = out->size;
            if (more > left) return FAULTY;
            if (value >= places[i].first_value) {
                if (missing > most || start + missing + more > most) return FAULTY;
                if (reserve(out, missing + more + 1)) return NO_MEMORY;
                uint8_t *to = out->data + start;
                const uint8_t *suffix = at;
                if (more) memcpy(to + missing, at, more);
                while (missing) {
                    if (!before--) return FAULTY;
                    uint64_t shared = (uint64_t)prefixes[before], own = (uint64_t)lengths[before];
                    if (missing > shared && missing - shared > own) return FAULTY;
                    if (start && before == last_value) {
                        memcpy(to, out->data + last_start, missing);
                        break;
                    }
                    suffix -= own;
                    if (shared >= missing) continue;
                    memcpy(to + shared, suffix, missing - shared);
                    missing = shared;
                }
                out->size += (uint64_t)prefixes[value] + more;
                *++offsets = (int64_t)out->size;
                last_value = value;
                last_start = start;
            }
            at += more;
            left -= more;
        }
    }
    return FINE;
}

static int get_texts(reader from, const wanted *leaf, const place *places, uint64_t chosen, decoded *made) {
    uint64_t count = made->value_count;
    int64_t *lengths = malloc(count * 16 + 1);
    if (!lengths) return NO_MEMORY;
    int64_t *prefixes = lengths + count;
    uint64_t needed = places ? places[chosen - 1].end_value : count;
    int fault = get_some_deltas(&from, prefixes, count, needed) || get_some_deltas(&from, lengths, count, needed) ||
                        (!places && end_texts(prefixes, lengths, count, (uint64_t)(from.end - from.at), leaf->most_bytes, made->offsets))
                    ? FAULTY
                    : FINE;
    if (!fault && leaf->coded && !places) fault = code_texts(from, prefixes, lengths, leaf->max_level, made);
    if (!fault && places) {
        buffer out = {0};
        fault = join_some_texts(from, prefixes, lengths, places, chosen, leaf->most_bytes, made->offsets, &out);
        made->values = out.data;
        made->value_bytes = out.size;
    } else if (!fault && !made->codes) {
        made->value_bytes = (uint64_t)made->offsets[count];
        if (!(made->values = malloc(made->value_bytes + PIECE))) fault = NO_MEMORY;
        else join_texts(from, prefixes, lengths, count, made->offsets, made->values);
    }
    free(lengths);
    return fault;
}

static int put_plain_texts(writer *to, const int64_t *offsets, const uint8_t *data, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t size = (uint32_t)(offsets[i + 1] - offsets[i]);
        if (put(to, &size, 4) || put(to, data + offsets[i], size)) return NO_ROOM;
    }
    return FINE;
}

static int end_plain_texts(reader from, int64_t *offsets, uint64_t count, uint64_t most) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t size;
        if (from.end - from.at < 4) return FAULTY;
        memcpy(&size, from.at, 4);
        from.at += 4;
        if ((uint64_t)(from.end - from.at) < size || total + size > most) return FAULTY;
        from.at += size;
        total += size;
        offsets[i + 1] = (int64_t)total;
    }
    return from.at == from.end ? FINE : FAULTY;
}

static int get_plain_texts(reader from, decoded *made, uint64_t most) {
    if (end_plain_texts(from, made->offsets, made->value_count, most)) return FAULTY;
    made->value_bytes = (uint64_t)made->offsets[made->value_count];
    if (!(made->values = malloc(made->value_bytes + 1))) return NO_MEMORY;
    for (uint64_t i = 0; i < made->value_count; i++) {
        uint64_t size = (uint64_t)(made->offsets[i + 1] - made->offsets[i]);
        from.at += 4;
        if (size) memcpy(made->values + made->offsets[i], from.at, size);
        from.at += size;
    }
    return FINE;
}

/* --- chunks --------------------------------------------------------------------------------------------- */

static int is_text(int kind) { return kind == TEXT || kind == BINARY || kind == REST; }

/* Encode a column into `out`, and set `written` to the chunk's size. `array_level` is the level of the innermost array,
   0 outside arrays. */
EXPORT int ds_encode_chunk(int kind, int is_key, int max_level, int width, int array_level, const uint8_t *levels, uint64_t level_count,
                           const void *values, const int64_t *offsets, uint64_t value_count, uint8_t *out,
                           uint64_t capacity, uint8_t *scratch, uint64_t scratch_capacity, uint64_t *written) {
    writer part = {scratch, scratch + scratch_capacity}, to = {out, out + capacity};
    places_in_arrays in = {levels, level_count, (uint8_t)max_level, (uint8_t)((1 << (width - 1)) - 1), (uint8_t)array_level};
    uint32_t total = 0;
    int fault = put_small(&part, levels, level_count, (unsigned)width);
    fault = fault || put(&to, &total, 4) || put_zigzag(&to, max_level) || put_zigzag(&to, part.at - scratch) ||
            put_zigzag(&to, (int64_t)level_count) || put(&to, scratch, (uint64_t)(part.at - scratch));
    if (fault) return NO_ROOM;
    part.at = scratch;
    if (value_count) {
        if (is_text(kind)) fault = (is_key ? put_plain_texts : put_texts)(&part, offsets, values, value_count);
        else if (kind == DOUBLE) fault = put_doubles(&part, values, value_count);
        else if (is_key) fault = put(&part, values, value_count * 8);
        else if (kind == INTEGER && array_level) fault = put_in_arrays(&part, &in, values, value_count);
        else if (kind == INTEGER) fault = put_deltas(&part, values, value_count);
        else fault = put_small(&part, values, value_count, 1);
    }
    if (fault) return fault;
    fault = put_varint(&to, (uint64_t)(part.at - scratch)) || put(&to, scratch, (uint64_t)(part.at - scratch));
    if (fault || (uint64_t)(to.at - out) > UINT32_MAX) return NO_ROOM;
    *written = (uint64_t)(to.at - out);
    total = (uint32_t)*written;
    memcpy(out, &total, 4);
    return FINE;
}

static int decode_levels(reader *from, const wanted *leaf, decoded *made) {
    int64_t level, bytes, count;
    if (get_zigzag(from, &level) || get_zigzag(from, &bytes) || get_zigzag(from, &count)) return FAULTY;
    if (level != leaf->max_level || bytes < 0 || bytes > from->end - from->at) return FAULTY;
    if (count < 0 || (uint64_t)count > leaf->most_levels) return FAULTY;
    made->level_count = (uint64_t)count;
    if (!(made->levels = malloc((uint64_t)count + 1))) return NO_MEMORY;
    reader levels = {from->at, from->at + bytes};
    from->at += bytes;
    return get_small(levels, made->levels, made->level_count, (unsigned)leaf->width);
}

/* Count in parts whose sum fits in a byte, because compilers make such a loop much faster. */
static uint64_t occurrences(const uint8_t *levels, uint64_t count, uint8_t wanted_level) {
    uint64_t found = 0;
    while (count) {
        uint64_t size = count < 255 ? count : 255;
        uint8_t part = 0;
        for (uint64_t i = 0; i < size; i++) part += levels[i] == wanted_level;
        found += part;
        levels += size;
        count -= size;
    }
    return found;
}

/* Set `made->value_count` to the number of values that the levels require. FAULTY if the bytes cannot hold them. */
static int count_values(const reader *from, const wanted *leaf, decoded *made) {
    uint64_t present = leaf->is_key ? made->level_count : 0, bytes = (uint64_t)(from->end - from->at);
    if (!leaf->is_key && leaf->kind != NUL && leaf->kind != MARKER)
        present = occurrences(made->levels, made->level_count, (uint8_t)leaf->max_level);
    made->value_count = present;
    uint64_t blocks = present / (BLOCK + 1), least = blocks < 2 ? 0 : (blocks - 2) * (1 + MINIBLOCKS);
    if (leaf->is_key && leaf->kind == INTEGER) least = present * 8;
    else if (leaf->is_key) least = present * 4;
    else if (leaf->kind == BOOLEAN) least = 0;
    return !bytes != !present || bytes < least ? FAULTY : FINE;
}

static int decode_texts(const reader *from, const wanted *leaf, const place *places, uint64_t chosen, decoded *made) {
    if (!(made->offsets = malloc((made->value_count + 1) * 8))) return NO_MEMORY;
    made->offsets[0] = 0;
    if (made->value_count && leaf->is_key) return get_plain_texts(*from, made, leaf->most_bytes);
    if (made->value_count) return get_texts(*from, leaf, places, chosen, made);
    return (made->values = malloc(1)) ? FINE : NO_MEMORY;
}

static int decode_numbers(reader from, const wanted *leaf, decoded *made) {
    uint64_t count = made->value_count;
    made->value_bytes = count * (leaf->kind == INTEGER || leaf->kind == DOUBLE ? 8 : 1);
    if (!(made->values = malloc(made->value_bytes + 8))) return NO_MEMORY;
    if (!count) return FINE;
    int64_t *integers = (int64_t *)(void *)made->values;
    if (leaf->is_key) {
        if ((uint64_t)(from.end - from.at) != made->value_bytes) return FAULTY;
        memcpy(made->values, from.at, made->value_bytes);
        return FINE;
    }
    if (leaf->kind == BOOLEAN) return get_small(from, made->values, count, 1);
    int fault = FAULTY;
    if (leaf->kind == DOUBLE) fault = get_doubles(&from, (double *)(void *)made->values, count);
    if (leaf->kind == INTEGER) {
        places_in_arrays in = {made->levels, made->level_count, (uint8_t)leaf->max_level,
                               (uint8_t)((1 << (leaf->width - 1)) - 1), (uint8_t)leaf->array_level};
        fault = leaf->array_level ? get_in_arrays(&from, &in, integers, count) : get_deltas(&from, integers, count);
    }
    return fault || from.at == from.end ? fault : FAULTY;
}

/* Find the chosen records. FAULTY unless the levels form exactly `chosen->all` whole records. */
static int find_places(const decoded *made, const wanted *leaf, const choice *chosen, place *places) {
    uint8_t mask = (uint8_t)((1 << (leaf->width - 1)) - 1);
    int has_values = leaf->kind != NUL && leaf->kind != MARKER;
    uint64_t level = 0, value = 0, record = 0;
    for (uint64_t i = 0; i <= chosen->count; i++) {
        /* After the last chosen record, go through the rest to check the number of all records. */
        uint64_t next = i < chosen->count ? (uint64_t)chosen->numbers[i] : chosen->all;
        if (next > chosen->all || next < record || (i < chosen->count && next == chosen->all)) return FAULTY;
        for (int within = 0; within < 2; within++) {
            if (within && i == chosen->count) break;
            if (within) places[i].first_level = level, places[i].first_value = value;
            uint64_t end = next + (uint64_t)within, from = level;
            if (leaf->outermost_level) {
                for (; record < end && level < made->level_count; level++)
                    record += (made->levels[level] & mask) < leaf->outermost_level;
            } else {
                if (end > made->level_count) return FAULTY;
                level = record = end;
            }
            if (record < end) return FAULTY;
            if (has_values) value += occurrences(made->levels + from, level - from, (uint8_t)leaf->max_level);
            if (within) places[i].end_level = level, places[i].end_value = value;
        }
    }
    return level == made->level_count ? FINE : FAULTY;
}

/* Move the levels and values of the chosen records to the front. For texts (`width` is 0), only the levels have to
   move. */
static void keep_places(const place *places, uint64_t count, uint64_t width, decoded *made) {
    uint64_t levels = 0, values = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t more = places[i].end_level - places[i].first_level;
        memmove(made->levels + levels, made->levels + places[i].first_level, more);
        levels += more;
        more = places[i].end_value - places[i].first_value;
        if (width && more) memmove(made->values + values * width, made->values + places[i].first_value * width, more * width);
        values += more;
    }
    made->level_count = levels;
    made->value_count = values;
    if (width) made->value_bytes = values * width;
}

void free_decoded(decoded *made) {
    free(made->levels);
    free(made->values);
    free(made->offsets);
    free(made->codes);
}

EXPORT void ds_free_decoded(decoded *made) {
    if (!made) return;
    free_decoded(made);
    free(made);
}

int decode_chunk(const uint8_t *data, uint64_t size, const wanted *leaf, const choice *chosen, decoded *made) {
    uint32_t total;
    uint64_t bytes;
    if (size < 4) return FAULTY;
    memcpy(&total, data, 4);
    if (total < 4 || total > size) return FAULTY;
    reader from = {data + 4, data + total};
    int fault = decode_levels(&from, leaf, made);
    if (fault) return fault;
    if (get_varint(&from, &bytes) || bytes != (uint64_t)(from.end - from.at)) return FAULTY;
    fault = count_values(&from, leaf, made);
    if (fault) return fault;
    place *places = NULL;
    uint64_t count = 0;
    if (chosen) {
        if (leaf->is_key) return FAULTY;
        count = chosen->count;
        if (!(places = malloc((count + 1) * sizeof(place)))) return NO_MEMORY;
        fault = find_places(made, leaf, chosen, places);
        uint64_t values = 0;
        for (uint64_t i = 0; !fault && i < count; i++) values += places[i].end_value - places[i].first_value;
        /* Without values in the chosen records, the bytes of values need not be decoded. */
        if (!values) made->value_count = 0;
    }
    int has_texts = is_text(leaf->kind);
    if (!fault) fault = has_texts ? decode_texts(&from, leaf, places, count, made) : decode_numbers(from, leaf, made);
    if (!fault && chosen)
        keep_places(places, count, has_texts ? 0 : leaf->kind == INTEGER || leaf->kind == DOUBLE ? 8 : 1, made);
    free(places);
    return fault;
}

/* Decode the chunk at the start of `data`. `sizes` gets the number of levels, the number of values, the bytes of
   values, and the number of distinct texts (0 if texts are not coded). If `records` is not NULL, only these of the
   `all_records` records are decoded. The caller frees `made` with ds_free_decoded, even after an error. */
EXPORT int ds_decode_chunk(const uint8_t *data, uint64_t size, int kind, int is_key, int max_level, int width,
                           int array_level, int outermost_level, int coded, uint64_t most_levels, uint64_t most_bytes,
                           const int64_t *records, uint64_t record_count, uint64_t all_records, uint64_t *sizes,
                           decoded **made) {
    wanted leaf = {kind, is_key, max_level, width, array_level, outermost_level, coded, most_levels, most_bytes};
    choice chosen = {records, record_count, all_records};
    decoded *one = *made = calloc(1, sizeof(decoded));
    if (!one) return NO_MEMORY;
    int fault = decode_chunk(data, size, &leaf, records ? &chosen : NULL, one);
    sizes[0] = one->level_count;
    sizes[1] = one->value_count;
    sizes[2] = one->value_bytes;
    sizes[3] = one->different;
    return fault;
}

/* Copy a decoded chunk into arrays of the sizes that ds_decode_chunk returned. `offsets` is used only for texts, and
   has one entry more than there are texts in `values`. `codes` is used only if texts are coded. */
EXPORT void ds_copy_decoded(const decoded *made, uint8_t *levels, uint8_t *values, int64_t *offsets, uint8_t *codes) {
    memcpy(levels, made->levels, made->level_count);
    memcpy(values, made->values, made->value_bytes);
    if (made->offsets) memcpy(offsets, made->offsets, ((made->codes ? made->different : made->value_count) + 1) * 8);
    if (made->codes) memcpy(codes, made->codes, made->level_count);
}

wanted wanted_of(const node *leaf, uint64_t most_levels, uint64_t most_bytes) {
    wanted found = {.kind = (int)leaf->kind, .max_level = leaf->level, .most_levels = most_levels, .most_bytes = most_bytes};
    while (leaf->null_flag >> found.width) found.width++;
    for (const node *above = leaf->parent; above; above = above->parent) {
        if (above->kind != ARRAY) continue;
        if (!found.array_level) found.array_level = above->level;
        found.outermost_level = above->level;
    }
    return found;
}

/* --- the codes of prefixes.py ------------------------------------------------------------------------------ */

static const uint64_t SIGN = 1ull << 63;

static uint64_t code_of_text(const uint8_t *text, uint64_t size) {
    uint64_t code = 0;
    for (uint64_t i = 0; i < 8; i++) code = code << 8 | (i < size ? text[i] : 0);
    return code;
}

static uint64_t code_of_double(double value) {
    uint64_t bits;
    /* Adding 0.0 turns -0.0 into 0.0. */
    value += 0.0;
    memcpy(&bits, &value, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

static void find_codes(int kind, const void *values, const int64_t *offsets, uint64_t count, uint64_t codes[2]) {
    uint64_t low = UINT64_MAX, high = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t code;
        if (kind == DOUBLE) {
            double value = ((const double *)values)[i];
            if (value != value) continue;
            code = code_of_double(value);
        } else if (kind == INTEGER) {
            code = (uint64_t)((const int64_t *)values)[i] ^ SIGN;
        } else if (kind == BOOLEAN) {
            code = ((const uint8_t *)values)[i] != 0;
        } else {
            code = code_of_text((const uint8_t *)values + offsets[i], (uint64_t)(offsets[i + 1] - offsets[i]));
        }
        low = code < low ? code : low;
        high = code > high ? code : high;
    }
    codes[0] = kind == REST ? 0 : low;
    codes[1] = kind == REST ? UINT64_MAX : high;
}

int encode_column(const wanted *leaf, const uint8_t *levels, uint64_t level_count, const void *values,
                  const int64_t *offsets, uint64_t value_count, buffer *scratch, buffer *out, uint64_t codes[2]) {
    uint64_t written, bytes = is_text(leaf->kind) ? (uint64_t)offsets[value_count] : value_count * 8;
    codes[0] = UINT64_MAX;
    codes[1] = 0;
    if (occurrences(levels, level_count, 0) == level_count) return FINE;
    if (level_count > leaf->most_levels || (is_text(leaf->kind) && bytes > leaf->most_bytes)) return NO_ROOM;
    if (leaf->kind != NUL && leaf->kind != MARKER) find_codes(leaf->kind, values, offsets, value_count, codes);
    /* In the worst case, every group of eight bit-packed levels has a header, and so has every block of integers. */
    uint64_t of_levels = (level_count / 8 + 1) * ((uint64_t)leaf->width + 6), room = 64;
    room += bytes + 8 * value_count + (value_count / BLOCK + 1) * 2200;
    if (room < of_levels + 64) room = of_levels + 64;
    scratch->size = 0;
    if (reserve(scratch, room) || reserve(out, room + of_levels + 64)) return NO_MEMORY;
    int fault = ds_encode_chunk(leaf->kind, 0, leaf->max_level, leaf->width, leaf->array_level, levels, level_count,
                                values, offsets, value_count, out->data + out->size, out->capacity - out->size,
                                scratch->data, scratch->capacity, &written);
    if (!fault) out->size += written;
    return fault;
}
