/* Check rows against the document model: known types, UTF-8, no duplicate fields, limited depth, no trailing bytes. */

#include "common.h"

typedef struct {
    const uint8_t *name;
    uint32_t hash;
    uint32_t size;
} seen_name;

enum { FEW_NAMES = 8 };

static int check_value(reader *from, unsigned level, uint64_t owed, buffer *scratch);

/* Add a name to a hash table of `room` entries, a power of two. If `room` is 0, add it to a list of at most FEW_NAMES
   names instead, of which `known` are in use. FAULTY if the name is there already. */
static int note(seen_name *names, uint64_t room, uint64_t known, const token *name) {
    uint32_t hash = hash_of(name->bytes, name->size);
    if (room == 0) {
        for (uint64_t i = 0; i < known; i++)
            if (names[i].hash == hash && same_bytes(names[i].name, names[i].size, name->bytes, name->size))
                return FAULTY;
        names[known] = (seen_name){name->bytes, hash, (uint32_t)name->size};
        return FINE;
    }
    uint64_t place = hash & (room - 1);
    for (; names[place].name; place = (place + 1) & (room - 1))
        if (names[place].hash == hash && same_bytes(names[place].name, names[place].size, name->bytes, name->size))
            return FAULTY;
    names[place] = (seen_name){name->bytes, hash, (uint32_t)name->size};
    return FINE;
}

/* `owed` is the minimum number of bytes that enclosing values still need after this one. It limits the size of the
   table to what the row's bytes justify. */
static int check_object(reader *from, uint64_t fields, unsigned level, uint64_t owed, buffer *scratch) {
    uint64_t left = (uint64_t)(from->end - from->at);
    if (owed > left || fields > (left - owed) / 2) return FAULTY;
    seen_name few[FEW_NAMES];
    uint64_t room = 0, start = scratch->size;
    if (fields > FEW_NAMES)
        for (room = 32; room < fields * 2;) room *= 2;
    if (room) {
        if (reserve(scratch, room * sizeof(seen_name))) return NO_MEMORY;
        memset(scratch->data + start, 0, room * sizeof(seen_name));
        scratch->size += room * sizeof(seen_name);
    }
    for (uint64_t field = 0; field < fields; field++) {
        token name;
        if (next_token(from, &name) || name.kind != TEXT || !is_utf8(name.bytes, name.size)) return FAULTY;
        /* The table may have moved, because nested objects add their own tables to `scratch`. */
        seen_name *names = room ? (seen_name *)(void *)(scratch->data + start) : few;
        if (note(names, room, field, &name)) return FAULTY;
        int fault = check_value(from, level + 1, owed + 2 * (fields - field - 1), scratch);
        if (fault) return fault;
    }
    scratch->size = start;
    return FINE;
}

static int check_value(reader *from, unsigned level, uint64_t owed, buffer *scratch) {
    token found;
    if (level > DEEPEST || next_token(from, &found)) return FAULTY;
    if (found.kind == TEXT) return is_utf8(found.bytes, found.size) ? FINE : FAULTY;
    if (found.kind == OBJECT) return check_object(from, found.size, level, owed, scratch);
    if (found.kind != ARRAY) return FINE;
    for (uint64_t item = 0; item < found.size; item++) {
        int fault = check_value(from, level + 1, owed + (found.size - item - 1), scratch);
        if (fault) return fault;
    }
    return FINE;
}

int check_row(const uint8_t *row, uint64_t size, buffer *scratch) {
    reader from = {row, row + size};
    token found;
    scratch->size = 0;
    if (next_token(&from, &found) || found.kind != OBJECT) return FAULTY;
    int fault = check_object(&from, found.size, 0, 0, scratch);
    if (fault) return fault;
    return from.at == from.end ? FINE : FAULTY;
}

EXPORT uint32_t ds_version(void) { return 9; }

/* Check all rows; `faulty` is the number of the first invalid one. */
EXPORT int ds_check_rows(uint64_t count, const uint8_t *const *rows, const uint64_t *sizes, uint64_t *faulty) {
    buffer scratch = {0};
    int fault = FINE;
    for (*faulty = 0; *faulty < count; ++*faulty) {
        fault = check_row(rows[*faulty], sizes[*faulty], &scratch);
        if (fault) break;
    }
    free(scratch.data);
    return fault;
}

static int skip_value(reader *from, unsigned level) {
    token found;
    if (level > DEEPEST + 1 || next_token(from, &found)) return FAULTY;
    if (found.kind != OBJECT && found.kind != ARRAY) return FINE;
    for (uint64_t i = 0; i < found.size; i++) {
        token name;
        if (found.kind == OBJECT && (next_token(from, &name) || name.kind != TEXT)) return FAULTY;
        if (skip_value(from, level + 1)) return FAULTY;
    }
    return FINE;
}

/* Extract the keys of rows, which must all be of one kind. `keys` gets integers; for texts, it gets the position of
   each text in its row, and `text_sizes` gets the bytes of the text. */
EXPORT int ds_keys(uint64_t count, const uint8_t *const *rows, const uint64_t *sizes, const uint8_t *key,
                   uint64_t key_size, int32_t *kind, int64_t *keys, uint32_t *text_sizes) {
    for (uint64_t row = 0; row < count; row++) {
        reader from = {rows[row], rows[row] + sizes[row]};
        token whole, name, value;
        if (next_token(&from, &whole) || whole.kind != OBJECT) return FAULTY;
        for (;; whole.size--) {
            if (!whole.size || next_token(&from, &name) || name.kind != TEXT) return FAULTY;
            if (same_bytes(name.bytes, name.size, key, key_size)) break;
            if (skip_value(&from, 1)) return FAULTY;
        }
        if (next_token(&from, &value) || (value.kind != INTEGER && value.kind != TEXT)) return FAULTY;
        if (row && (int32_t)value.kind != *kind) return FAULTY;
        *kind = (int32_t)value.kind;
        keys[row] = value.kind == INTEGER ? value.integer : value.bytes - rows[row];
        if (value.kind == TEXT) text_sizes[row] = (uint32_t)value.size;
    }
    return FINE;
}
