/* Texts of a column: those that repeat as small numbers, beside a table of the few different ones; and some of all. */

#include "common.h"

enum { MOST_TEXTS = 256, ROOM = 1024 };

static uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint32_t half_word_at(const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static int are_same(const uint8_t *one, const uint8_t *other, uint64_t size) {
    if (size >= 8) return word_at(one) == word_at(other) && memcmp(one + 8, other + 8, size - 8) == 0;
    if (size >= 4)
        return half_word_at(one) == half_word_at(other) && half_word_at(one + size - 4) == half_word_at(other + size - 4);
    for (uint64_t i = 0; i < size; i++)
        if (one[i] != other[i]) return 0;
    return 1;
}

/* Of its length, its first and its last bytes: texts that share both are told apart by all of their bytes. */
static uint32_t hash_of_ends(const uint8_t *bytes, uint64_t size) {
    uint64_t first = 0, last = 0;
    if (size >= 8) {
        first = word_at(bytes);
        last = word_at(bytes + size - 8);
    } else if (size >= 4) {
        first = half_word_at(bytes);
        last = half_word_at(bytes + size - 4);
    } else if (size) {
        first = bytes[0] | (uint64_t)bytes[size / 2] << 8 | (uint64_t)bytes[size - 1] << 16;
    }
    uint64_t mixed = (first ^ size * 0x9E3779B97F4A7C15u) * 0xFF51AFD7ED558CCDu;
    mixed = (mixed ^ (mixed >> 32) ^ last) * 0xC4CEB9FE1A85EC53u;
    return (uint32_t)(mixed >> 40);
}

/* `codes` has room for `count`, `firsts` for MOST_TEXTS: where each different text occurs first. How many are different;
   MOST_TEXTS + 1 when there are more, and the codes are not all written. */
EXPORT uint64_t ds_text_codes(uint64_t count, const int64_t *offsets, const uint8_t *data, int32_t *codes, uint64_t *firsts) {
    int16_t table[ROOM];
    memset(table, 0xFF, sizeof table);
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *text = data + offsets[i];
        uint64_t size = (uint64_t)(offsets[i + 1] - offsets[i]);
        uint32_t place = hash_of_ends(text, size) & (ROOM - 1);
        for (;; place = (place + 1) & (ROOM - 1)) {
            int16_t code = table[place];
            if (code < 0) {
                if (found == MOST_TEXTS) return MOST_TEXTS + 1;
                table[place] = (int16_t)found;
                firsts[found] = i;
                codes[i] = (int32_t)found++;
                break;
            }
            int64_t start = offsets[firsts[code]];
            if ((uint64_t)(offsets[firsts[code] + 1] - start) == size && are_same(data + start, text, size)) {
                codes[i] = code;
                break;
            }
        }
    }
    return found;
}

/* Copies the texts at `count` places, one behind the other, to where `out_offsets` says. */
EXPORT void ds_take_texts(uint64_t count, const int64_t *places, const int64_t *offsets, const uint8_t *data,
                          const int64_t *out_offsets, uint8_t *out) {
    for (uint64_t i = 0; i < count; i++)
        memcpy(out + out_offsets[i], data + offsets[places[i]], (size_t)(out_offsets[i + 1] - out_offsets[i]));
}
