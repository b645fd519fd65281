/* Take records from several columns of one leaf, in any order, into one column. record_selection.py is the
   specification. */

#include "gather.h"

typedef struct {
    const uint8_t *levels;
    uint64_t level_count;
    const uint8_t *values;
    uint64_t value_count, value_bytes;
    const int64_t *offsets;
    uint64_t first_record, records;
    /* The first token and the first value of each record, followed by the end of the last record. NULL if they are
       equal to the record's number. */
    uint64_t *tokens, *firsts;
} piece;

struct gatherer {
    piece *pieces;
    uint64_t count;
    /* Bytes per value; 0 for texts. */
    uint64_t width;
    const int64_t *ordinals;
    uint64_t taken;
};

/* Find the start of each record of a piece, in one pass over its levels. */
static int survey(piece *one, uint8_t mask, uint8_t array_level, uint8_t max_level, int which) {
    uint64_t records = one->level_count, values = 0;
    if (array_level) {
        records = 0;
        for (uint64_t i = 0; i < one->level_count; i++) records += (one->levels[i] & mask) < array_level;
        if (one->level_count && (one->levels[one->level_count - 1] & mask) >= array_level) return FAULTY;
        if (!(one->tokens = malloc((records + 1) * 8))) return NO_MEMORY;
        one->tokens[0] = 0;
    }
    one->records = records;
    if (which == OF_ALL) return array_level || one->value_count != one->level_count ? FAULTY : FINE;
    if (which == OF_LARGEST && !array_level && one->value_count == one->level_count) {
        /* Each record has one value, so a value has the same number as its record. */
        for (uint64_t i = 0; i < one->level_count; i++) values += one->levels[i] == max_level;
        if (values == one->value_count) return FINE;
        values = 0;
    }
    if (!(one->firsts = malloc((records + 1) * 8))) return NO_MEMORY;
    one->firsts[0] = 0;
    for (uint64_t i = 0, record = 0; i < one->level_count; i++) {
        values += which == OF_LARGEST && one->levels[i] == max_level;
        if (array_level && (one->levels[i] & mask) >= array_level) continue;
        one->firsts[++record] = values;
        if (array_level) one->tokens[record] = i + 1;
    }
    return values == one->value_count ? FINE : FAULTY;
}

static inline uint64_t token_of(const piece *one, uint64_t record) { return one->tokens ? one->tokens[record] : record; }
static inline uint64_t value_of(const piece *one, uint64_t record) { return one->firsts ? one->firsts[record] : record; }

/* Find the next run of consecutive records of one piece, from ordinal `*i` on. Return the piece, set the run's records
   [first, end) in it, and move `*i` past the run. Return NULL if no piece has the record. */
static const piece *next_run(const gatherer *g, uint64_t *i, uint64_t *last_piece, uint64_t *first, uint64_t *end) {
    uint64_t record = (uint64_t)g->ordinals[*i];
    const piece *one = &g->pieces[*last_piece];
    if (record - one->first_record >= one->records) {
        for (*last_piece = 0; *last_piece < g->count; ++*last_piece) {
            one = &g->pieces[*last_piece];
            if (record - one->first_record < one->records) break;
        }
        if (*last_piece == g->count) {
            *last_piece = 0;
            return NULL;
        }
    }
    uint64_t most = one->records - (record - one->first_record), length = 1;
    while (length < most && *i + length < g->taken && (uint64_t)g->ordinals[*i + length] == record + length) length++;
    *i += length;
    *first = record - one->first_record;
    *end = *first + length;
    return one;
}

EXPORT void ds_free_gatherer(gatherer *g) {
    if (!g) return;
    for (uint64_t i = 0; g->pieces && i < g->count; i++) {
        free(g->pieces[i].tokens);
        free(g->pieces[i].firsts);
    }
    free(g->pieces);
    free(g);
}

/* Find the records. `sizes` gets the number of their levels, the number of their values, and the bytes of their texts.
   The caller frees `made` with ds_free_gatherer, even after an error. */
EXPORT int ds_find_records(uint64_t count, const uint8_t *const *levels, const uint64_t *level_counts,
                           const uint8_t *const *values, const uint64_t *value_counts, const uint64_t *value_bytes,
                           const int64_t *const *offsets, int mask, int array_level, int max_level, int which,
                           uint64_t width, const int64_t *ordinals, uint64_t taken, uint64_t *sizes, gatherer **made) {
    gatherer *g = *made = calloc(1, sizeof(gatherer));
    if (!g) return NO_MEMORY;
    *g = (gatherer){calloc(count, sizeof(piece)), count, width, ordinals, taken};
    if (!g->pieces) return NO_MEMORY;
    uint64_t records = 0;
    for (uint64_t i = 0; i < count; i++) {
        piece *one = &g->pieces[i];
        *one = (piece){levels[i], level_counts[i], values[i], value_counts[i], value_bytes[i], offsets[i], records, 0, NULL, NULL};
        int fault = survey(one, (uint8_t)mask, (uint8_t)array_level, (uint8_t)max_level, which);
        if (fault) return fault;
        records += one->records;
        for (uint64_t value = 0; !width && value < one->value_count; value++)
            if (one->offsets[value] < 0 || one->offsets[value] > one->offsets[value + 1]) return FAULTY;
        if (!width && (uint64_t)one->offsets[one->value_count] > one->value_bytes) return FAULTY;
    }
    sizes[0] = sizes[1] = sizes[2] = 0;
    for (uint64_t i = 0, last = 0, first, end; i < taken;) {
        const piece *one = next_run(g, &i, &last, &first, &end);
        if (!one) return FAULTY;
        uint64_t from = value_of(one, first), to = value_of(one, end);
        sizes[0] += token_of(one, end) - token_of(one, first);
        sizes[1] += to - from;
        if (!width) sizes[2] += (uint64_t)(one->offsets[to] - one->offsets[from]);
    }
    return FINE;
}

/* Copy the tokens and values of the records that ds_find_records found. `offsets` is for texts; it starts with 0 and
   has one entry more than there are texts. */
EXPORT void ds_take_records(const gatherer *g, uint8_t *levels, uint8_t *values, int64_t *offsets) {
    int64_t bytes = 0;
    if (!g->width) *offsets++ = 0;
    for (uint64_t i = 0, last = 0, first, end; i < g->taken;) {
        const piece *one = next_run(g, &i, &last, &first, &end);
        if (!one) return;
        uint64_t token = token_of(one, first), tokens = token_of(one, end) - token;
        uint64_t from = value_of(one, first), to = value_of(one, end);
        memcpy(levels, one->levels + token, tokens);
        levels += tokens;
        if (from == to) continue;
        if (g->width) {
            memcpy(values, one->values + from * g->width, (to - from) * g->width);
            values += (to - from) * g->width;
            continue;
        }
        int64_t start = one->offsets[from], size = one->offsets[to] - start;
        if (size) memcpy(values, one->values + start, (uint64_t)size);
        values += size;
        for (uint64_t value = from; value < to; value++) *offsets++ = bytes + one->offsets[value + 1] - start;
        bytes += size;
    }
}
