/* Take records from columns of one leaf (gather.c). */

#ifndef DOCUMENT_STORE_GATHER_H
#define DOCUMENT_STORE_GATHER_H

#include "common.h"

typedef struct gatherer gatherer;

/* Which tokens have a value: none, those of the largest level, or all. */
enum { NO_VALUES, OF_LARGEST, OF_ALL };

int ds_find_records(uint64_t count, const uint8_t *const *levels, const uint64_t *level_counts,
                    const uint8_t *const *values, const uint64_t *value_counts, const uint64_t *value_bytes,
                    const int64_t *const *offsets, int mask, int array_level, int max_level, int which, uint64_t width,
                    const int64_t *ordinals, uint64_t taken, uint64_t *sizes, gatherer **made);
void ds_take_records(const gatherer *g, uint8_t *levels, uint8_t *values, int64_t *offsets);
void ds_free_gatherer(gatherer *g);

#endif
