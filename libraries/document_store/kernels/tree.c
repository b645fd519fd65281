/* Building schemas: nodes and positions are allocated one by one, so that pointers stay valid while the tree grows. */

#include "tree.h"

position *find_field(const node *object, const uint8_t *name, uint64_t size, uint32_t hash) {
    if (!object->room) return NULL;
    for (uint64_t place = hash & (object->room - 1);; place = (place + 1) & (object->room - 1)) {
        position *found = object->fields[place];
        if (!found) return NULL;
        if (found->hash == hash && same_bytes(found->name, found->size, name, size)) return found;
    }
}

static void insert(node *object, position *added) {
    uint64_t place = added->hash & (object->room - 1);
    while (object->fields[place]) place = (place + 1) & (object->room - 1);
    object->fields[place] = added;
}

static int make_room(node *object) {
    if (object->known * 2 < object->room) return FINE;
    position **before = object->fields;
    uint64_t before_room = object->room;
    position **fields = calloc(before_room ? before_room * 2 : 8, sizeof(position *));
    if (!fields) return NO_MEMORY;
    object->fields = fields;
    object->room = before_room ? before_room * 2 : 8;
    for (uint64_t i = 0; i < before_room; i++)
        if (before[i]) insert(object, before[i]);
    free(before);
    return FINE;
}

position *add_position(node *parent, const uint8_t *name, uint64_t size, uint32_t hash) {
    if (parent->kind == OBJECT && make_room(parent)) return NULL;
    position *added = calloc(1, sizeof(position));
    if (!added) return NULL;
    added->parent = parent;
    if (parent->kind == ARRAY) {
        parent->items = added;
        return added;
    }
    added->name = malloc(size ? size : 1);
    if (!added->name) {
        free(added);
        return NULL;
    }
    if (size) memcpy(added->name, name, size);
    added->size = size;
    added->hash = hash;
    insert(parent, added);
    parent->known++;
    return added;
}

node *add_node(tree *all, node *parent, position *place, enum kind kind) {
    if (all->size == all->capacity) {
        uint64_t capacity = all->capacity ? all->capacity * 2 : 64;
        node **grown = realloc(all->nodes, capacity * sizeof(node *));
        if (!grown) return NULL;
        all->nodes = grown;
        all->capacity = capacity;
    }
    node *added = calloc(1, sizeof(node));
    if (!added) return NULL;
    added->kind = kind;
    added->parent = parent;
    added->place = place;
    added->number = (uint32_t)all->size;
    if (parent) {
        added->level = (uint8_t)(parent->level + (kind != MARKER));
        parent->has_children = 1;
    }
    unsigned bits = 0;
    while (added->level >> bits) bits++;
    added->null_flag = (uint8_t)(1u << bits);
    if (place) {
        place->branch[kind] = added;
        place->branches++;
        place->only = added;
    } else if (kind == MARKER) {
        parent->marker = added;
    } else if (kind == REST) {
        all->rest = added;
    }
    if (!is_nested(kind)) added->leaf = (uint32_t)all->leaves++;
    all->nodes[all->size++] = added;
    return added;
}

/* Build a tree from the nodes of a schema that Python has checked. */
int tree_of(tree *made, uint64_t count, const int32_t *parents, const uint8_t *kinds, const uint8_t *names,
            const uint64_t *name_offsets, uint64_t limit) {
    memset(made, 0, sizeof(tree));
    made->limit = limit;
    if (!add_node(made, NULL, NULL, OBJECT)) return NO_MEMORY;
    for (uint64_t i = 1; i < count; i++) {
        if (parents[i] < 0 || (uint64_t)parents[i] >= i || kinds[i] >= KINDS) return FAULTY;
        node *parent = made->nodes[parents[i]];
        if (!is_nested(parent->kind) || parent->level >= DEEPEST + (kinds[i] == MARKER)) return FAULTY;
        position *place = NULL;
        if (kinds[i] != MARKER && kinds[i] != REST) {
            const uint8_t *name = names + name_offsets[i];
            uint64_t size = name_offsets[i + 1] - name_offsets[i];
            uint32_t hash = hash_of(name, size);
            place = parent->kind == ARRAY ? parent->items : find_field(parent, name, size, hash);
            if (!place) place = add_position(parent, name, size, hash);
            if (!place) return NO_MEMORY;
        }
        if (!add_node(made, parent, place, (enum kind)kinds[i])) return NO_MEMORY;
    }
    return FINE;
}

static void free_position(position *one) {
    if (!one) return;
    free(one->name);
    free(one->list.runs);
    free(one);
}

void free_tree(tree *all) {
    for (uint64_t i = 0; i < all->size; i++) {
        node *one = all->nodes[i];
        for (uint64_t field = 0; field < one->room; field++) free_position(one->fields[field]);
        free_position(one->items);
        free(one->fields);
        free(one->list.runs);
        free(one->levels.data);
        free(one->values.data);
        free(one->offsets.data);
        free(one);
    }
    free(all->nodes);
    memset(all, 0, sizeof(tree));
}
