/* Encode all columns of a leaf of the store (a group of documents) in one call, and merge a column of several leaves in
   one call. */

#include "chunk.h"
#include "gather.h"

/* Encode all columns except the key's. Parameters are as in `ds_assemble`. Chunk i ends at `ends[i]` in `made`, which
   the caller frees. It is empty if all levels are 0. `codes` gets two codes for each column (see encode_column). */
EXPORT int ds_encode_columns(uint64_t node_count, const int32_t *parents, const uint8_t *kinds, const uint8_t *names,
                             const uint64_t *name_offsets, const uint8_t *const *levels, const uint64_t *level_counts,
                             const uint8_t *const *values, const uint64_t *value_counts, const uint64_t *value_bytes,
                             const int64_t *const *offsets, uint64_t most_levels, uint64_t most_bytes, uint64_t *ends,
                             uint64_t *codes, uint8_t **made) {
    tree all;
    buffer scratch = {0}, out = {0};
    (void)value_bytes;
    *made = NULL;
    int fault = tree_of(&all, node_count, parents, kinds, names, name_offsets, UINT32_MAX);
    for (uint64_t i = 0; !fault && i < all.size; i++) {
        const node *leaf = all.nodes[i];
        if (is_nested(leaf->kind)) continue;
        uint32_t number = leaf->leaf;
        wanted properties = wanted_of(leaf, most_levels, most_bytes);
        if (number)
            fault = encode_column(&properties, levels[number], level_counts[number], values[number], offsets[number],
                                  value_counts[number], &scratch, &out, codes + 2 * number);
        ends[number] = out.size;
    }
    free_tree(&all);
    free(scratch.data);
    *made = out.data;
    return fault;
}

static uint64_t records_of(const decoded *column, const wanted *leaf) {
    if (!leaf->outermost_level) return column->level_count;
    uint8_t mask = (uint8_t)((1 << (leaf->width - 1)) - 1);
    uint64_t records = 0;
    for (uint64_t i = 0; i < column->level_count; i++) records += (column->levels[i] & mask) < leaf->outermost_level;
    return records;
}

/* Decode one input. If `chunk` is NULL, no record of the input has the column. */
static int decode_input(const uint8_t *chunk, uint64_t size, uint64_t records, const wanted *leaf, decoded *made) {
    if (chunk) {
        int fault = decode_chunk(chunk, size, leaf, NULL, made);
        return fault || records_of(made, leaf) == records ? fault : FAULTY;
    }
    made->level_count = records;
    made->levels = calloc(records + 1, 1);
    made->values = calloc(1, 8);
    made->offsets = calloc(1, 8);
    return made->levels && made->values && made->offsets ? FINE : NO_MEMORY;
}

static int take_records(const wanted *leaf, const decoded *inputs, uint64_t count, const int64_t *ordinals,
                        uint64_t taken, decoded *made) {
    uint64_t sizes[3], width = leaf->kind == INTEGER || leaf->kind == DOUBLE ? 8 : 1;
    int is_text = leaf->kind == TEXT || leaf->kind == BINARY || leaf->kind == REST;
    int which = leaf->kind == NUL || leaf->kind == MARKER ? NO_VALUES : OF_LARGEST;
    /* Six arrays with an entry for each input. */
    uint64_t *numbers = malloc((count + 1) * 48);
    if (!numbers) return NO_MEMORY;
    uint64_t *value_counts = numbers + count, *value_bytes = value_counts + count;
    const uint8_t **levels = (const uint8_t **)(void *)(value_bytes + count), **values = levels + count;
    const int64_t **offsets = (const int64_t **)(void *)(values + count);
    for (uint64_t i = 0; i < count; i++) {
        levels[i] = inputs[i].levels;
        values[i] = inputs[i].values;
        offsets[i] = inputs[i].offsets;
        numbers[i] = inputs[i].level_count;
        value_counts[i] = inputs[i].value_count;
        value_bytes[i] = inputs[i].value_bytes;
    }
    gatherer *found = NULL;
    int fault = ds_find_records(count, levels, numbers, values, value_counts, value_bytes, offsets,
                                (1 << (leaf->width - 1)) - 1, leaf->outermost_level, leaf->max_level, which,
                                is_text ? 0 : width, ordinals, taken, sizes, &found);
    if (!fault) {
        made->level_count = sizes[0];
        made->value_count = sizes[1];
        made->value_bytes = is_text ? sizes[2] : sizes[1] * width;
        made->levels = malloc(sizes[0] + 1);
        made->values = malloc(made->value_bytes + 8);
        made->offsets = malloc((sizes[1] + 1) * 8);
        if (!made->levels || !made->values || !made->offsets) fault = NO_MEMORY;
        else ds_take_records(found, made->levels, made->values, made->offsets);
    }
    ds_free_gatherer(found);
    free(numbers);
    return fault;
}

/* Encode the records at `ordinals` as one chunk of `size` bytes in `made`. Records are numbered across all inputs.
   `records` has the number of records of each input. The chunk of an input is NULL if none of its records has the
   column. */
EXPORT int ds_merge_column(int kind, int max_level, int width, int array_level, int outermost_level,
                           uint64_t most_levels, uint64_t most_bytes, uint64_t count, const uint8_t *const *chunks,
                           const uint64_t *sizes, const uint64_t *records, const int64_t *ordinals, uint64_t taken,
                           uint64_t *codes, uint64_t *size, uint8_t **made) {
    wanted leaf = {kind, 0, max_level, width, array_level, outermost_level, 0, most_levels, most_bytes};
    decoded *inputs = calloc(count + 1, sizeof(decoded)), column = {0};
    buffer scratch = {0}, out = {0};
    int fault = inputs ? FINE : NO_MEMORY;
    for (uint64_t i = 0; !fault && i < count; i++) fault = decode_input(chunks[i], sizes[i], records[i], &leaf, &inputs[i]);
    if (!fault) fault = take_records(&leaf, inputs, count, ordinals, taken, &column);
    for (uint64_t i = 0; inputs && i < count; i++) free_decoded(&inputs[i]);
    free(inputs);
    if (!fault)
        fault = encode_column(&leaf, column.levels, column.level_count, column.values, column.offsets,
                              column.value_count, &scratch, &out, codes);
    free_decoded(&column);
    free(scratch.data);
    *size = out.size;
    *made = out.data;
    return fault;
}
