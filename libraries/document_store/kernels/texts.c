/* Texts of a column: those that repeat as small numbers, beside a table of the few different ones; and some of all. */

#include "texts.h"

/* `codes` has room for `count`, `firsts` for MOST_TEXTS: where each different text occurs first. How many are different;
   MOST_TEXTS + 1 when there are more, and the codes are not all written. */
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

/* Copies the texts at `count` places, one behind the other, to where `out_offsets` says. */
EXPORT void ds_take_texts(uint64_t count, const int64_t *places, const int64_t *offsets, const uint8_t *data,
                          const int64_t *out_offsets, uint8_t *out) {
    for (uint64_t i = 0; i < count; i++)
        memcpy(out + out_offsets[i], data + offsets[places[i]], (size_t)(out_offsets[i + 1] - out_offsets[i]));
}
