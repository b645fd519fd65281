/* Assemble rows of MessagePack from columns (paper, section 3.4). assembly.py is the specification.

   Tokens may come from untrusted bytes. Every step is checked against the remaining tokens, and inconsistent columns
   end the call with an error. */

#include "chunk.h"
#include "tree.h"

typedef struct {
    const uint8_t *levels;
    uint64_t at, count;
    uint8_t mask;
    const uint8_t *values;
    uint64_t value_at, value_count, value_bytes;
    const int64_t *offsets;
} column;

/* The columns below a node: [first, last). */
typedef struct {
    uint32_t first, last;
} span;

typedef struct {
    tree all;
    column *columns;
    span *below;
    position **last_field;
    buffer out;
} assembler;

enum found { VALUE, IS_NULL, MISSING, BROKEN, EXHAUSTED };

static int put_sized(buffer *out, uint64_t size, unsigned small, uint8_t few, uint8_t eight, uint8_t sixteen) {
    uint8_t head[5];
    unsigned width;
    if (size <= small) {
        head[0] = (uint8_t)(few | size);
        return append(out, head, 1);
    }
    if (size <= 0xff && eight) head[0] = eight, width = 1;
    else if (size <= 0xffff) head[0] = sixteen, width = 2;
    else head[0] = (uint8_t)(sixteen + 1), width = 4;
    for (unsigned i = 0; i < width; i++) head[1 + i] = (uint8_t)(size >> 8 * (width - 1 - i));
    return append(out, head, 1 + width);
}

static int put_number(buffer *out, uint8_t head, uint64_t bits, unsigned width) {
    uint8_t all[9] = {head};
    for (unsigned i = 0; i < width; i++) all[1 + i] = (uint8_t)(bits >> 8 * (width - 1 - i));
    return append(out, all, 1 + width);
}

static int put_integer(buffer *out, int64_t value) {
    uint64_t bits = (uint64_t)value;
    uint8_t small = (uint8_t)value;
    if (value >= -32 && value < 128) return append(out, &small, 1);
    if (value >= 0)
        return bits <= 0xff         ? put_number(out, 0xcc, bits, 1)
               : bits <= 0xffff     ? put_number(out, 0xcd, bits, 2)
               : bits <= 0xffffffff ? put_number(out, 0xce, bits, 4)
                                    : put_number(out, 0xcf, bits, 8);
    return value >= INT8_MIN    ? put_number(out, 0xd0, bits, 1)
           : value >= INT16_MIN ? put_number(out, 0xd1, bits, 2)
           : value >= INT32_MIN ? put_number(out, 0xd2, bits, 4)
                                : put_number(out, 0xd3, bits, 8);
}

/* Write the value of the column's next token. The caller has checked that this token has a value. */
static enum found put_value(column *from, enum kind kind, buffer *out) {
    uint64_t at = from->value_at++, bits;
    if (at >= from->value_count) return BROKEN;
    from->at++;
    if (kind == BOOLEAN) {
        uint8_t head = from->values[at] ? 0xc3 : 0xc2;
        return append(out, &head, 1) ? EXHAUSTED : VALUE;
    }
    if (kind == INTEGER || kind == DOUBLE) {
        memcpy(&bits, from->values + 8 * at, 8);
        int fault = kind == DOUBLE ? put_number(out, 0xcb, bits, 8) : put_integer(out, (int64_t)bits);
        return fault ? EXHAUSTED : VALUE;
    }
    int64_t start = from->offsets[at], end = from->offsets[at + 1];
    if (start < 0 || end < start || (uint64_t)end > from->value_bytes) return BROKEN;
    uint64_t size = (uint64_t)(end - start);
    if (kind == TEXT && !is_utf8(from->values + start, size)) return BROKEN;
    int fault = kind == TEXT ? put_sized(out, size, 31, 0xa0, 0xd9, 0xda)
                             : put_number(out, size <= 0xff ? 0xc4 : size <= 0xffff ? 0xc5 : 0xc6, size,
                                          size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
    return fault || append(out, from->values + start, size) ? EXHAUSTED : VALUE;
}

/* Write the header of an array or object in front of its contents, whose number is known only now. One byte at `start`
   was reserved for the header. */
static int close_nested(buffer *out, uint64_t start, uint64_t count, int is_object) {
    unsigned width = count <= 15 ? 1 : count <= 0xffff ? 3 : 5;
    if (reserve(out, width)) return NO_MEMORY;
    uint8_t *head = out->data + start;
    if (width > 1) memmove(head + width, head + 1, out->size - start - 1);
    out->size += width - 1;
    head[0] = width == 1 ? (uint8_t)((is_object ? 0x80 : 0x90) | count) : (uint8_t)((is_object ? 0xde : 0xdc) + (width == 5));
    for (unsigned i = 1; i < width; i++) head[i] = (uint8_t)(count >> 8 * (width - 1 - i));
    return FINE;
}

static inline int is_wanted(const assembler *a, const node *one) {
    return a->below[one->number].first < a->below[one->number].last;
}

static enum found put_object(assembler *a, const node *object);
static enum found put_array(assembler *a, const node *array);

/* Skip a branch without a value here. Each column below it has one token for this, with the level of the branch's
   parent. The token of the first column states whether the value is null; all others must agree. */
static enum found pass_by(assembler *a, const node *branch) {
    span below = a->below[branch->number];
    int is_null = a->columns[below.first].levels[a->columns[below.first].at] > a->columns[below.first].mask;
    for (uint32_t i = below.first; i < below.last; i++) {
        column *one = &a->columns[i];
        unsigned wanted = branch->level - 1u + (is_null ? one->mask + 1u : 0u);
        if (one->at >= one->count || one->levels[one->at] != wanted) return BROKEN;
        one->at++;
    }
    return is_null ? IS_NULL : MISSING;
}

static enum found put_position(assembler *a, const position *place) {
    enum found found = MISSING;
    unsigned nulls = 0, others = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        const node *branch = place->branches == 1 ? place->only : place->branch[kind];
        if (!branch || !is_wanted(a, branch)) {
            if (place->branches == 1) break;
            continue;
        }
        column *first = &a->columns[a->below[branch->number].first];
        if (first->at >= first->count) return BROKEN;
        enum found one;
        if ((first->levels[first->at] & first->mask) < branch->level || branch->kind == NUL) {
            one = pass_by(a, branch);
        } else {
            if (found == VALUE) return BROKEN;
            if (place->name)
                if (put_sized(&a->out, place->size, 31, 0xa0, 0xd9, 0xda) || append(&a->out, place->name, place->size))
                    return EXHAUSTED;
            one = branch->kind == OBJECT  ? put_object(a, branch)
                  : branch->kind == ARRAY ? put_array(a, branch)
                                          : put_value(first, branch->kind, &a->out);
        }
        if (one >= BROKEN) return one;
        nulls += one == IS_NULL;
        others += one != IS_NULL;
        if (one < found) found = one;
        if (place->branches == 1) break;
    }
    if (nulls && others) return BROKEN;
    if (found != IS_NULL) return found;
    uint8_t null = 0xc0;
    int fault = FINE;
    if (place->name)
        fault = put_sized(&a->out, place->size, 31, 0xa0, 0xd9, 0xda) || append(&a->out, place->name, place->size);
    return fault || append(&a->out, &null, 1) ? EXHAUSTED : IS_NULL;
}

static int skip_marker(assembler *a, const node *nested) {
    if (!nested->marker || !is_wanted(a, nested->marker)) return FINE;
    column *marker = &a->columns[a->below[nested->marker->number].first];
    return marker->at++ < marker->count ? FINE : FAULTY;
}

static enum found put_object(assembler *a, const node *object) {
    uint64_t start = a->out.size, count = 0;
    uint8_t nothing = 0;
    if (skip_marker(a, object)) return BROKEN;
    if (append(&a->out, &nothing, 1)) return EXHAUSTED;
    for (const position *place = object->first; place; place = place->next) {
        enum found found = put_position(a, place);
        if (found >= BROKEN) return found;
        count += found != MISSING;
    }
    return close_nested(&a->out, start, count, 1) ? EXHAUSTED : VALUE;
}

static enum found put_array(assembler *a, const node *array) {
    uint64_t start = a->out.size, count = 0;
    uint8_t nothing = 0, empty = 0x80, level = array->level;
    span below = a->below[array->number];
    column *first = &a->columns[below.first];
    int is_first_missing = 0;
    if (append(&a->out, &nothing, 1)) return EXHAUSTED;
    do {
        uint64_t before = first->at;
        if (skip_marker(a, array)) return BROKEN;
        enum found found = array->items ? put_position(a, array->items) : MISSING;
        if (found >= BROKEN) return found;
        if (found == MISSING) {
            if (append(&a->out, &empty, 1)) return EXHAUSTED;
            is_first_missing |= count == 0;
        }
        count++;
        if (first->at == before || first->at >= first->count) return BROKEN;
    } while ((first->levels[first->at] & first->mask) >= level);
    /* Only the outermost of consecutive delimiters is stored. Consume it if it ends this array; otherwise leave it for
       the array that it ends. */
    for (uint32_t i = below.first; i < below.last; i++) {
        column *one = &a->columns[i];
        if (one->at >= one->count || one->levels[one->at] >= level) return BROKEN;
        one->at += one->levels[one->at] == level - 1;
    }
    if (count == 1 && is_first_missing) {
        count = 0;
        a->out.size = start + 1;
    }
    return close_nested(&a->out, start, count, 0) ? EXHAUSTED : VALUE;
}

/* --- for Python ----------------------------------------------------------------------------------------- */

/* Place the wanted columns below a node consecutively in `a->columns`. */
static void arrange(assembler *a, const node *one, const column *given, uint32_t *made) {
    span *below = &a->below[one->number];
    below->first = *made;
    if (!is_nested(one->kind)) {
        if (given[one->leaf].levels && one->kind != REST) {
            a->columns[*made] = given[one->leaf];
            a->columns[(*made)++].mask = (uint8_t)(one->null_flag - 1);
        }
    } else {
        if (one->marker) arrange(a, one->marker, given, made);
        for (const position *place = one->kind == ARRAY ? one->items : one->first; place; place = place->next)
            for (unsigned kind = 0; kind < KINDS; kind++)
                if (place->branch[kind]) arrange(a, place->branch[kind], given, made);
    }
    below->last = *made;
}

/* Prepare the assembly of a tree's columns. `given` has one column for each leaf. */
static int prepare(assembler *a, const column *given, uint32_t *columns) {
    a->columns = calloc(a->all.leaves, sizeof(column));
    a->below = calloc(a->all.size, sizeof(span));
    a->last_field = calloc(a->all.size, sizeof(position *));
    if (!a->columns || !a->below || !a->last_field) return NO_MEMORY;
    for (uint64_t i = 1; i < a->all.size; i++) {
        const node *one = a->all.nodes[i];
        if (!one->place || one->parent->kind != OBJECT || one->place->seen_in) continue;
        one->place->seen_in = 1;
        position **last = &a->last_field[one->parent->number];
        if (*last) (*last)->next = one->place;
        else one->parent->first = one->place;
        *last = one->place;
    }
    arrange(a, a->all.nodes[0], given, columns);
    return FINE;
}

static int put_rows(assembler *a, const column *given, uint64_t count, uint64_t *row_ends) {
    uint32_t columns = 0;
    int fault = prepare(a, given, &columns);
    for (uint64_t record = 0; !fault && record < count; record++) {
        enum found found = put_object(a, a->all.nodes[0]);
        if (found != VALUE) fault = found == EXHAUSTED ? NO_MEMORY : FAULTY;
        row_ends[record] = a->out.size;
    }
    for (uint32_t i = 0; !fault && i < columns; i++)
        if (a->columns[i].at != a->columns[i].count || a->columns[i].value_at != a->columns[i].value_count) fault = FAULTY;
    return fault;
}

static void free_assembler(assembler *a) {
    free_tree(&a->all);
    free(a->columns);
    free(a->below);
    free(a->last_field);
}

/* Write the rows of `count` records consecutively to `made`, which the caller frees, and the end of each to `row_ends`.
   The other arrays have an entry for each leaf: levels (NULL if the leaf is not wanted) and their number; values, their
   number and bytes; offsets of texts. */
EXPORT int ds_assemble(uint64_t node_count, const int32_t *parents, const uint8_t *kinds, const uint8_t *names,
                       const uint64_t *name_offsets, const uint8_t *const *levels, const uint64_t *level_counts,
                       const uint8_t *const *values, const uint64_t *value_counts, const uint64_t *value_bytes,
                       const int64_t *const *offsets, uint64_t count, uint64_t *row_ends, uint8_t **made) {
    assembler a = {0};
    column *given = NULL;
    *made = NULL;
    int fault = tree_of(&a.all, node_count, parents, kinds, names, name_offsets, UINT32_MAX);
    if (!fault && !(given = calloc(a.all.leaves, sizeof(column)))) fault = NO_MEMORY;
    for (uint64_t i = 0; !fault && i < a.all.leaves; i++)
        given[i] = (column){levels[i], 0, level_counts[i], 0, values[i], 0, value_counts[i], value_bytes[i], offsets[i]};
    if (!fault) fault = put_rows(&a, given, count, row_ends);
    free_assembler(&a);
    free(given);
    *made = a.out.data;
    return fault;
}

/* Write the rows of some records, like `ds_assemble`, from the columns' chunks (NULL: no record has the column). The key
   column holds only these records; `records` are their ascending numbers among `all_records`. */
EXPORT int ds_rows_of_chunks(uint64_t node_count, const int32_t *parents, const uint8_t *kinds, const uint8_t *names,
                             const uint64_t *name_offsets, const uint8_t *const *chunks, const uint64_t *sizes,
                             const uint8_t *keys, uint64_t key_bytes, const int64_t *key_offsets, uint64_t most_levels,
                             uint64_t most_bytes, const int64_t *records, uint64_t count, uint64_t all_records,
                             uint64_t *row_ends, uint8_t **made) {
    assembler a = {0};
    column *given = NULL;
    decoded *columns = NULL;
    uint8_t *key_levels = malloc(count + 1);
    choice chosen = {records, count, all_records};
    *made = NULL;
    int fault = tree_of(&a.all, node_count, parents, kinds, names, name_offsets, UINT32_MAX);
    if (!fault) {
        given = calloc(a.all.leaves, sizeof(column));
        columns = calloc(a.all.leaves, sizeof(decoded));
        if (!key_levels || !given || !columns) fault = NO_MEMORY;
    }
    for (uint64_t i = 0; !fault && i < a.all.size; i++) {
        const node *leaf = a.all.nodes[i];
        if (is_nested(leaf->kind) || leaf->leaf == 0 || !chunks[leaf->leaf]) continue;
        wanted properties = wanted_of(leaf, most_levels, most_bytes);
        decoded *one = &columns[leaf->leaf];
        fault = decode_chunk(chunks[leaf->leaf], sizes[leaf->leaf], &properties, &chosen, one);
        given[leaf->leaf] = (column){one->levels, 0, one->level_count, 0, one->values, 0, one->value_count,
                                     one->value_bytes, one->offsets};
    }
    if (!fault) {
        memset(key_levels, 1, count);
        given[0] = (column){key_levels, 0, count, 0, keys, 0, count, key_bytes, key_offsets};
        fault = put_rows(&a, given, count, row_ends);
    }
    for (uint64_t i = 0; columns && i < a.all.leaves; i++) free_decoded(&columns[i]);
    free_assembler(&a);
    free(columns);
    free(given);
    free(key_levels);
    *made = a.out.data;
    return fault;
}
