/* Touch the memory behind an Arrow array: read one byte of each 4 KiB page that its rows occupy (method, rule 7).
 *
 * Arrays are passed through the Arrow C data interface (arrow.apache.org/docs/format/CDataInterface.html), which states
 * neither the sizes of buffers nor types. The caller therefore makes a layout from the schema: five numbers (struct
 * node) for each array of the tree. Children come after their parent, and a dictionary comes after the children. The
 * layout is checked against the counts in the arrays. */

#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))
#define PAGE 4096

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

enum { EMPTY, FIXED, TEXT, LARGE_TEXT, LIST, LARGE_LIST, NESTED, VIEWS };

struct node {
    int64_t kind;
    union {
        int64_t width_bits; /* of a FIXED value */
        int64_t items;      /* in each child, for each value of a NESTED array */
    };
    int64_t buffers, children, dictionary;
};

struct walk {
    const struct node *nodes;
    int64_t count, next, sum;
};

static void touch(struct walk *walk, const void *buffer, int64_t begin, int64_t end) {
    const volatile uint8_t *bytes = buffer;
    if (!bytes || begin >= end) return;
    int64_t sum = bytes[begin];
    int64_t at = begin + (int64_t)(-(uintptr_t)(bytes + begin) % PAGE);
    if (at == begin) at += PAGE;
    for (; at < end; at += PAGE) sum += bytes[at];
    walk->sum += sum;
}

static void touch_bits(struct walk *walk, const void *buffer, int64_t begin, int64_t end) {
    touch(walk, buffer, begin / 8, (end + 7) / 8);
}

/* Touch `count` values from `first` on. If a nested array is sliced, its children are not, so its offset applies to
 * them too. Returns 0, or -1 if array and layout do not match. */
static int visit(struct walk *walk, const struct ArrowArray *array, int64_t first, int64_t count) {
    if (walk->next >= walk->count) return -1;
    const struct node *node = &walk->nodes[walk->next++];
    int64_t begin = array->offset + first, end = begin + count, child_first = 0, child_count = 0;
    if (array->length < 0 || array->offset < 0 || first < 0 || count < 0 || first > array->length - count ||
        array->n_children != node->children ||
        !array->dictionary != !node->dictionary ||
        (node->kind == VIEWS ? array->n_buffers < node->buffers : array->n_buffers != node->buffers))
        return -1;
    if (node->kind == NESTED) {
        child_first = begin * node->items;
        child_count = count * node->items;
    }
    if (count > 0 && node->buffers > 0) {
        const void **buffers = array->buffers;
        touch_bits(walk, buffers[0], begin, end);
        switch (node->kind) {
        case FIXED:
            touch_bits(walk, buffers[1], begin * node->width_bits, end * node->width_bits);
            break;
        case TEXT:
        case LIST: {
            const int32_t *offsets = buffers[1];
            if (!offsets) return -1;
            touch(walk, offsets, begin * 4, (end + 1) * 4);
            if (node->kind == TEXT) touch(walk, buffers[2], offsets[begin], offsets[end]);
            child_first = offsets[begin];
            child_count = (int64_t)offsets[end] - offsets[begin];
            break;
        }
        case LARGE_TEXT:
        case LARGE_LIST: {
            const int64_t *offsets = buffers[1];
            if (!offsets) return -1;
            touch(walk, offsets, begin * 8, (end + 1) * 8);
            if (node->kind == LARGE_TEXT) touch(walk, buffers[2], offsets[begin], offsets[end]);
            child_first = offsets[begin];
            child_count = offsets[end] - offsets[begin];
            break;
        }
        case VIEWS: {
            /* The last buffer has the sizes of the buffers between it and the views. */
            const int64_t *sizes = buffers[array->n_buffers - 1];
            touch(walk, buffers[1], begin * 16, end * 16);
            for (int64_t number = 2; number < array->n_buffers - 1; number++)
                touch(walk, buffers[number], 0, sizes[number - 2]);
            break;
        }
        }
    }
    for (int64_t child = 0; child < array->n_children; child++)
        if (visit(walk, array->children[child], child_first, child_count)) return -1;
    return node->dictionary ? visit(walk, array->dictionary, 0, array->dictionary->length) : 0;
}

/* Touch an array, release it, and return the sum of the bytes read in `sum`. Returns 0, or -1 if the layout, which has
 * `numbers` numbers, does not match the array. */
EXPORTED int fb_touch(struct ArrowArray *array, const int64_t *layout, uint64_t numbers, int64_t *sum) {
    struct walk walk = {(const struct node *)layout, (int64_t)(numbers / 5), 0, 0};
    int result = visit(&walk, array, 0, array->length);
    if (walk.next != walk.count) result = -1;
    array->release(array);
    *sum = walk.sum;
    return result;
}
