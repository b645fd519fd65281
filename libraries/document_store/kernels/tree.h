/* A schema in memory: the shredder extends it, the assembler reads it. */

#ifndef DOCUMENT_STORE_TREE_H
#define DOCUMENT_STORE_TREE_H

#include "common.h"

/* A token that absent children get, `count` times in succession (paper, section 3.2). */
typedef struct {
    uint64_t count;
    uint8_t level, is_null, is_delimiter;
} run;

typedef struct {
    run *runs;
    uint64_t size, capacity;
} run_list;

/* How much of a list was taken over: a position in `runs`, and how many tokens of the run there. */
typedef struct {
    uint64_t index, offset;
} cursor;

typedef struct node node;

/* The value of one field, or the items of an array: one node per type that occurred there. Members used for every value
   come first, here and in nodes. */
typedef struct position {
    node *parent;
    uint8_t *name;
    uint64_t size;
    /* The object in which it last occurred, to detect duplicate fields. */
    uint64_t seen_in;
    /* The field that followed it last time. */
    struct position *next;
    node *only;
    uint32_t hash;
    uint32_t branches;
    node *branch[KINDS];
    /* For a union: the tokens that branches get when they have no value, and how much of the parent's list was taken
       over into this list. */
    run_list list;
    cursor taken;
} position;

struct node {
    enum kind kind;
    uint8_t level, has_children, last_is_delimiter, null_flag;
    cursor taken;
    /* For leaves. */
    buffer levels, values, offsets;
    uint64_t value_count;
    /* For objects and arrays. */
    run_list list;
    position *first, *items;
    /* For objects: fields by hash. */
    position **fields;
    uint64_t room, known;
    node *marker;
    node *parent;
    position *place;
    uint32_t number;
    uint32_t leaf;
};

typedef struct {
    node **nodes;
    uint64_t size, capacity;
    uint64_t leaves, limit;
    node *rest;
} tree;

int tree_of(tree *made, uint64_t count, const int32_t *parents, const uint8_t *kinds, const uint8_t *names,
            const uint64_t *name_offsets, uint64_t limit);
void free_tree(tree *all);

/* Return the position of a field, NULL if there is none. */
position *find_field(const node *object, const uint8_t *name, uint64_t size, uint32_t hash);
position *add_position(node *parent, const uint8_t *name, uint64_t size, uint32_t hash);
node *add_node(tree *all, node *parent, position *place, enum kind kind);

static inline int is_nested(enum kind kind) { return kind == ARRAY || kind == OBJECT; }

#endif
