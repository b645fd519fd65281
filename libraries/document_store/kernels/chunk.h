/* Decode the chunk of a column, completely or only some records, and encode a column as a chunk. */

#ifndef DOCUMENT_STORE_CHUNK_H
#define DOCUMENT_STORE_CHUNK_H

#include "tree.h"

/* A decoded chunk in allocated memory. Python copies it into arrays of the right size. If `codes` is not NULL, `values`
   has each distinct text once, and `different` is their number. Each level then has a code: the number of its text, or
   `different` if it has no value. */
typedef struct {
    uint64_t level_count, value_count, value_bytes, different;
    uint8_t *levels, *values;
    int64_t *offsets;
    uint8_t *codes;
} decoded;

/* The properties of a leaf, which its chunk must match. `array_level` and `outermost_level` are the levels of the
   innermost and the outermost array around the leaf, 0 outside arrays. If `coded` is set, texts are decoded as codes if
   possible. */
typedef struct {
    int kind, is_key, max_level, width, array_level, outermost_level, coded;
    uint64_t most_levels, most_bytes;
} wanted;

/* Return the properties of a leaf other than the key. */
wanted wanted_of(const node *leaf, uint64_t most_levels, uint64_t most_bytes);

/* The records to decode: `count` ascending numbers. The column has `all` records. */
typedef struct {
    const int64_t *numbers;
    uint64_t count, all;
} choice;

/* Decode all records, or those of `chosen` unless it is NULL. `made` is zeroed; `free_decoded` releases its arrays. */
int decode_chunk(const uint8_t *data, uint64_t size, const wanted *leaf, const choice *chosen, decoded *made);
void free_decoded(decoded *made);

/* Append the chunk of a column to `out`. Set `codes` to the codes of its lowest and highest value
   (layouts/prefixes.py). Nothing is appended if all levels are 0. NO_ROOM if the column exceeds the leaf's limits. */
int encode_column(const wanted *leaf, const uint8_t *levels, uint64_t level_count, const void *values,
                  const int64_t *offsets, uint64_t value_count, buffer *scratch, buffer *out, uint64_t codes[2]);

#endif
