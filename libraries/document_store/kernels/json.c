/* Convert JSON Lines to MessagePack. This file parses JSON's grammar; check.c then checks the rules of the document
   model. */

#include "common.h"

#include <locale.h>

typedef struct {
    const uint8_t *at, *end;
    buffer *out;
    char point;
} parser;

static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { EXACT_POWERS = 22, MOST_NUMBER = 1 << 12 };

static void skip_space(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static int put_big(buffer *out, uint8_t head, uint64_t value, unsigned bytes) {
    uint8_t all[9] = {head};
    for (unsigned i = 0; i < bytes; i++) all[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    return append(out, all, 1 + bytes);
}

static int put_integer(buffer *out, int64_t value) {
    uint8_t small = (uint8_t)value;
    if (value >= -32 && value < 128) return append(out, &small, 1);
    if (value >= 0) {
        uint64_t bits = (uint64_t)value;
        if (bits <= 0xff) return put_big(out, 0xcc, bits, 1);
        if (bits <= 0xffff) return put_big(out, 0xcd, bits, 2);
        if (bits <= 0xffffffff) return put_big(out, 0xce, bits, 4);
        return put_big(out, 0xcf, bits, 8);
    }
    if (value >= INT8_MIN) return put_big(out, 0xd0, (uint64_t)value, 1);
    if (value >= INT16_MIN) return put_big(out, 0xd1, (uint64_t)value, 2);
    if (value >= INT32_MIN) return put_big(out, 0xd2, (uint64_t)value, 4);
    return put_big(out, 0xd3, (uint64_t)value, 8);
}

/* Convert a number with the C library, if it is not the product or quotient of an exact double and an exact power of
   ten. FAULTY if it is too large for a double. */
static int slow_double(parser *p, const uint8_t *start, const uint8_t *end, double *value) {
    char few[64], *text = few, *stopped;
    uint64_t size = (uint64_t)(end - start);
    if (size > MOST_NUMBER) return FAULTY;
    if (size >= sizeof few) text = malloc(size + 1);
    if (!text) return NO_MEMORY;
    for (uint64_t i = 0; i < size; i++) text[i] = start[i] == '.' ? p->point : (char)start[i];
    text[size] = 0;
    *value = strtod(text, &stopped);
    int whole = stopped == text + size;
    if (text != few) free(text);
    return whole && *value - *value == 0 ? FINE : FAULTY;
}

static int parse_number(parser *p) {
    const uint8_t *start = p->at;
    int negative = p->at < p->end && *p->at == '-', digits = 0, exponent = 0, is_double = 0, exact = 1;
    uint64_t mantissa = 0;
    p->at += negative;
    if (p->at >= p->end || *p->at < '0' || *p->at > '9') return FAULTY;
    if (*p->at == '0' && p->end - p->at > 1 && p->at[1] >= '0' && p->at[1] <= '9') return FAULTY;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        if (digits >= 19) exact = 0;
        else mantissa = mantissa * 10 + (*p->at - '0');
        digits += mantissa != 0;
    }
    if (p->at < p->end && *p->at == '.') {
        is_double = 1;
        const uint8_t *first = ++p->at;
        for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
            if (digits >= 19) {
                exact = 0;
                continue;
            }
            mantissa = mantissa * 10 + (*p->at - '0');
            digits += mantissa != 0;
            exponent--;
        }
        if (p->at == first) return FAULTY;
    }
    if (p->at < p->end && (*p->at | 0x20) == 'e') {
        is_double = 1;
        p->at++;
        int down = p->at < p->end && *p->at == '-', power = 0;
        if (p->at < p->end && (*p->at == '-' || *p->at == '+')) p->at++;
        const uint8_t *first = p->at;
        for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
            if (power < 100000) power = power * 10 + (*p->at - '0');
        if (p->at == first) return FAULTY;
        exponent += down ? -power : power;
    }
    if (!is_double) {
        uint64_t most = (uint64_t)INT64_MAX + (uint64_t)negative;
        if (!exact || mantissa > most) return FAULTY;
        return put_integer(p->out, negative ? (int64_t)(0 - mantissa) : (int64_t)mantissa);
    }
    double value;
    if (exact && mantissa <= 1ull << 53 && exponent >= -EXACT_POWERS && exponent <= EXACT_POWERS) {
        value = exponent < 0 ? (double)mantissa / POWERS[-exponent] : (double)mantissa * POWERS[exponent];
        if (negative) value = -value;
    } else {
        int fault = slow_double(p, start, p->at, &value);
        if (fault) return fault;
    }
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return put_big(p->out, 0xcb, bits, 8);
}

static int hex4(parser *p, uint32_t *unit) {
    if (p->end - p->at < 4) return FAULTY;
    *unit = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint8_t digit = *p->at++, low = digit | 0x20;
        if (digit >= '0' && digit <= '9') *unit = *unit << 4 | (uint32_t)(digit - '0');
        else if (low >= 'a' && low <= 'f') *unit = *unit << 4 | (uint32_t)(low - 'a' + 10);
        else return FAULTY;
    }
    return FINE;
}

/* Write a backslash escape as UTF-8 to `to`. */
static int parse_escape(parser *p, uint8_t **to) {
    static const char NAMES[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    if (p->at >= p->end) return FAULTY;
    uint8_t name = *p->at++;
    if (name != 'u') {
        const char *found = name ? strchr(NAMES, name) : NULL;
        if (!found) return FAULTY;
        *(*to)++ = (uint8_t)MEANT[found - NAMES];
        return FINE;
    }
    uint32_t code, low;
    if (hex4(p, &code)) return FAULTY;
    if (code >= 0xdc00 && code <= 0xdfff) return FAULTY;
    if (code >= 0xd800 && code <= 0xdbff) {
        if (p->end - p->at < 6 || p->at[0] != '\\' || p->at[1] != 'u') return FAULTY;
        p->at += 2;
        if (hex4(p, &low) || low < 0xdc00 || low > 0xdfff) return FAULTY;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code < 0x80) {
        *(*to)++ = (uint8_t)code;
        return FINE;
    }
    unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *(*to)++ = (uint8_t)((0xf0 << (3 - more) & 0xff) | code >> 6 * more);
    while (more--) *(*to)++ = (uint8_t)(0x80 | (code >> 6 * more & 0x3f));
    return FINE;
}

static int parse_text(parser *p) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    const uint8_t *start = ++p->at, *at = start;
    /* Escapes never become longer as UTF-8, so the text does not grow. Its header takes at most 5 bytes. */
    for (;;) {
        while (p->end - at >= 8) {
            uint64_t word, quote, slash;
            memcpy(&word, at, 8);
            quote = word ^ ones * '"';
            slash = word ^ ones * '\\';
            if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 0x20) & ~word)) & tops) break;
            at += 8;
        }
        while (at < p->end && *at != '"' && *at != '\\' && *at >= 0x20) at++;
        if (at >= p->end || *at < 0x20) return FAULTY;
        if (*at == '"') break;
        at += 2;
    }
    uint64_t most = (uint64_t)(at - start);
    if (reserve(p->out, most + 5)) return NO_MEMORY;
    uint8_t *head = p->out->data + p->out->size;
    unsigned width = most <= 31 ? 1 : most <= 0xff ? 2 : most <= 0xffff ? 3 : 5;
    uint8_t *to = head + width;
    p->at = start;
    while (p->at < at) {
        const uint8_t *escape = memchr(p->at, '\\', (uint64_t)(at - p->at));
        uint64_t plain = (uint64_t)((escape ? escape : at) - p->at);
        memcpy(to, p->at, plain);
        to += plain;
        p->at += plain;
        if (!escape) break;
        p->at++;
        if (parse_escape(p, &to)) return FAULTY;
        /* An escape must not extend past the closing quote. */
        if (p->at > at) return FAULTY;
    }
    uint64_t size = (uint64_t)(to - head) - width;
    unsigned needed = size <= 31 ? 1 : size <= 0xff ? 2 : size <= 0xffff ? 3 : 5;
    if (needed != width) memmove(head + needed, head + width, size);
    if (needed == 1) head[0] = (uint8_t)(0xa0 | size);
    else head[0] = needed == 2 ? 0xd9 : needed == 3 ? 0xda : 0xdb;
    for (unsigned i = 1; i < needed; i++) head[i] = (uint8_t)(size >> 8 * (needed - 1 - i));
    p->out->size += needed + size;
    p->at = at + 1;
    return FINE;
}

static int parse_value(parser *p, unsigned level);

/* Write the header of an array or object in front of its contents, whose number is known only now. One byte at `start`
   was reserved for the header. */
static int put_head(buffer *out, uint64_t start, uint64_t count, int is_object) {
    unsigned width = count <= 15 ? 1 : count <= 0xffff ? 3 : 5;
    if (reserve(out, width)) return NO_MEMORY;
    uint8_t *head = out->data + start;
    if (width > 1) memmove(head + width, head + 1, out->size - start - 1);
    out->size += width - 1;
    if (width == 1) head[0] = (uint8_t)((is_object ? 0x80 : 0x90) | count);
    else head[0] = (uint8_t)((is_object ? 0xde : 0xdc) + (width == 5));
    for (unsigned i = 1; i < width; i++) head[i] = (uint8_t)(count >> 8 * (width - 1 - i));
    return FINE;
}

static int parse_nested(parser *p, unsigned level, int is_object) {
    uint64_t start = p->out->size, count = 0;
    uint8_t nothing = 0, close = is_object ? '}' : ']';
    if (append(p->out, &nothing, 1)) return NO_MEMORY;
    p->at++;
    skip_space(p);
    if (p->at < p->end && *p->at == close) {
        p->at++;
        return put_head(p->out, start, 0, is_object);
    }
    for (;;) {
        int fault;
        if (is_object) {
            skip_space(p);
            if (p->at >= p->end || *p->at != '"') return FAULTY;
            if ((fault = parse_text(p))) return fault;
            skip_space(p);
            if (p->at >= p->end || *p->at++ != ':') return FAULTY;
        }
        if ((fault = parse_value(p, level + 1))) return fault;
        count++;
        skip_space(p);
        if (p->at >= p->end) return FAULTY;
        uint8_t next = *p->at++;
        if (next == close) return put_head(p->out, start, count, is_object);
        if (next != ',') return FAULTY;
    }
}

static int parse_word(parser *p, const char *word, uint64_t size, uint8_t meant) {
    if ((uint64_t)(p->end - p->at) < size || memcmp(p->at, word, size)) return FAULTY;
    p->at += size;
    return append(p->out, &meant, 1);
}

static int parse_value(parser *p, unsigned level) {
    skip_space(p);
    if (level > DEEPEST || p->at >= p->end) return FAULTY;
    switch (*p->at) {
        case '"': return parse_text(p);
        case '{': return parse_nested(p, level, 1);
        case '[': return parse_nested(p, level, 0);
        case 't': return parse_word(p, "true", 4, 0xc3);
        case 'f': return parse_word(p, "false", 5, 0xc2);
        case 'n': return parse_word(p, "null", 4, 0xc0);
        default: return parse_number(p);
    }
}

/* Convert all lines. `rows` gets the ends of rows in `made`, which the caller frees. After an error, `faulty` has the
   start and the end of the faulty line, and the rows before this line are in `made`. `most_rows` is at least the number
   of lines. */
EXPORT int ds_rows_of_json(const uint8_t *lines, uint64_t size, uint64_t most_rows, uint64_t *rows, uint64_t *count,
                           uint8_t **made, uint64_t *faulty) {
    buffer out = {0}, scratch = {0};
    const struct lconv *local = localeconv();
    parser p = {lines, lines, &out, local && local->decimal_point && *local->decimal_point ? *local->decimal_point : '.'};
    const uint8_t *end = lines + size;
    int fault = reserve(&out, size / 2 + 64);
    *count = 0;
    for (const uint8_t *line = lines; !fault && line < end;) {
        const uint8_t *line_end = memchr(line, '\n', (uint64_t)(end - line));
        p.end = line_end ? line_end : end;
        p.at = line;
        skip_space(&p);
        if (p.at < p.end) {
            uint64_t start = out.size;
            fault = *p.at == '{' && *count < most_rows ? parse_value(&p, 0) : FAULTY;
            skip_space(&p);
            if (!fault && p.at < p.end) fault = FAULTY;
            if (!fault) fault = check_row(out.data + start, out.size - start, &scratch);
            faulty[0] = (uint64_t)(line - lines);
            faulty[1] = (uint64_t)(p.end - lines);
            if (!fault) rows[(*count)++] = out.size;
        }
        line = p.end + 1;
    }
    free(scratch.data);
    *made = out.data;
    return fault;
}

EXPORT void ds_free(void *made) { free(made); }
