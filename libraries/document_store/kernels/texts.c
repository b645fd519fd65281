/* Texts of a column: replace repeated texts by small codes, count bytes, and copy selected texts. */

#include "texts.h"

/* Replace texts by codes. `codes` has room for `count` codes. `firsts` gets the position at which each distinct text
   first occurs, and has room for MOST_TEXTS positions. Returns the number of distinct texts; MOST_TEXTS + 1 if there
   are more, with `codes` incomplete. */
EXPORT uint64_t ds_text_codes(uint64_t count, const int64_t *offsets, const uint8_t *data, int32_t *codes, uint64_t *firsts) {
    different_texts known;
    start_texts(&known);
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *text = data + offsets[i];
        uint64_t size = (uint64_t)(offsets[i + 1] - offsets[i]);
        int16_t *place = place_of(&known, text, size);
        if (*place < 0) {
            if (known.count == MOST_TEXTS) return MOST_TEXTS + 1;
            firsts[known.count] = i;
            add_text(&known, place, text, size);
        }
        codes[i] = *place;
    }
    return known.count;
}

/* Count how often each byte occurs. With several tables, equal consecutive bytes do not wait for the same counter. */
EXPORT void ds_count_bytes(uint64_t count, const uint8_t *bytes, uint64_t *counts) {
    uint32_t tables[4][256] = {{0}};
    while (count) {
        uint64_t size = count < UINT32_MAX ? count : UINT32_MAX, i = 0;
        for (; i + 4 <= size; i += 4)
            for (unsigned table = 0; table < 4; table++) tables[table][bytes[i + table]]++;
        for (; i < size; i++) tables[0][bytes[i]]++;
        for (unsigned byte = 0; byte < 256; byte++)
            for (unsigned table = 0; table < 4; table++) {
                counts[byte] += tables[table][byte];
                tables[table][byte] = 0;
            }
        bytes += size;
        count -= size;
    }
}

/* Copy the texts at `count` positions consecutively, to the offsets in `out_offsets`. */
EXPORT void ds_take_texts(uint64_t count, const int64_t *places, const int64_t *offsets, const uint8_t *data,
                          const int64_t *out_offsets, uint8_t *out) {
    for (uint64_t i = 0; i < count; i++)
        memcpy(out + out_offsets[i], data + offsets[places[i]], (size_t)(out_offsets[i + 1] - out_offsets[i]));
}
