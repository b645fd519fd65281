/* Convert rows between MessagePack and the vector-based format, which layouts/vector.py specifies in Python.

   No input is trusted: every read is checked against its end, and nothing is written beyond the capacity given. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { OBJECT, ARRAY, NIL, FALSE_, TRUE_, INT8, INT16, INT32, INT64, DOUBLE, TEXT, BINARY };
enum { DEEPEST = 64 };

/* Error codes; layouts/vector_rows.py has the messages. */
enum { OUT_OF_MEMORY = -1, NOT_MESSAGEPACK = -2, TOO_DEEP = -3, NOT_A_ROW = -4, NO_ROOM = -5 };

typedef struct {
    const uint8_t *at, *end;
} reader;

typedef struct {
    uint8_t *start, *at;
} writer;

static uint64_t big(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

static void put_big(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static uint64_t little(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static void put_little(writer *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *to->at++ = (uint8_t)(value >> 8 * i);
}

static void put_varint(writer *to, uint64_t value) {
    while (value > 127) {
        *to->at++ = (uint8_t)(value | 128);
        value >>= 7;
    }
    *to->at++ = (uint8_t)value;
}

static void put_bytes(writer *to, const uint8_t *data, uint64_t count) {
    if (count) memcpy(to->at, data, count);
    to->at += count;
}

/* Read a varint. Return 0 if the vector ends before it, or if it has more than 5 bytes. */
static int varint(reader *from, uint64_t *value) {
    uint64_t result = 0;
    for (int shift = 0; shift <= 28; shift += 7) {
        if (from->at == from->end) return 0;
        uint8_t byte = *from->at++;
        result |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = result;
            return 1;
        }
    }
    return 0;
}

/* A hash table of names with open addressing. A slot has the number of a name + 1, or 0 if it is free. */
typedef struct {
    const uint8_t *data;
    const int64_t *offsets;
    uint32_t *slots;
    uint64_t mask;
} name_table;

static uint64_t hash_of(const uint8_t *data, uint64_t count) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ count;
    for (; count >= 8; data += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    for (; count; data++, count--) hash = (hash ^ *data) * 0xC4CEB9FE1A85EC53u;
    return hash ^ hash >> 29;
}

static int is_name(const name_table *table, uint32_t number, const uint8_t *data, uint64_t count) {
    int64_t start = table->offsets[number], end = table->offsets[number + 1];
    return (uint64_t)(end - start) == count && memcmp(table->data + start, data, count) == 0;
}

static int build_names(name_table *table, const uint8_t *data, const int64_t *offsets, int64_t count) {
    uint64_t size = 16;
    while (size < 2 * (uint64_t)count) size *= 2;
    *table = (name_table){data, offsets, calloc(size, sizeof(uint32_t)), size - 1};
    if (!table->slots) return 0;
    for (int64_t number = 0; number < count; number++) {
        uint64_t slot = hash_of(data + offsets[number], (uint64_t)(offsets[number + 1] - offsets[number])) & table->mask;
        while (table->slots[slot]) slot = (slot + 1) & table->mask;
        table->slots[slot] = (uint32_t)number + 1;
    }
    return 1;
}

static uint32_t number_of(const name_table *table, const uint8_t *data, uint64_t count) {
    for (uint64_t slot = hash_of(data, count) & table->mask; table->slots[slot]; slot = (slot + 1) & table->mask)
        if (is_name(table, table->slots[slot] - 1, data, count)) return table->slots[slot];
    return 0;
}

/* The tag of a value and the fixed part after it. For objects, arrays, texts and bytes `value` is the count. */
typedef struct {
    int tag;
    uint64_t value;
} head;

static int take(reader *from, uint64_t count, const uint8_t **data) {
    if ((uint64_t)(from->end - from->at) < count) return 0;
    *data = from->at;
    from->at += count;
    return 1;
}

static int of_width(reader *from, int tag, int bytes, head *out) {
    const uint8_t *data;
    if (!take(from, (uint64_t)bytes, &data)) return 0;
    *out = (head){tag, big(data, bytes)};
    return 1;
}

static int integer_tag(int64_t value) {
    if (value >= INT8_MIN && value <= INT8_MAX) return INT8;
    if (value >= INT16_MIN && value <= INT16_MAX) return INT16;
    return value >= INT32_MIN && value <= INT32_MAX ? INT32 : INT64;
}

static int head_of(reader *from, head *out) {
    const uint8_t *data;
    if (!take(from, 1, &data)) return 0;
    uint8_t first = *data;
    if (first < 0x80) return *out = (head){INT8, first}, 1;
    if (first < 0x90) return *out = (head){OBJECT, first & 15u}, 1;
    if (first < 0xA0) return *out = (head){ARRAY, first & 15u}, 1;
    if (first < 0xC0) return *out = (head){TEXT, first & 31u}, 1;
    if (first >= 0xE0) return *out = (head){INT8, (uint64_t)(int64_t)(int8_t)first}, 1;
    switch (first) {
    case 0xC0: return *out = (head){NIL, 0}, 1;
    case 0xC2: return *out = (head){FALSE_, 0}, 1;
    case 0xC3: return *out = (head){TRUE_, 0}, 1;
    case 0xC4: case 0xC5: case 0xC6: return of_width(from, BINARY, 1 << (first - 0xC4), out);
    case 0xCB: return of_width(from, DOUBLE, 8, out);
    case 0xD9: case 0xDA: case 0xDB: return of_width(from, TEXT, 1 << (first - 0xD9), out);
    case 0xDC: case 0xDD: return of_width(from, ARRAY, 2 << (first - 0xDC), out);
    case 0xDE: case 0xDF: return of_width(from, OBJECT, 2 << (first - 0xDE), out);
    default: break;
    }
    if (first == 0xCA) {
        if (!of_width(from, DOUBLE, 4, out)) return 0;
        uint32_t bits = (uint32_t)out->value;
        float single;
        memcpy(&single, &bits, 4);
        double value = single;
        memcpy(&out->value, &value, 8);
        return 1;
    }
    if (first < 0xCC || first > 0xD3) return 0;
    int is_signed = first >= 0xD0, bytes = 1 << ((first - 0xCC) & 3), spare = 64 - 8 * bytes;
    if (!of_width(from, INT64, bytes, out)) return 0;
    if (is_signed) out->value = (uint64_t)((int64_t)(out->value << spare) >> spare);
    else if (out->value > INT64_MAX) return 0;
    out->tag = integer_tag((int64_t)out->value);
    return 1;
}

typedef struct {
    writer tags, names, fixed, lengths, variable;
} vectors;

static int encode_row(reader from, const name_table *table, vectors *to) {
    uint64_t left[DEEPEST + 2];
    int is_object[DEEPEST + 2], depth = 0;
    left[0] = 1;
    is_object[0] = 0;
    for (;;) {
        while (left[depth] == 0)
            if (depth-- == 0) return from.at == from.end ? 0 : NOT_MESSAGEPACK;
        left[depth]--;
        if (depth == DEEPEST + 1) return TOO_DEEP;
        head value;
        const uint8_t *data;
        if (is_object[depth]) {
            if (!head_of(&from, &value) || value.tag != TEXT || !take(&from, value.value, &data)) return NOT_MESSAGEPACK;
            uint32_t number = number_of(table, data, value.value);
            put_varint(&to->names, number);
            if (!number) {
                put_varint(&to->lengths, value.value);
                put_bytes(&to->variable, data, value.value);
            }
        }
        if (!head_of(&from, &value)) return NOT_MESSAGEPACK;
        *to->tags.at++ = (uint8_t)value.tag;
        switch (value.tag) {
        case OBJECT: case ARRAY:
            /* Each value takes at least one byte: refuse a count that the row cannot hold. */
            if (value.value > (uint64_t)(from.end - from.at)) return NOT_MESSAGEPACK;
            put_varint(&to->tags, value.value);
            left[++depth] = value.value;
            is_object[depth] = value.tag == OBJECT;
            break;
        case INT8: case INT16: case INT32: case INT64:
            put_little(&to->fixed, value.value, 1 << (value.tag - INT8));
            break;
        case DOUBLE:
            put_little(&to->fixed, value.value, 8);
            break;
        case TEXT: case BINARY:
            if (!take(&from, value.value, &data)) return NOT_MESSAGEPACK;
            put_varint(&to->lengths, value.value);
            put_bytes(&to->variable, data, value.value);
            break;
        default:
            break;
        }
    }
}

/* Encode rows of MessagePack. Row i is between `offsets[i]` and `offsets[i + 1]` in `rows`, and then between the same
   entries of `out_offsets` in `out`. `out` must have room for three times the bytes plus 32 per row. Returns 0, or an
   error code with the number of the row in *failed. */
EXPORT int ds_vector_encode(const uint8_t *rows, const int64_t *offsets, int64_t count, const uint8_t *names,
                             const int64_t *name_offsets, int64_t name_count, uint8_t *out, int64_t *out_offsets,
                             int64_t *failed) {
    int64_t longest = 0;
    int result = 0;
    for (int64_t i = 0; i < count; i++)
        if (offsets[i + 1] - offsets[i] > longest) longest = offsets[i + 1] - offsets[i];
    uint64_t room = 3 * (uint64_t)longest + 32;
    name_table table;
    if (!build_names(&table, names, name_offsets, name_count)) return OUT_OF_MEMORY;
    uint8_t *scratch = malloc(5 * room);
    if (!scratch) {
        free(table.slots);
        return OUT_OF_MEMORY;
    }
    writer to = {out, out};
    out_offsets[0] = 0;
    for (int64_t i = 0; i < count && !result; i++) {
        writer parts[5];
        for (int part = 0; part < 5; part++) parts[part].start = parts[part].at = scratch + (uint64_t)part * room;
        vectors row = {parts[0], parts[1], parts[2], parts[3], parts[4]};
        result = encode_row((reader){rows + offsets[i], rows + offsets[i + 1]}, &table, &row);
        *failed = i;
        if (result) break;
        const writer *all[5] = {&row.tags, &row.names, &row.fixed, &row.lengths, &row.variable};
        for (int part = 0; part < 4; part++) put_varint(&to, (uint64_t)(all[part]->at - all[part]->start));
        for (int part = 0; part < 5; part++)
            put_bytes(&to, all[part]->start, (uint64_t)(all[part]->at - all[part]->start));
        out_offsets[i + 1] = to.at - out;
    }
    free(scratch);
    free(table.slots);
    return result;
}

/* A writer with a limit. `full` is set when something does not fit; after that, nothing is written. */
typedef struct {
    uint8_t *at, *end;
    int full;
} bounded;

static uint8_t *room_for(bounded *to, uint64_t count) {
    if (to->full || (uint64_t)(to->end - to->at) < count) {
        to->full = 1;
        return NULL;
    }
    to->at += count;
    return to->at - count;
}

static void put_head(bounded *to, uint8_t first, uint64_t value, int bytes) {
    uint8_t *at = room_for(to, 1 + (uint64_t)bytes);
    if (!at) return;
    *at = first;
    put_big(at + 1, value, bytes);
}

static void put_count(bounded *to, int tag, uint64_t count) {
    if (tag == TEXT && count < 32) put_head(to, (uint8_t)(0xA0 | count), 0, 0);
    else if (tag == OBJECT && count < 16) put_head(to, (uint8_t)(0x80 | count), 0, 0);
    else if (tag == ARRAY && count < 16) put_head(to, (uint8_t)(0x90 | count), 0, 0);
    else if ((tag == TEXT || tag == BINARY) && count < 256) put_head(to, tag == TEXT ? 0xD9 : 0xC4, count, 1);
    else {
        static const uint8_t firsts[] = {[OBJECT] = 0xDE, [ARRAY] = 0xDC, [TEXT] = 0xDA, [BINARY] = 0xC5};
        if (count < 65536) put_head(to, firsts[tag], count, 2);
        else put_head(to, (uint8_t)(firsts[tag] + 1), count, 4);
    }
}

static void put_text(bounded *to, int tag, const uint8_t *data, uint64_t count) {
    put_count(to, tag, count);
    uint8_t *at = room_for(to, count);
    if (at && count) memcpy(at, data, count);
}

static void put_integer(bounded *to, int64_t value) {
    uint64_t bits = (uint64_t)value;
    if (value >= 0) {
        if (value < 128) put_head(to, (uint8_t)value, 0, 0);
        else if (value < 256) put_head(to, 0xCC, bits, 1);
        else if (value < 65536) put_head(to, 0xCD, bits, 2);
        else if (value <= UINT32_MAX) put_head(to, 0xCE, bits, 4);
        else put_head(to, 0xCF, bits, 8);
    } else if (value >= -32) put_head(to, (uint8_t)bits, 0, 0);
    else if (value >= INT8_MIN) put_head(to, 0xD0, bits, 1);
    else if (value >= INT16_MIN) put_head(to, 0xD1, bits, 2);
    else if (value >= INT32_MIN) put_head(to, 0xD2, bits, 4);
    else put_head(to, 0xD3, bits, 8);
}

static int is_utf8(const uint8_t *at, uint64_t count) {
    const uint8_t *end = at + count;
    while (at < end) {
        if (end - at >= 8) {
            uint64_t word;
            memcpy(&word, at, 8);
            if (!(word & 0x8080808080808080u)) {
                at += 8;
                continue;
            }
        }
        uint8_t first = *at++;
        if (first < 0x80) continue;
        int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        if (first < 0xC2 || first > 0xF4 || end - at < more) return 0;
        uint8_t next = *at;
        if ((first == 0xE0 && next < 0xA0) || (first == 0xED && next > 0x9F)) return 0;
        if ((first == 0xF0 && next < 0x90) || (first == 0xF4 && next > 0x8F)) return 0;
        for (int i = 0; i < more; i++)
            if ((*at++ & 0xC0) != 0x80) return 0;
    }
    return 1;
}

static int take_text(reader *lengths, reader *variable, int tag, const uint8_t **data, uint64_t *count) {
    return varint(lengths, count) && take(variable, *count, data) && (tag == BINARY || is_utf8(*data, *count));
}

static int decode_row(reader from, const uint8_t *names, const int64_t *name_offsets, int64_t name_count, bounded *to) {
    reader parts[4];
    uint64_t sizes[4], left[DEEPEST + 2], count;
    const uint8_t *data;
    for (int part = 0; part < 4; part++)
        if (!varint(&from, &sizes[part])) return NOT_A_ROW;
    for (int part = 0; part < 4; part++) {
        if (!take(&from, sizes[part], &data)) return NOT_A_ROW;
        parts[part] = (reader){data, data + sizes[part]};
    }
    reader *tags = &parts[0], *numbers = &parts[1], *fixed = &parts[2], *lengths = &parts[3], *variable = &from;
    int is_object[DEEPEST + 2], depth = 0;
    left[0] = 1;
    is_object[0] = 0;
    for (;;) {
        while (left[depth] == 0) {
            if (depth-- > 0) continue;
            for (int part = 0; part < 4; part++)
                if (parts[part].at != parts[part].end) return NOT_A_ROW;
            return from.at == from.end ? 0 : NOT_A_ROW;
        }
        left[depth]--;
        if (depth == DEEPEST + 1) return TOO_DEEP;
        if (is_object[depth]) {
            uint64_t number;
            if (!varint(numbers, &number) || number > (uint64_t)name_count) return NOT_A_ROW;
            if (number) {
                data = names + name_offsets[number - 1];
                count = (uint64_t)(name_offsets[number] - name_offsets[number - 1]);
            } else if (!take_text(lengths, variable, TEXT, &data, &count)) return NOT_A_ROW;
            put_text(to, TEXT, data, count);
        }
        if (!take(tags, 1, &data)) return NOT_A_ROW;
        int tag = *data;
        if (depth == 0 && tag != OBJECT) return NOT_A_ROW;
        switch (tag) {
        case OBJECT: case ARRAY:
            /* Each value takes one tag byte: refuse a larger count early. */
            if (!varint(tags, &count) || count > (uint64_t)(tags->end - tags->at)) return NOT_A_ROW;
            put_count(to, tag, count);
            left[++depth] = count;
            is_object[depth] = tag == OBJECT;
            break;
        case NIL:
            put_head(to, 0xC0, 0, 0);
            break;
        case FALSE_: case TRUE_:
            put_head(to, tag == TRUE_ ? 0xC3 : 0xC2, 0, 0);
            break;
        case INT8: case INT16: case INT32: case INT64: {
            int bytes = 1 << (tag - INT8), spare = 64 - 8 * bytes;
            if (!take(fixed, (uint64_t)bytes, &data)) return NOT_A_ROW;
            put_integer(to, (int64_t)(little(data, bytes) << spare) >> spare);
            break;
        }
        case DOUBLE:
            if (!take(fixed, 8, &data)) return NOT_A_ROW;
            put_head(to, 0xCB, little(data, 8), 8);
            break;
        case TEXT: case BINARY:
            if (!take_text(lengths, variable, tag, &data, &count)) return NOT_A_ROW;
            put_text(to, tag, data, count);
            break;
        default:
            return NOT_A_ROW;
        }
        if (to->full) return NO_ROOM;
    }
}

/* Decode rows to MessagePack, and set *done to the number of complete rows in `out`. NO_ROOM if the next row does not
   fit. */
EXPORT int ds_vector_decode(const uint8_t *rows, const int64_t *offsets, int64_t count, const uint8_t *names,
                             const int64_t *name_offsets, int64_t name_count, uint8_t *out, int64_t capacity,
                             int64_t *out_offsets, int64_t *done) {
    bounded to = {out, out + capacity, 0};
    out_offsets[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        *done = i;
        int result = decode_row((reader){rows + offsets[i], rows + offsets[i + 1]}, names, name_offsets, name_count, &to);
        if (result) return result;
        if (to.full) return NO_ROOM;
        out_offsets[i + 1] = to.at - out;
    }
    *done = count;
    return 0;
}
