/* Shred rows of MessagePack into columns, in one pass that also extends the schema (paper, sections 3.1 and 3.2).

   shredding/reference.py specifies the tokens. An absent field takes no time when a record is read. Each object and
   array keeps a run-length list of the tokens that its absent children get. A child appends the tokens that it missed
   when it next occurs, or at the end. */

#include "tree.h"

/* A step of the path to the current value. A value without a column is stored with its path in the column of the
   rest. */
typedef struct {
    const uint8_t *name;
    uint64_t size, index;
} step;

typedef struct {
    tree all;
    step way[DEEPEST + 2];
    buffer rest, scratch;
    uint64_t rest_values, objects;
    /* Whether columns are wanted in addition to the schema. */
    int keeps;
} shredder;

/* --- tokens of absent children -------------------------------------------------------------------------- */

static int append_run(run_list *list, uint64_t count, uint8_t level, uint8_t is_null, uint8_t is_delimiter) {
    if (list->size) {
        run *last = &list->runs[list->size - 1];
        if (last->level == level && last->is_null == is_null && last->is_delimiter == is_delimiter) {
            last->count += count;
            return FINE;
        }
    }
    if (list->size == list->capacity) {
        uint64_t capacity = list->capacity ? list->capacity * 2 : 4;
        run *grown = realloc(list->runs, capacity * sizeof(run));
        if (!grown) return NO_MEMORY;
        list->runs = grown;
        list->capacity = capacity;
    }
    list->runs[list->size++] = (run){count, level, is_null, is_delimiter};
    return FINE;
}

/* Append `count` equal tokens to a leaf. Of consecutive delimiters, only the last is kept, which is the outermost. */
static int append_levels(node *leaf, uint64_t count, uint8_t level, uint8_t is_null, uint8_t is_delimiter) {
    buffer *levels = &leaf->levels;
    if (is_delimiter && leaf->last_is_delimiter) levels->size--;
    if (UNLIKELY(reserve(levels, count))) return NO_MEMORY;
    uint8_t token = is_null ? level | leaf->null_flag : level;
    if (count == 1) levels->data[levels->size] = token;
    else memset(levels->data + levels->size, token, count);
    levels->size += count;
    leaf->last_is_delimiter = is_delimiter;
    return FINE;
}

static inline int append_missed(node *target, uint64_t count, uint8_t level, uint8_t is_null, uint8_t is_delimiter) {
    return is_nested(target->kind) ? append_run(&target->list, count, level, is_null, is_delimiter)
                                   : append_levels(target, count, level, is_null, is_delimiter);
}

/* Append the tokens of `source` from `taken` on to the node `target`; or, if `target` is NULL, to `list`, the list of a
   union. The last `kept` tokens are left out. */
static int catch_up(const run_list *source, cursor *taken, uint64_t kept, node *target, run_list *list) {
    for (uint64_t i = taken->index; i < source->size; i++) {
        const run *one = &source->runs[i];
        uint64_t count = one->count - (i == taken->index ? taken->offset : 0);
        if (i + 1 == source->size) count -= kept;
        if (!count) continue;
        int fault = target ? append_missed(target, count, one->level, one->is_null, one->is_delimiter)
                           : append_run(list, count, one->level, one->is_null, one->is_delimiter);
        if (fault) return fault;
    }
    if (source->size) *taken = (cursor){source->size - 1, source->runs[source->size - 1].count - kept};
    return FINE;
}

/* Return whether a child has taken over all tokens but that of the current visit, which is the most common case. */
static inline int missed_nothing(const run_list *source, const cursor *taken) {
    return taken->index + 1 == source->size && taken->offset + 1 == source->runs[taken->index].count;
}

static inline cursor end_of(const run_list *list) {
    return (cursor){list->size - 1, list->runs[list->size - 1].count};
}

static const run_list *source_of(const node *one) {
    return one->place && one->place->branches > 1 ? &one->place->list : &one->parent->list;
}

/* Prepare a position for its second branch. The position's list gets the tokens of the first branch so far, without
   values, and the second branch will take them over. */
static int become_union(position *place) {
    node *first = place->only;
    run_list *above = &place->parent->list;
    int fault = catch_up(above, &first->taken, 1, first, NULL);
    place->taken = first->taken;
    uint8_t level = place->parent->level;
    if (is_nested(first->kind)) {
        for (uint64_t i = 0; !fault && i < first->list.size; i++) {
            run one = first->list.runs[i];
            uint8_t is_own_end = first->kind == ARRAY && one.is_delimiter && one.level == level;
            if (first->kind == ARRAY && !is_own_end && one.level > level) continue;
            if (one.level > level || is_own_end) one = (run){one.count, level, 0, 0};
            fault = append_run(&place->list, one.count, one.level, one.is_null, one.is_delimiter);
        }
    } else {
        for (uint64_t i = 0; !fault && i < first->levels.size; i++) {
            uint8_t token = first->levels.data[i], is_null = token >= first->null_flag;
            uint8_t found = token & (uint8_t)(first->null_flag - 1);
            fault = append_run(&place->list, 1, found > level ? level : found, is_null, 0);
        }
    }
    if (!fault && place->list.size) first->taken = end_of(&place->list);
    else first->taken = (cursor){0, 0};
    return fault;
}

/* --- the walk ------------------------------------------------------------------------------------------- */

static int put_value(shredder *s, position *place, const token *found, reader *from, unsigned depth);

static int append_text(node *leaf, const token *found) {
    uint64_t end = leaf->values.size + found->size;
    if (append(&leaf->offsets, &end, 8)) return NO_MEMORY;
    return append(&leaf->values, found->bytes, found->size);
}

static int append_value(node *leaf, const token *found) {
    leaf->value_count++;
    switch (leaf->kind) {
        case BOOLEAN: return append(&leaf->values, &found->boolean, 1);
        case INTEGER: return append(&leaf->values, &found->integer, 8);
        case DOUBLE: return append(&leaf->values, &found->number, 8);
        default: return append_text(leaf, found);
    }
}

static int skip_value(reader *from, unsigned depth) {
    token found;
    if (depth > DEEPEST || next_token(from, &found)) return FAULTY;
    if (!is_nested(found.kind)) return FINE;
    for (uint64_t i = 0; i < found.size; i++) {
        token name;
        if (found.kind == OBJECT && (next_token(from, &name) || name.kind != TEXT)) return FAULTY;
        if (skip_value(from, depth + 1)) return FAULTY;
    }
    return FINE;
}

static int put_head(buffer *to, uint64_t size, uint8_t small, uint8_t most_small, uint8_t large) {
    if (size <= most_small) {
        uint8_t head = (uint8_t)(small | size);
        return append(to, &head, 1);
    }
    uint8_t head[5] = {large};
    unsigned width = size <= 0xffff ? 2 : 4;
    if (large == 0xda && size <= 0xff) {
        head[0] = 0xd9;
        width = 1;
    } else if (width == 4) {
        head[0]++;
    }
    for (unsigned i = 0; i < width; i++) head[1 + i] = (uint8_t)(size >> 8 * (width - 1 - i));
    return append(to, head, 1 + width);
}

static int put_index(buffer *to, uint64_t index) {
    uint8_t head[5] = {0xce};
    if (index < 0x80) {
        head[0] = (uint8_t)index;
        return append(to, head, 1);
    }
    unsigned width = index <= 0xff ? 1 : index <= 0xffff ? 2 : 4;
    head[0] = width == 1 ? 0xcc : width == 2 ? 0xcd : 0xce;
    for (unsigned i = 0; i < width; i++) head[1 + i] = (uint8_t)(index >> 8 * (width - 1 - i));
    return append(to, head, 1 + width);
}

/* Add a value that has no column to the rest: its path and its bytes. */
static int put_rest(shredder *s, const uint8_t *start, const uint8_t *end, unsigned depth) {
    uint8_t pair = 0x92;
    s->rest_values++;
    if (!s->keeps) return FINE;
    int fault = append(&s->rest, &pair, 1) || put_head(&s->rest, depth, 0x90, 15, 0xdc);
    for (unsigned i = 1; !fault && i <= depth; i++) {
        const step *one = &s->way[i];
        fault = one->name ? put_head(&s->rest, one->size, 0xa0, 31, 0xda) || append(&s->rest, one->name, one->size)
                          : put_index(&s->rest, one->index);
    }
    return fault || append(&s->rest, start, (uint64_t)(end - start)) ? NO_MEMORY : FINE;
}

/* Return the branch for a value of that kind, and create it if necessary. NULL without a fault if there are too many
   leaves. */
static node *branch_for(shredder *s, node *parent, position **place, const step *name, enum kind kind, int *fault) {
    *fault = FINE;
    if (*place && (*place)->branch[kind]) return (*place)->branch[kind];
    if (s->all.leaves >= s->all.limit) {
        if (!s->all.rest && !add_node(&s->all, s->all.nodes[0], NULL, REST)) *fault = NO_MEMORY;
        return NULL;
    }
    *fault = NO_MEMORY;
    if (!*place) *place = add_position(parent, name->name, name->size, name->name ? hash_of(name->name, name->size) : 0);
    if (!*place) return NULL;
    if (s->keeps && (*place)->branches == 1 && become_union(*place)) return NULL;
    node *added = add_node(&s->all, parent, *place, kind);
    if (added) *fault = FINE;
    return added;
}

static int put_object(shredder *s, node *object, uint64_t fields, reader *from, unsigned depth) {
    uint64_t visit = ++s->objects;
    if (!fields && !object->has_children && !add_node(&s->all, object, NULL, MARKER)) return NO_MEMORY;
    position *before = NULL;
    for (uint64_t field = 0; field < fields; field++) {
        token name, value;
        if (next_token(from, &name) || name.kind != TEXT) return FAULTY;
        position *place = before ? before->next : object->first;
        if (!place || !same_bytes(place->name, place->size, name.bytes, name.size)) {
            uint32_t hash = hash_of(name.bytes, name.size);
            place = find_field(object, name.bytes, name.size, hash);
            if (place && before) before->next = place;
            else if (place) object->first = place;
        }
        if (place && place->seen_in == visit) return FAULTY;
        const uint8_t *start = from->at;
        if (depth + 1 > DEEPEST || next_token(from, &value)) return FAULTY;
        s->way[depth + 1] = (step){name.bytes, name.size, 0};
        int fault;
        if (place && place->branch[value.kind]) {
            place->seen_in = visit;
            fault = put_value(s, place, &value, from, depth + 1);
        } else {
            if (!place && !is_utf8(name.bytes, name.size)) return FAULTY;
            int needs_none = place && value.kind == NUL;
            node *branch = needs_none ? NULL : branch_for(s, object, &place, &s->way[depth + 1], value.kind, &fault);
            if (!needs_none && fault) return fault;
            if (place) place->seen_in = visit;
            if (branch || needs_none) {
                fault = put_value(s, place, &value, from, depth + 1);
            } else {
                from->at = start;
                if (skip_value(from, depth + 1)) return FAULTY;
                fault = put_rest(s, start, from->at, depth + 1);
            }
        }
        if (fault) return fault;
        if (place) before = place;
    }
    return FINE;
}

static int put_array(shredder *s, node *array, uint64_t items, reader *from, unsigned depth) {
    if (!items && !array->has_children && !add_node(&s->all, array, NULL, MARKER)) return NO_MEMORY;
    if (s->keeps && !items && append_run(&array->list, 1, array->level, 0, 0)) return NO_MEMORY;
    for (uint64_t item = 0; item < items; item++) {
        if (s->keeps && append_run(&array->list, 1, array->level, 0, 0)) return NO_MEMORY;
        const uint8_t *start = from->at;
        token value;
        if (depth + 1 > DEEPEST || next_token(from, &value)) return FAULTY;
        s->way[depth + 1] = (step){NULL, 0, item};
        position *place = array->items;
        int fault = FINE;
        int needs_none = place && value.kind == NUL;
        node *branch = needs_none ? NULL : branch_for(s, array, &place, &s->way[depth + 1], value.kind, &fault);
        if (fault) return fault;
        if (branch || needs_none) {
            fault = put_value(s, place, &value, from, depth + 1);
        } else {
            from->at = start;
            if (skip_value(from, depth + 1)) return FAULTY;
            fault = put_rest(s, start, from->at, depth + 1);
        }
        if (fault) return fault;
    }
    return s->keeps ? append_run(&array->list, 1, (uint8_t)(array->level - 1), 0, 1) : FINE;
}

/* Handle a value if only the schema is wanted. */
static int see_value(shredder *s, position *place, const token *found, reader *from, unsigned depth) {
    if (found->kind == NUL) return FINE;
    node *branch = place->branch[found->kind];
    branch->value_count++;
    if (branch->kind == OBJECT) return put_object(s, branch, found->size, from, depth);
    if (branch->kind == ARRAY) return put_array(s, branch, found->size, from, depth);
    return branch->kind == TEXT && !is_utf8(found->bytes, found->size) ? FAULTY : FINE;
}

/* Store a value at a position that has a branch for it; the parent's list ends with the entry of this visit. */
static int put_value(shredder *s, position *place, const token *found, reader *from, unsigned depth) {
    const run_list *source = &place->parent->list;
    uint8_t level = place->parent->level;
    if (!s->keeps) return see_value(s, place, found, from, depth);
    if (place->branches > 1) {
        if (catch_up(source, &place->taken, 1, NULL, &place->list)) return NO_MEMORY;
        place->taken = end_of(source);
        if (append_run(&place->list, 1, level, found->kind == NUL, 0)) return NO_MEMORY;
        if (found->kind == NUL) return FINE;
        source = &place->list;
    }
    node *branch = place->branches > 1 ? place->branch[found->kind] : place->only;
    if (!missed_nothing(source, &branch->taken) && catch_up(source, &branch->taken, 1, branch, NULL)) return NO_MEMORY;
    branch->taken = end_of(source);
    if (found->kind == NUL) return append_missed(branch, 1, level, 1, 0);
    if (branch->kind == OBJECT) {
        if (append_run(&branch->list, 1, branch->level, 0, 0)) return NO_MEMORY;
        return put_object(s, branch, found->size, from, depth);
    }
    if (branch->kind == ARRAY) return put_array(s, branch, found->size, from, depth);
    if (branch->kind == TEXT && !is_utf8(found->bytes, found->size)) return FAULTY;
    if (append_levels(branch, 1, branch->level, 0, 0)) return NO_MEMORY;
    return append_value(branch, found);
}

static int put_record(shredder *s, const uint8_t *row, uint64_t size, uint64_t key_count) {
    node *root = s->all.nodes[0], *key = s->all.nodes[1];
    reader from = {row, row + size};
    token found;
    if (next_token(&from, &found) || found.kind != OBJECT) return FAULTY;
    s->rest.size = s->rest_values = 0;
    if (append_run(&root->list, 1, 0, 0, 0)) return NO_MEMORY;
    int fault = put_object(s, root, found.size, &from, 0);
    if (fault) return fault;
    if (from.at != from.end || key->place->branches != 1 || key->value_count != key_count) return FAULTY;
    if (!s->rest_values) return FINE;
    /* put_object detects duplicate names only if they have a position; this check detects all. */
    if (check_row(row, size, &s->scratch)) return FAULTY;
    if (!s->keeps) return FINE;
    node *rest = s->all.rest;
    if (catch_up(&root->list, &rest->taken, 1, rest, NULL)) return NO_MEMORY;
    rest->taken = end_of(&root->list);
    if (append_levels(rest, 1, 1, 0, 0)) return NO_MEMORY;
    s->scratch.size = 0;
    if (put_head(&s->scratch, s->rest_values, 0x90, 15, 0xdc) || append(&s->scratch, s->rest.data, s->rest.size))
        return NO_MEMORY;
    token whole = {.kind = REST, .size = s->scratch.size, .bytes = s->scratch.data};
    return append_value(rest, &whole);
}

static int finish(shredder *s) {
    for (uint64_t i = 1; i < s->all.size; i++) {
        node *one = s->all.nodes[i];
        position *place = one->place;
        if (place && place->branches > 1) {
            if (catch_up(&place->parent->list, &place->taken, 0, NULL, &place->list)) return NO_MEMORY;
        }
        if (catch_up(source_of(one), &one->taken, 0, one, NULL)) return NO_MEMORY;
    }
    return FINE;
}

/* --- for Python ----------------------------------------------------------------------------------------- */

EXPORT void ds_free_shredder(shredder *s) {
    if (!s) return;
    free_tree(&s->all);
    free(s->rest.data);
    free(s->scratch.data);
    free(s);
}

/* Shred all rows, with columns only if `keeps`; `faulty` is the number of the first row that cannot be stored. `made`
   must be freed, even after an error. */
EXPORT int ds_shred(uint64_t node_count, const int32_t *parents, const uint8_t *kinds, const uint8_t *names,
                    const uint64_t *name_offsets, uint64_t limit, uint64_t count, const uint8_t *const *rows,
                    const uint64_t *sizes, int keeps, uint64_t *faulty, shredder **made) {
    shredder *s = *made = calloc(1, sizeof(shredder));
    *faulty = 0;
    if (!s) return NO_MEMORY;
    s->keeps = keeps;
    int fault = tree_of(&s->all, node_count, parents, kinds, names, name_offsets, limit);
    if (fault) return fault;
    if (s->all.size < 2 || is_nested(s->all.nodes[1]->kind) || !s->all.nodes[1]->place) return FAULTY;
    for (uint64_t i = 0; i < node_count; i++)
        if (s->all.nodes[i]->kind == REST && s->all.nodes[i]->parent != s->all.nodes[0]) return FAULTY;
    for (; *faulty < count; ++*faulty) {
        fault = put_record(s, rows[*faulty], sizes[*faulty], *faulty + 1);
        if (fault) return fault;
    }
    return keeps ? finish(s) : FINE;
}

/* Return the number of nodes, and the bytes of the names of those from `first` on. */
EXPORT uint64_t ds_shredded_nodes(const shredder *s, uint64_t first, uint64_t *name_bytes) {
    *name_bytes = 0;
    for (uint64_t i = first; i < s->all.size; i++)
        if (s->all.nodes[i]->place) *name_bytes += s->all.nodes[i]->place->size;
    return s->all.size;
}

/* Return the nodes from `first` on; array items and nodes without a position have the name size -1. */
EXPORT void ds_new_nodes(const shredder *s, uint64_t first, int32_t *parents, uint8_t *kinds, uint8_t *names,
                         int64_t *name_sizes) {
    for (uint64_t i = first; i < s->all.size; i++) {
        const node *one = s->all.nodes[i];
        const position *place = one->place;
        *parents++ = (int32_t)one->parent->number;
        *kinds++ = (uint8_t)one->kind;
        *name_sizes++ = place && place->name ? (int64_t)place->size : -1;
        if (place && place->size) {
            memcpy(names, place->name, place->size);
            names += place->size;
        }
    }
}

/* Return the number of levels, the number of values, and the bytes of values of each leaf. */
EXPORT void ds_column_sizes(const shredder *s, uint64_t *levels, uint64_t *values, uint64_t *bytes) {
    for (uint64_t i = 0; i < s->all.size; i++) {
        const node *one = s->all.nodes[i];
        if (is_nested(one->kind)) continue;
        levels[one->leaf] = one->levels.size;
        values[one->leaf] = one->value_count;
        bytes[one->leaf] = one->values.size;
    }
}

/* Copy all columns consecutively: levels; offsets of texts, from 0 on for each leaf (none for leaves without texts);
   values, which begin at a multiple of 8 bytes for each leaf. */
EXPORT void ds_columns(const shredder *s, uint8_t *levels, uint64_t *offsets, uint8_t *values) {
    for (uint64_t i = 0; i < s->all.size; i++) {
        const node *one = s->all.nodes[i];
        if (is_nested(one->kind)) continue;
        if (one->levels.size) memcpy(levels, one->levels.data, one->levels.size);
        levels += one->levels.size;
        if (one->kind == TEXT || one->kind == BINARY || one->kind == REST) {
            *offsets++ = 0;
            if (one->offsets.size) memcpy(offsets, one->offsets.data, one->offsets.size);
            offsets += one->value_count;
        }
        if (one->values.size) memcpy(values, one->values.data, one->values.size);
        values += (one->values.size + 7) / 8 * 8;
    }
}
