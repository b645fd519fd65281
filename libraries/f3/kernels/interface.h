/* The guest interface of F3. A decoder module has one C file that includes this header and defines
 * `decode_general_ffi`, which takes a payload and returns `answer(...)` or `failed(...)`. libraries/build.py shows how
 * to compile a module. This header does not depend on the encoding. */
#ifndef F3_INTERFACE_H
#define F3_INTERFACE_H

#include "kernels.h"

#define EXPORT(name) __attribute__((export_name(name), visibility("default")))

/* The host looks for an export of this name to find out the version of the interface. */
__attribute__((visibility("default"))) const u32 FFFUDE_VERSION_1_0 = 1;

/* ---- memory ----------------------------------------------------------------------------------------------------- */

enum { LINE = 64, PAGE = 65536, CLASSES = 32 };

/* The size of a block is 2^class bytes, at least two lines. The first line of a block holds its class; the caller gets
 * the memory after this line. Freed blocks are kept in a list for each class. */
struct block {
    struct block *next;
    u32 class;
};

extern u8 __heap_base;
static struct block *waiting[CLASSES];
static size_t fresh, end_of_memory;

static void *more(size_t bytes) {
    if (!fresh) {
        fresh = ((size_t)&__heap_base + LINE - 1) & ~(size_t)(LINE - 1);
        end_of_memory = __builtin_wasm_memory_size(0) * (size_t)PAGE;
    }
    if (bytes > end_of_memory - fresh) {
        size_t pages = (bytes - (end_of_memory - fresh) + PAGE - 1) / PAGE;
        if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1)
            __builtin_trap();
        end_of_memory += pages * PAGE;
    }
    void *at = (void *)fresh;
    fresh += bytes;
    return at;
}

EXPORT("alloc") void *alloc(size_t bytes, size_t alignment) {
    (void)alignment; /* blocks are aligned to a line, which is enough for every Arrow buffer */
    u32 class = 7;
    while (class < CLASSES - 1 && ((size_t)1 << class) - LINE < bytes)
        class++;
    if (((size_t)1 << class) - LINE < bytes)
        __builtin_trap();
    struct block *block = waiting[class];
    if (block)
        waiting[class] = block->next;
    else
        block = more((size_t)1 << class);
    block->class = class;
    return (u8 *)block + LINE;
}

EXPORT("dealloc") void dealloc(void *at, size_t bytes, size_t alignment) {
    (void)bytes, (void)alignment;
    if (!at)
        return;
    struct block *block = (struct block *)((u8 *)at - LINE);
    block->next = waiting[block->class];
    waiting[block->class] = block;
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

struct box {
    u8 *data;
    u32 bytes;
};

struct queue {
    u32 next, count;
    struct box *boxes[3];
};

struct result {
    u32 at, bytes;
};

/* End a call with an error message for the user. */
static inline i32 failed(struct result *result, const char *text) {
    u32 bytes = 0;
    while (text[bytes])
        bytes++;
    result->at = (u32)text;
    result->bytes = bytes;
    return -1;
}

static inline struct box *boxed(u8 *data, u32 bytes) {
    struct box *box = alloc(sizeof *box, 4);
    box->data = data;
    box->bytes = bytes;
    return box;
}

/* End a call with buffers from `alloc`, which the queue then owns. `validity` is 0 if there are no nulls. For strings,
 * `values` are views of `data`; for other types, `data` is 0. */
static inline i32 answer(struct result *result, u8 *validity, u32 validity_bytes, u8 *values, u32 values_bytes, u8 *data,
                         u32 data_bytes) {
    struct queue *queue = alloc(sizeof *queue, 4);
    queue->next = 0;
    queue->count = data ? 3 : 2;
    queue->boxes[0] = boxed(validity ? validity : alloc(0, LINE), validity_bytes);
    queue->boxes[1] = boxed(values, values_bytes);
    if (data)
        queue->boxes[2] = boxed(data, data_bytes);
    result->at = (u32)queue;
    result->bytes = 8;
    return 0;
}

EXPORT("buffer_drop") void buffer_drop(struct box *box) {
    dealloc(box->data, 0, 0);
    dealloc(box, 0, 0);
}

EXPORT("buffer_iterator_next") void buffer_iterator_next(struct queue *queue, struct result *result, struct box **out) {
    result->at = result->bytes = 0;
    if (queue->next == queue->count)
        return;
    struct box *box = queue->boxes[queue->next++];
    result->at = (u32)box->data;
    result->bytes = box->bytes;
    *out = box;
}

EXPORT("buffer_iterator_drop") void buffer_iterator_drop(struct queue *queue) {
    while (queue->next < queue->count)
        buffer_drop(queue->boxes[queue->next++]);
    dealloc(queue, 0, 0);
}

/* The compiler turns loops into calls of these functions. Each is one instruction of Wasm's bulk memory operations. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes) { return __builtin_memcpy(to, from, bytes); }
void *memset(void *to, int byte, size_t bytes) { return __builtin_memset(to, byte, bytes); }

#endif
