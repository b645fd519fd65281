/* A hash table of a few distinct texts. */

#ifndef DOCUMENT_STORE_TEXTS_H
#define DOCUMENT_STORE_TEXTS_H

#include "common.h"

/* MOST_TEXTS: the codes of texts, and one more code for a level without a text, fit in a byte. */
enum { MOST_TEXTS = 254, PLACES = 1024 };

/* `numbers` is a hash table of the texts' numbers, with -1 in free slots. The texts belong to the caller. */
typedef struct {
    int16_t numbers[PLACES];
    uint64_t count;
    const uint8_t *texts[MOST_TEXTS];
    uint64_t sizes[MOST_TEXTS];
} different_texts;

static inline uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline uint32_t half_word_at(const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline int are_same(const uint8_t *one, const uint8_t *other, uint64_t size) {
    if (size >= 8) return word_at(one) == word_at(other) && memcmp(one + 8, other + 8, size - 8) == 0;
    if (size >= 4)
        return half_word_at(one) == half_word_at(other) && half_word_at(one + size - 4) == half_word_at(other + size - 4);
    for (uint64_t i = 0; i < size; i++)
        if (one[i] != other[i]) return 0;
    return 1;
}

/* Hash the length, the first and the last bytes; texts that share them are compared completely. */
static inline uint32_t hash_of_ends(const uint8_t *bytes, uint64_t size) {
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

static inline void start_texts(different_texts *known) {
    memset(known->numbers, 0xFF, sizeof known->numbers);
    known->count = 0;
}

/* Return the slot of a text's number, or the slot where it belongs. */
static inline int16_t *place_of(different_texts *known, const uint8_t *text, uint64_t size) {
    uint32_t place = hash_of_ends(text, size) & (PLACES - 1);
    for (;; place = (place + 1) & (PLACES - 1)) {
        int16_t number = known->numbers[place];
        if (number < 0 || (known->sizes[number] == size && are_same(known->texts[number], text, size)))
            return known->numbers + place;
    }
}

/* Add a new text, which must stay in memory; the table must have room. */
static inline int16_t add_text(different_texts *known, int16_t *place, const uint8_t *text, uint64_t size) {
    known->texts[known->count] = text;
    known->sizes[known->count] = size;
    return *place = (int16_t)known->count++;
}

#endif
