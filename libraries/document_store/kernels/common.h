/* Shared by all kernels of the document store: reading untrusted MessagePack, growing buffers, error codes.

   No input is trusted: every read is checked against the end first. The numbers in `enum kind` are those of
   values.py. */

#ifndef DOCUMENT_STORE_COMMON_H
#define DOCUMENT_STORE_COMMON_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the kernels are for little-endian machines; the store runs in Python elsewhere"
#endif

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum kind { NUL, BOOLEAN, INTEGER, DOUBLE, TEXT, BINARY, ARRAY, OBJECT, MARKER, REST, KINDS };
enum { DEEPEST = 64 };

/* Return codes; 0 is success. Python makes the messages. For an invalid row, it reads the row again to find the
   cause. */
enum fault { FINE, FAULTY, NO_MEMORY, NO_ROOM };

/* --- buffers -------------------------------------------------------------------------------------------- */

typedef struct {
    uint8_t *data;
    uint64_t size, capacity;
} buffer;

static inline int reserve(buffer *b, uint64_t more) {
    if (LIKELY(b->capacity - b->size >= more)) return FINE;
    uint64_t wanted = b->capacity ? b->capacity * 2 : 256;
    if (wanted < b->size + more) wanted = b->size + more;
    uint8_t *grown = realloc(b->data, wanted);
    if (!grown) return NO_MEMORY;
    b->data = grown;
    b->capacity = wanted;
    return FINE;
}

static inline int append(buffer *b, const void *data, uint64_t size) {
    if (UNLIKELY(reserve(b, size))) return NO_MEMORY;
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
    return FINE;
}

/* --- reading MessagePack -------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *at, *end;
} reader;

typedef struct {
    enum kind kind;
    /* Number of bytes of a text or binary, of items of an array, or of fields of an object. */
    uint64_t size;
    const uint8_t *bytes;
    union {
        int64_t integer;
        double number;
        uint8_t boolean;
    };
} token;

static inline uint64_t big_endian(const uint8_t *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

static inline int take_bytes(reader *from, token *found, uint64_t size) {
    if (UNLIKELY((uint64_t)(from->end - from->at) < size)) return FAULTY;
    found->size = size;
    found->bytes = from->at;
    from->at += size;
    return FINE;
}

/* Read the next value; for arrays and objects only the header. */
static inline int next_token(reader *from, token *found) {
    if (UNLIKELY(from->at >= from->end)) return FAULTY;
    uint8_t first = *from->at++;
    uint64_t left = (uint64_t)(from->end - from->at);
    if (first <= 0x7f || first >= 0xe0) {
        found->kind = INTEGER;
        found->integer = (int8_t)first;
        return FINE;
    }
    if (first >= 0xa0 && first <= 0xbf) {
        found->kind = TEXT;
        return take_bytes(from, found, first & 0x1f);
    }
    if (first <= 0x8f) {
        found->kind = OBJECT;
        found->size = first & 0x0f;
        return FINE;
    }
    if (first <= 0x9f) {
        found->kind = ARRAY;
        found->size = first & 0x0f;
        return FINE;
    }
    unsigned width;
    switch (first) {
        case 0xc0: found->kind = NUL; return FINE;
        case 0xc2: case 0xc3:
            found->kind = BOOLEAN;
            found->boolean = first & 1;
            return FINE;
        case 0xca: {
            if (left < 4) return FAULTY;
            uint32_t bits = (uint32_t)big_endian(from->at, 4);
            float narrow;
            memcpy(&narrow, &bits, 4);
            from->at += 4;
            found->kind = DOUBLE;
            found->number = narrow;
            return FINE;
        }
        case 0xcb: {
            if (left < 8) return FAULTY;
            uint64_t bits = big_endian(from->at, 8);
            memcpy(&found->number, &bits, 8);
            from->at += 8;
            found->kind = DOUBLE;
            return FINE;
        }
        case 0xcc: case 0xcd: case 0xce: case 0xcf:
            width = 1u << (first - 0xcc);
            if (left < width) return FAULTY;
            found->kind = INTEGER;
            found->integer = (int64_t)big_endian(from->at, width);
            from->at += width;
            return width == 8 && found->integer < 0 ? FAULTY : FINE;
        case 0xd0: case 0xd1: case 0xd2: case 0xd3: {
            width = 1u << (first - 0xd0);
            if (left < width) return FAULTY;
            uint64_t bits = big_endian(from->at, width) << (64 - 8 * width);
            found->kind = INTEGER;
            found->integer = (int64_t)bits >> (64 - 8 * width);
            from->at += width;
            return FINE;
        }
        case 0xc4: case 0xc5: case 0xc6: width = 1u << (first - 0xc4); found->kind = BINARY; break;
        case 0xd9: case 0xda: case 0xdb: width = 1u << (first - 0xd9); found->kind = TEXT; break;
        case 0xdc: case 0xdd: width = 2u << (first - 0xdc); found->kind = ARRAY; break;
        case 0xde: case 0xdf: width = 2u << (first - 0xde); found->kind = OBJECT; break;
        default: return FAULTY;
    }
    if (left < width) return FAULTY;
    uint64_t size = big_endian(from->at, width);
    from->at += width;
    if (found->kind == TEXT || found->kind == BINARY) return take_bytes(from, found, size);
    /* An item takes at least one byte, so refuse a number of items that the bytes cannot hold. */
    if (size > (uint64_t)(from->end - from->at)) return FAULTY;
    found->size = size;
    return FINE;
}

/* --- texts ---------------------------------------------------------------------------------------------- */

/* Return whether bytes are valid UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF. */
static inline int is_utf8(const uint8_t *at, uint64_t size) {
    const uint8_t *end = at + size;
    while (at < end) {
        while (end - at >= 8) {
            uint64_t word;
            memcpy(&word, at, 8);
            if (word & 0x8080808080808080u) break;
            at += 8;
        }
        if (at >= end) break;
        uint8_t first = *at++;
        if (first < 0x80) continue;
        unsigned more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        if (first < 0xc2 || first > 0xf4 || (uint64_t)(end - at) < more) return 0;
        if (first == 0xe0 && at[0] < 0xa0) return 0;
        if (first == 0xed && at[0] > 0x9f) return 0;
        if (first == 0xf0 && at[0] < 0x90) return 0;
        if (first == 0xf4 && at[0] > 0x8f) return 0;
        for (unsigned i = 0; i < more; i++)
            if ((*at++ & 0xc0) != 0x80) return 0;
    }
    return 1;
}

static inline uint32_t hash_of(const uint8_t *name, uint64_t size) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t hash = size * odd, word;
    for (; size >= 8; size -= 8, name += 8) {
        memcpy(&word, name, 8);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 29;
    }
    for (word = 0; size; size--) word = word << 8 | *name++;
    hash = (hash ^ word) * odd;
    return (uint32_t)(hash >> 32);
}

static inline int same_bytes(const uint8_t *one, uint64_t one_size, const uint8_t *two, uint64_t two_size) {
    return one_size == two_size && (!one_size || memcmp(one, two, one_size) == 0);
}

/* Check that a row is one valid document (check.c); `scratch` is reused from row to row. */
int check_row(const uint8_t *row, uint64_t size, buffer *scratch);

#endif
